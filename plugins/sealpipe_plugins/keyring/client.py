"""The system's keyring through the package `keyring`, without prompting.

If a keyring is locked, the package opens a dialog or a terminal prompt, and a pipeline would hang.
So Secret Service keyrings are used through `secretstorage`, a dependency of keyring (module
secret_service), and a backend that always prompts is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar, cast

from keyring import core
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordSetError

from sealpipe.plugin import (
    AccessDeniedError,
    Locator,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnknownOutcomeError,
    UnsupportedError,
)
from sealpipe.plugin.settings import PluginSettings
from sealpipe_plugins.program import run_with_timeout

T = TypeVar("T")

_SECRET_SERVICE: Final = ("keyring.backends.SecretService", "keyring.backends.libsecret")
"""Two backends of the same service."""

_PROMPTING: Final = {
    "keyring.backends.kwallet.DBusKeyring": "KWallet",
    "keyring.backends.kwallet.DBusKeyringKWallet4": "KWallet",
    "keyrings.alt.file.EncryptedKeyring": "the encrypted file of keyrings.alt",
    "keyrings.cryptfile.cryptfile.CryptFileKeyring": "the encrypted file of keyrings.cryptfile",
}
"""Backends that always prompt."""

_NO_BACKEND: Final = (
    "start a Secret Service (gnome-keyring under dbus-run-session), or name a backend in "
    "PYTHON_KEYRING_BACKEND"
)
_PLAIN_TEXT: Final = ("keyrings.alt.file.PlaintextKeyring", "keyrings.alt.pyfs.PlaintextKeyring")
"""Backends that store in plain text."""


class KeyringSettings(PluginSettings):
    """`backend` is the name of a backend in keyring, such as
    `keyring.backends.SecretService.Keyring`.
    """

    backend: str = ""

    own_variables = {"backend": "PYTHON_KEYRING_BACKEND"}  # noqa: RUF012 - a ClassVar of the base


class KeyringClient:
    """The keyrings of this session, in search order."""

    def __init__(self, settings: KeyringSettings, deadline: float) -> None:
        self._name = settings.backend
        self._deadline = deadline

    def read(self, service: str, username: str) -> bytes | str | None:
        """Return the stored password, or None.

        Raises AccessDeniedError if the keyring is locked.
        """
        return self._in_time(lambda: self._find(service, username)[1])

    def store(self, service: str, username: str, value: bytes) -> None:
        """Store the password in the keyring that has the entry, otherwise in the first one.

        Raises the errors of `describe_writable`, and UnknownOutcomeError.
        """
        self._in_time(lambda: self._store(service, username, value), UnknownOutcomeError)

    def _in_time(
        self, work: Callable[[], T], timeout_error: type[PluginError] = UnavailableError
    ) -> T:
        """Run within the deadline: a keyring is another process behind its own socket."""
        try:
            return run_with_timeout(self._deadline, work)
        except TimeoutError:
            failure = timeout_error(
                "the keyring did not respond in time",
                remedy="check the D-Bus session, and restart it",
            )
        raise failure

    def _store(self, service: str, username: str, value: bytes) -> None:
        backend = self._find(service, username)[0]
        kind = _require_encrypted(backend)
        if type(backend).__module__ in _SECRET_SERVICE:
            from sealpipe_plugins.keyring import secret_service

            secret_service.write(
                secret_service.SecretServiceEntry(backend, service, username), value
            )
            return
        try:
            text = value.decode()
        except UnicodeError:
            text = None
        if text is None:
            raise UnsupportedError(
                f"{kind} stores text, and the value is not UTF-8",
                remedy="have it sent as base64 text, store that, and read it with decode=base64",
            )
        failure: PluginError
        try:
            backend.set_password(service, username, text)
        except KeyringLocked:
            failure = AccessDeniedError("the keyring is locked", remedy="unlock it first")
        except (PasswordSetError, NotImplementedError):
            failure = AccessDeniedError(
                f"{kind} refused the value",
                remedy="check that it is writable, and how large a value may be",
            )
        else:
            return
        raise failure

    def describe_writable(self) -> str:
        """Describe the keyring for a write.

        Raises like `describe`, and UnsupportedError for a plain-text backend.
        """
        description = self.describe()
        self._in_time(lambda: _require_encrypted(self._usable_backends()[0]))
        return description

    def _find(self, service: str, username: str) -> tuple[KeyringBackend, bytes | str | None]:
        """Return the keyring that has the entry, and the password.

        The first keyring and None if none has it.
        """
        backends = self._usable_backends()
        for each in backends:
            password = _read_password(each, service, username)
            if password is not None:
                return each, password
        return backends[0], None

    def describe(self) -> str:
        """Describe the keyrings.

        Raises NotConfiguredError if there are none, AccessDeniedError if one is locked.
        """
        return self._in_time(self._describe)

    def _describe(self) -> str:
        found = self._usable_backends()
        for each in found:
            if type(each).__module__ in _SECRET_SERVICE:
                _read_password(each, "sealpipe: is there anything?", "nobody")
        return ", ".join(each.name for each in found)

    def _usable_backends(self) -> list[KeyringBackend]:
        backends = list(_iter_backends(self._configured_backend()))
        modules = [type(each).__module__ for each in backends]
        if _SECRET_SERVICE[0] in modules:
            backends = [
                each
                for each, module in zip(backends, modules, strict=True)
                if module != _SECRET_SERVICE[1]
            ]
        for each in backends:
            name = _qualified_name(each)
            if name == "keyring.backends.null.Keyring":
                raise NotConfiguredError(
                    "keyring is disabled here (its null backend)", remedy=_NO_BACKEND
                )
            if name == "keyring.backends.fail.Keyring":
                raise NotConfiguredError("this machine has no keyring", remedy=_NO_BACKEND)
            if name in _PROMPTING:
                raise UnsupportedError(
                    f"{_PROMPTING[name]} prompts for a password, which sealpipe never does",
                    remedy=_NO_BACKEND,
                )
        if not backends:
            raise NotConfiguredError("this machine has no keyring", remedy=_NO_BACKEND)
        return backends

    def _configured_backend(self) -> KeyringBackend:
        if not self._name:
            return core.get_keyring()
        try:
            return core.load_keyring(self._name)
        except (ImportError, AttributeError, ValueError):
            reason = "the keyring backend does not exist"
        except RuntimeError:  # keyring raises this for a backend that cannot be used
            reason = "the keyring backend that is set cannot be used here"
        raise NotConfiguredError(f"{reason}: {self._name[:80]}", remedy=_NO_BACKEND)


def _iter_backends(configured: KeyringBackend) -> Iterator[KeyringBackend]:
    """Iterate over a backend, or over the members of a chainer."""
    if type(configured).__module__ == "keyring.backends.chainer":
        yield from cast("Any", configured).backends
    else:
        yield configured


def _qualified_name(backend: KeyringBackend) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


def _require_encrypted(backend: KeyringBackend) -> str:
    """Return the name of a backend. Raises UnsupportedError if it stores plain text."""
    name = _qualified_name(backend)
    if name in _PLAIN_TEXT:
        raise UnsupportedError(f"{name} stores everything in plain text", remedy=_NO_BACKEND)
    return name


def _read_password(backend: KeyringBackend, service: str, username: str) -> bytes | str | None:
    if type(backend).__module__ not in _SECRET_SERVICE:
        return backend.get_password(service, username)
    from sealpipe_plugins.keyring import secret_service

    return secret_service.read(secret_service.SecretServiceEntry(backend, service, username))


def parse_entry(locator: Locator) -> tuple[str, str]:
    """Return service and user name of a locator. Raises ReferenceValueError if one is missing."""
    username = locator.param("username")
    service = locator.body
    if username is None:
        # split at the last slash: a service is often a URL, a user name rarely has a slash
        service, _, username = service.rpartition("/")
    if not service or not username:
        raise ReferenceValueError(
            f"{locator.name}: needs a service and a user name",
            remedy=(
                f"write {locator.name}:SERVICE/USERNAME, or {locator.name}:SERVICE?username=NAME"
            ),
        )
    return service, username
