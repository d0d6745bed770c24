"""`env:NAME`: an environment variable, exactly."""

from __future__ import annotations

import os
import re

from sealpipe.plugin import Document, Locator, ReferenceValueError, SecretNotFoundError, Source

_NOTHING = "set it for this step (a pipeline run from a fork gets no secrets)"
_NAME = re.compile(r"[A-Z_][A-Z0-9_]*|[A-Za-z][A-Za-z0-9]*_[A-Za-z0-9_]*")


class EnvSource(Source):
    """The environment of this process."""

    def fetch(self, locator: Locator) -> Document:
        """The variable's bytes. SecretNotFoundError where it is not set, or set to nothing."""
        name = locator.body
        if not name or "=" in name:
            raise ReferenceValueError("env: needs the name of a variable", locator="env:", remedy="write env:NAME")
        if name.startswith("SEALPIPE_API_KEY"):
            raise ReferenceValueError(
                f"{locator} is sealpipe's own credential, and is never shared",
                remedy="name another variable; a key for somebody else belongs in a variable of its own",
            )
        value = self.context.environ.get(name)
        if value:
            return Document(os.fsencode(value))  # the bytes that were set, whatever they are
        if value is not None:
            raise SecretNotFoundError(f"the environment variable {name} is set but empty", remedy=_NOTHING)
        if not _NAME.fullmatch(name):
            # Most likely `env:$NAME`: the shell has put the secret itself here.
            raise SecretNotFoundError(
                "the environment variable that env: names is not set; its name is not shown, it may be a value",
                locator="env:",
                remedy="write env:NAME without $",
            )
        raise SecretNotFoundError(f"the environment variable {name} is not set", remedy=f"export {name}, or {_NOTHING}")
