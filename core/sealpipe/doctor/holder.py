"""The credential: its form and where it comes from, never a secret part of it."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from sealpipe import permissions
from sealpipe.config import api_key
from sealpipe.credential import Credential
from sealpipe.doctor.configured import Settings
from sealpipe.doctor.finding import Finding, doubtful, failed, fine
from sealpipe.errors import SettingError
from sealpipe.flows.session import open_credential

_PARTS = {
    False: "two parts: shares have no copy for the account's owner, and custody keys are not there",
    True: "three parts: the custody part stays on this machine",
}


def look(settings: Settings, environ: Mapping[str, str]) -> tuple[Credential | None, list[Finding]]:
    """The credential, where there is one that can be used, and what there is to tell."""
    file = settings["api_key_file"].usable()
    try:
        credential = open_credential(api_key(environ, file), settings["service_tag"].usable())
    except SettingError as error:
        return None, [failed("credential", error), *_rest(file, environ)]
    origin = "SEALPIPE_API_KEY" if not file else f"{file}, {settings['api_key_file'].origin}"
    found = fine("credential", f"{_form(credential)} ({origin})")
    return credential, [found, *_rest(file, environ)]


def _form(credential: Credential) -> str:
    return f"tag {credential.tag}, key id {credential.key_id}, {_PARTS[credential.custody_secret is not None]}"


def _rest(file: str | None, environ: Mapping[str, str]) -> Iterator[Finding]:
    """How the file is kept, and the credential before this one."""
    if file:
        with suppress(OSError):  # a file that cannot be read is told already
            mode = stat.S_IMODE(Path(file).stat().st_mode)
            if permissions.readable_by_others(Path(file), environ):
                yield doubtful("credential file", f"{file} is open to others (mode {mode:04o})", f"chmod 600 {file}")
    previous = environ.get("SEALPIPE_API_KEY_PREVIOUS")
    if previous:
        try:
            yield fine("previous credential", f"{_form(Credential.parse(previous))} (SEALPIPE_API_KEY_PREVIOUS)")
        except SettingError as error:
            yield failed("previous credential", error)
