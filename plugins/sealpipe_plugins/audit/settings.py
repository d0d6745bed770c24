"""The settings of the audit log, and the secrets that they refer to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sealpipe.plugin import NotConfiguredError, Secret, is_cleartext

_KNOWN: Final = ("file", "required", "key", "webhook")
_WEBHOOK_KNOWN: Final = ("url", "token", "required")
_MIN_KEY, _MAX_SECRET = 16, 4096
_NEW_KEY: Final = "`openssl rand -hex 32` creates a new one"


class Webhook(NamedTuple):
    """Where lines are sent. `authorization` is the whole value of the header, if there is one."""

    url: Secret
    authorization: Secret | None
    required: bool

    @property
    def host(self) -> str:
        """Its host, which is no secret."""
        return urlsplit(self.url.reveal()).hostname or ""


class Settings(NamedTuple):
    """The table's contents."""

    file: Path
    required: bool
    key: bytes | None
    webhook: Webhook | None


def read_settings(config: Mapping[str, Any]) -> Settings:
    """Read the table `[audit]`, with its key and token. Raises NotConfiguredError."""
    file, required, key = config.get("file"), config.get("required", False), config.get("key")
    if not isinstance(file, str) or not Path(file).is_absolute() or not isinstance(required, bool):
        raise NotConfiguredError(
            "[audit] needs `file` (an absolute path), and `required` must be true or false",
            remedy="correct [audit]",
        )
    _refuse_unknown(config, "audit", _KNOWN)
    return Settings(
        Path(file),
        required,
        None if key is None else read_key(key),
        _read_webhook(config["webhook"]) if "webhook" in config else None,
    )


def _read_webhook(table: object) -> Webhook:
    url, required = (
        (table.get("url"), table.get("required", False)) if isinstance(table, Mapping) else ("", "")
    )
    if not isinstance(table, Mapping) or not isinstance(url, str) or not isinstance(required, bool):
        raise NotConfiguredError(
            "[audit.webhook] needs `url`, and `required` must be true or false",
            remedy="correct [audit.webhook]",
        )
    _refuse_unknown(table, "audit.webhook", _WEBHOOK_KNOWN)
    _check_url(url)
    token = _read_token(table["token"]) if "token" in table else None
    return Webhook(Secret(url), token, required)


def _check_url(url: str) -> None:
    remedy = "write `url` in [audit.webhook] as https://host/path; http:// is only for loopback"
    try:
        scheme, host = urlsplit(url).scheme, urlsplit(url).hostname
    except ValueError:
        scheme, host = "", None
    if not host or scheme not in ("http", "https"):
        raise NotConfiguredError("the audit's webhook has no valid address", remedy=remedy)
    if is_cleartext(scheme, host):
        raise NotConfiguredError("the audit's webhook must be an https address", remedy=remedy)


def _read_token(reference: object) -> Secret:
    """Return the header's value: a token with a scheme in front of it has it in this place."""
    remedy = "correct `token` in [audit.webhook]"
    token = _read_secret(reference, "token", remedy, remedy).decode("ascii", "replace")
    return Secret(token if " " in token else f"Bearer {token}")


def _refuse_unknown(table: Mapping[str, Any], name: str, known: Sequence[str]) -> None:
    if unknown := sorted(table.keys() - set(known)):
        raise NotConfiguredError(
            f"unknown setting in [{name}]: {unknown[0][:40]!r}",
            remedy=f"the settings are {', '.join(known)}",
        )


def read_key(reference: object, remedy: str = "correct `key` in [audit]") -> bytes:
    """Return the key of `file:/PATH` or `env:NAME`, without one final newline.

    Raises NotConfiguredError, with `remedy` if the reference is wrong.
    """
    key = _read_secret(reference, "key", remedy, f"set it; {_NEW_KEY}")
    if len(key) < _MIN_KEY:
        raise NotConfiguredError(
            f"the audit's key in {str(reference)[:80]} has fewer than {_MIN_KEY} bytes",
            locator="audit:",
            remedy="create one with `openssl rand -hex 32`",
        )
    return key


def _read_secret(reference: object, what: str, remedy: str, remedy_if_empty: str) -> bytes:
    name, _, body = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    secret, reason = None, "write file:/PATH or env:NAME"
    if name == "env" and body:
        secret = os.environb.get(os.fsencode(body), b"")
    if name == "file" and Path(body).is_absolute():
        try:
            with Path(body).open("rb") as file:
                secret = file.read(_MAX_SECRET).removesuffix(b"\n")
        except OSError as error:
            reason = f"{body} cannot be read: {error.strerror}"
    if secret is None:
        raise NotConfiguredError(
            f"the audit's {what} cannot be used: {reason}", locator="audit:", remedy=remedy
        )
    if not secret:
        raise NotConfiguredError(
            f"the audit's {what} is missing: {name}:{body[:80]} is empty, or not set",
            locator="audit:",
            remedy=remedy_if_empty,
        )
    return secret
