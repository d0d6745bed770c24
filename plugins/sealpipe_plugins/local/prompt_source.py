"""`prompt:TEXT`: what a person types at the terminal, and nobody sees."""

from __future__ import annotations

from sealpipe.plugin import Document, Locator, SecretNotFoundError, Source, UnsupportedError, ci_system

_ELSEWHERE = "name where the value lives: env:NAME, file:PATH, stdin:, or a store"


class PromptSource(Source):
    """The terminal of this process. Each mention asks by itself."""

    def fetch(self, locator: Locator) -> Document:
        """What was typed, without the line's end. UnsupportedError where nobody is there to ask."""
        if ci_system(self.context.environ) is not None:
            raise UnsupportedError("prompt: asks a person, and in CI nobody is there", remedy=_ELSEWHERE)
        from sealpipe_plugins.local import terminal  # Unix only

        try:
            typed = terminal.ask(f"{_text(locator)} (not shown): ")
        except OSError:
            typed = None
        except terminal.InputTooLongError:
            raise UnsupportedError(
                "more was typed or pasted than one line of a terminal, and nothing of it was taken",
                remedy="put it into a file, and name that: file:PATH",
            ) from None
        if typed is None:
            raise UnsupportedError("prompt: asks at the terminal, and there is none here", remedy=_ELSEWHERE)
        if not typed:
            raise SecretNotFoundError("nothing was typed", remedy="run it again, and type the value")
        return Document(typed)


def _text(locator: Locator) -> str:
    """The question. It is the user's own text; nothing in it may move the cursor."""
    return "".join(sign for sign in locator.body if sign.isprintable()).strip() or "Secret"
