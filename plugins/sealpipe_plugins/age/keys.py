"""The keys that the settings name: identities to decrypt with, recipients to encrypt to.

Keys are X25519 or SSH (ed25519, RSA). What would prompt is refused: a key protected by a
passphrase, an age plugin.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyrage
from pyrage import ssh, x25519

from sealpipe.plugin import Context, NotConfiguredError, Secret, find_file_flaw
from sealpipe_plugins.age import file_format
from sealpipe_plugins.age.settings import SSH_TYPES, AgeSettings
from sealpipe_plugins.setting_files import read_setting_file

_FILE_LIMIT: Final = 256 * 1024
_RECIPIENTS: Final = "write public keys: age1... (of no plugin), ssh-ed25519 ... or ssh-rsa ..."


def load_identities(settings: AgeSettings, context: Context) -> list[Any]:
    """Return the identities of both settings; none if neither is set. Raises NotConfiguredError."""
    contents: list[tuple[str, Secret]] = []
    if settings.identity:
        contents.append(("identity", settings.identity))
    if settings.identity_file is not None:
        contents.append(
            (
                "identity_file",
                Secret(
                    read_setting_file(settings.identity_file, "identity_file", context, _FILE_LIMIT)
                ),
            )
        )
    return [
        identity
        for setting, content in contents
        for identity in _parse_identities(
            content.reveal_bytes(), f"the setting {setting} of {context.store}"
        )
    ]


def load_recipients(settings: AgeSettings, context: Context) -> list[Any]:
    """Return the recipients of both settings; none if neither is set. Raises NotConfiguredError."""
    file = settings.recipients_file
    lines = [("recipients", each) for each in settings.recipients]
    if file is not None:
        text = read_setting_file(file, "recipients_file", context, _FILE_LIMIT).decode(
            "utf-8", "replace"
        )
        _refuse_writable(file.expanduser(), context)
        lines += [("recipients_file", each) for each in _list_lines(text.splitlines())]
    return [
        _parse_recipient(line, f"{setting} of {context.store}")
        for setting, line in dict.fromkeys(lines)
    ]


def _parse_identities(content: bytes, where: str) -> Iterator[Any]:
    if file_format.is_age(content):
        raise NotConfiguredError(
            f"{where} is protected by a passphrase, which sealpipe never asks for",
            remedy="name a key without one, which only this user can read (age -d writes it)",
        )
    if b"PRIVATE KEY-----" in content:
        yield _parse_ssh_identity(content, where)
        return
    lines = list(_list_lines(content.decode("utf-8", "replace").splitlines()))
    if not lines:
        raise NotConfiguredError(
            f"{where} has no identity", remedy="make one with age-keygen, or name an SSH key"
        )
    for line in lines:
        yield _parse_identity(line, where)


def _parse_identity(line: str, where: str) -> Any:
    if line.startswith("AGE-SECRET-KEY-1"):
        try:
            return x25519.Identity.from_str(line)
        except pyrage.IdentityError:
            reason = "has an identity that is not complete"
    else:
        reason = "has a line that is no identity of age"
    raise NotConfiguredError(
        f"{where} {reason}",
        remedy="each line is AGE-SECRET-KEY-1... (of no plugin), or the whole is an SSH key",
    )


def _parse_ssh_identity(content: bytes, where: str) -> Any:
    try:
        return ssh.Identity.from_buffer(content)
    except pyrage.IdentityError as error:
        is_locked = "decrypted first" in str(error)
    if is_locked:
        raise NotConfiguredError(
            f"{where} is an SSH key with a passphrase, which sealpipe never asks for",
            remedy="name a key without a passphrase, which only this user can read",
        )
    raise NotConfiguredError(
        f"{where} is not an SSH key that age can use", remedy="age knows ed25519 and RSA keys"
    )


def _parse_recipient(line: str, where: str) -> Any:
    text = " ".join(line.split()[:2])  # the comment of an SSH key is no part of it
    try:
        if line.startswith(SSH_TYPES):
            return ssh.Recipient.from_str(text)
        if re.fullmatch(r"age1[a-z0-9]+", line.strip()):
            return x25519.Recipient.from_str(line.strip())
    except pyrage.RecipientError:
        pass
    shown = text[:24] + "..." if line.startswith(("age1", *SSH_TYPES)) else "a line"
    raise NotConfiguredError(
        f"{where}: {shown} is not a recipient that can be used", remedy=_RECIPIENTS
    )


def _list_lines(lines: Iterable[str]) -> Iterator[str]:
    return (line.strip() for line in lines if line.strip() and not line.strip().startswith("#"))


def _refuse_writable(file: Path, context: Context) -> None:
    """Refuse a list of recipients to which other users could add themselves."""
    status = os.stat(file)  # noqa: PTH116 - as it is opened
    flaw = find_file_flaw(file, status, "the recipients_file", context.environ)
    if flaw is not None:
        raise NotConfiguredError(flaw[0], remedy=flaw[1])
