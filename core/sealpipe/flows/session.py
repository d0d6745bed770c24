"""What every flow of one client stands on: who calls, and where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sealpipe import settings
from sealpipe.credential import Credential
from sealpipe.errors import CredentialError, SettingError, UsageError
from sealpipe.flows.retry import Budget
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.registry import Overseer, Registry

_MISSING = {
    "SEALPIPE_API_KEY": "set SEALPIPE_API_KEY or SEALPIPE_API_KEY_FILE (forks and Dependabot runs get empty secrets)",
    "SEALPIPE_BASE_URL": "set SEALPIPE_BASE_URL to the service's API; it ends in /v1",
    "SEALPIPE_LINK_BASE_URL": "set SEALPIPE_LINK_BASE_URL to the address that the service's links start with",
}


@dataclass(frozen=True, slots=True)
class Session:
    """Credential, addresses and limits, checked. `deadline` is in seconds, for all tries of one call together."""

    credential: Credential
    base_url: str
    link_base_url: str
    registry: Callable[[], Registry]
    deadline: float = 60.0
    ca_file: Path | None = None
    overseers: tuple[Overseer, ...] = ()
    """Policies and observers, by the config files."""
    previous: Credential | None = None
    """The credential before this one, while rotating: opens what was sealed to it, and is never sent."""

    def budget(self) -> Budget:
        """Time and tries for one call, from now on."""
        return Budget(self.deadline)

    def check_clear(self, *texts: str | None) -> None:
        """UsageError where text that the service gets in clear holds a secret of ours. None of it is shown.

        In CI a title may be made of what others wrote, a commit's or a merge request's title, and GitLab fills in a
        variable that is named there, the credential's as well.
        """
        for credential in (self.credential, self.previous):
            for secret in (credential.auth_secret, credential.custody_secret) if credential is not None else ():
                if secret is not None and any(secret.reveal() in text for text in texts if text):
                    raise UsageError(
                        "a text that the service gets in clear holds the credential: nothing was sent",
                        remedy="see what the title, the description and the prompts are made of, and who chooses that",
                    )

    def close(self) -> None:
        """Let plugins go of what they hold, where there was a registry at all. Blocks."""
        made = getattr(self.registry, "cache_info", None)
        if made is not None and made().currsize:
            self.registry().close()


def open_credential(api_key: str | Secret | None, service_tag: str | None = None) -> Credential:
    """The credential from what was set. SettingError where it is missing, has no form, or contradicts the tag."""
    if not api_key:
        raise SettingError("SEALPIPE_API_KEY is not set, or empty", remedy=_MISSING["SEALPIPE_API_KEY"])
    credential = Credential.parse(api_key)
    if service_tag is not None and settings.service_tag(service_tag) != credential.tag:
        raise SettingError(
            f"the service tag is set to {service_tag!r} and the credential is of {credential.tag!r}",
            remedy="unset SEALPIPE_SERVICE_TAG: the credential tells the tag",
        )
    return credential


def open_session(
    *,
    api_key: str | Secret | None,
    base_url: str | None,
    link_base_url: str | None,
    registry: Callable[[], Registry],
    service_tag: str | None = None,
    deadline: float = 60.0,
    ca_file: str | Path | None = None,
    overseers: tuple[Overseer, ...] = (),
    previous: str | Secret | None = None,
) -> Session:
    """A session from what was set. SettingError names what is missing or wrong, and never a value."""
    for name, value in zip(_MISSING, (api_key, base_url, link_base_url), strict=True):
        if not value:
            raise SettingError(f"{name} is not set, or empty", remedy=_MISSING[name])
    credential = open_credential(api_key, service_tag)
    if not deadline > 0:
        raise SettingError("the deadline leaves no time at all", remedy="give it as a positive number of seconds")
    return Session(
        credential,
        settings.base_url(base_url or ""),
        settings.link_base_url(link_base_url or ""),
        cache(registry),  # one for all calls: what a plugin set up serves the next one, too
        deadline,
        None if ca_file is None else Path(ca_file),
        overseers,
        None if not previous else open_previous(previous),
    )


def open_previous(text: str | Secret) -> Credential:
    """The credential before this one. CredentialError where it opens nothing."""
    wrong = ""
    try:
        found = Credential.parse(text)
        if found.custody_secret is not None:
            return found
        wrong = "it has no custody secret, and so opens nothing"
    except CredentialError as error:
        wrong = error.message
    raise CredentialError(
        f"SEALPIPE_API_KEY_PREVIOUS: {wrong}", remedy="set it to the whole credential, all three parts, or unset it"
    )
