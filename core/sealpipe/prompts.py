"""Prompts of a request: a text, a type and an id.

The service and the submitter see the text. Only we see the id, which names the submitted value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from sealpipe.errors import Remedy, UsageError, quote_input
from sealpipe.wire.fields import TYPES, suggest_type

_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
MAX_LENGTH: Final = 500
"""Characters of a prompt."""
_WORD: Final = re.compile(r"[^\W\d][\w-]*")


class Prompt(NamedTuple):
    """A prompt of a request. `type` is one of the field types of the service's form."""

    id: str
    text: str
    type: str = "password"

    def __str__(self) -> str:
        return f"{self.id}={self.text}:{self.type}"


def parse_prompt(text: str) -> Prompt:
    """Parse `[ID=]PROMPT[:TYPE]` (see `split_type`). Raises UsageError.

    The default id consists of the prompt's letters and digits: `staging_password` for `Staging
    password`.
    """
    name, equals, rest = text.partition("=")
    has_id = bool(equals) and _ID.fullmatch(name) is not None
    prompt_text, kind = split_type(rest if has_id else text)
    if kind is not None and kind not in TYPES:
        remedy = (
            f"{suggest_type(kind)}; a prompt that ends in :{kind} is written PROMPT:{kind}:password"
        )
        raise UsageError(f"{quote_input(kind)} is not a field type", remedy=remedy)
    return check_prompt(
        Prompt(name if has_id else _derive_id(prompt_text), prompt_text, kind or "password")
    )


def split_type(text: str) -> tuple[str, str | None]:
    """Split `TEXT[:TYPE]`, a prompt or a label.

    One word after the last `:` is a type, known or not.
    """
    before, colon, word = text.rpartition(":")
    return (before, word) if colon and _WORD.fullmatch(word) else (text, None)


def check_prompt(prompt: Prompt) -> Prompt:
    """Check a prompt, and return it. Raises UsageError."""
    if not prompt.text.strip():
        raise UsageError(
            "a prompt is empty",
            remedy=Remedy(
                "write what is asked for, such as --ask 'Staging password'",
                python='write what is asked for, such as "Staging password"',
            ),
        )
    if not prompt.text.isprintable():
        raise UsageError(
            "a prompt contains a control character", remedy="write it as one line of text"
        )
    if len(prompt.text) > MAX_LENGTH:
        raise UsageError(
            f"a prompt has more than {MAX_LENGTH} characters",
            remedy=Remedy(
                "put the rest into --description", python="put the rest into description"
            ),
        )
    if prompt.type not in TYPES:
        raise UsageError(
            f"{quote_input(prompt.type)} is not a field type",
            remedy="known are " + ", ".join(TYPES),
        )
    if not _ID.fullmatch(prompt.id):
        raise UsageError(
            f"the prompt {quote_input(prompt.text)} does not give a valid id",
            remedy=Remedy(
                f"give it an id: --ask 'password={prompt.text[:60]}'",
                python=f"give it an id: {quote_input('password=' + prompt.text)}",
            ),
        )
    return prompt


def check_prompts(prompts: Sequence[Prompt]) -> tuple[Prompt, ...]:
    """Check that there are prompts, all with different ids and texts, which identify values.

    Raises UsageError.
    """
    if not prompts:
        raise UsageError(
            "the request has no prompts",
            remedy=Remedy(
                "give at least one prompt: --ask 'Staging password'",
                python='give at least one prompt: ["Staging password"]',
            ),
        )
    for property_name, names in (
        ("id", [each.id for each in prompts]),
        ("text", [each.text for each in prompts]),
    ):
        for name in names:
            if names.count(name) > 1:
                raise UsageError(
                    f"two prompts have the {property_name} {quote_input(name)}",
                    remedy=Remedy(
                        "give each its own: --ask 'ID=PROMPT:TYPE'",
                        python='give each its own: "ID=PROMPT:TYPE"',
                    ),
                )
    return tuple(prompts)


def _derive_id(text: str) -> str:
    words = "_".join(re.findall(r"[a-z0-9]+", text.lower()))
    return words[:64].rstrip("_") if words[:1].isalpha() else f"field_{words}"[:64].rstrip("_")
