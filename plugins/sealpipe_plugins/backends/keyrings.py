"""The system's keyring through the package `keyring`, without ever asking anybody anything.

keyring itself opens a dialog, or a prompt on the terminal, where a keyring is locked: a pipeline would wait for ever.
So a Secret Service is read here by `secretstorage`, which keyring brings, and what can only ask is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, cast

from keyring import core
from keyring.backend import KeyringBackend

from sealpipe.plugin import Denied, NotConfigured, Unavailable, Unsupported
from sealpipe.plugin.settings import PluginSettings

_SECRET_SERVICE: Final = ("keyring.backends.SecretService", "keyring.backends.libsecret")
"""Both are ways to one and the same service."""

_ASKING: Final = {
    "keyring.backends.kwallet.DBusKeyring": "KWallet",
    "keyring.backends.kwallet.DBusKeyringKWallet4": "KWallet",
    "keyrings.alt.file.EncryptedKeyring": "the encrypted file of keyrings.alt",
    "keyrings.cryptfile.cryptfile.CryptFileKeyring": "the encrypted file of keyrings.cryptfile",
}
"""Backends that cannot be read without asking, and cannot be kept from it."""

_NO_BACKEND: Final = (
    "start a Secret Service (gnome-keyring under dbus-run-session), or name a backend in PYTHON_KEYRING_BACKEND"
)
_UNLOCK: Final = "unlock it first: by logging in, or with gnome-keyring-daemon --unlock in this D-Bus session"


class KeyringSettings(PluginSettings):
    """`backend` is keyring's own name of one, such as `keyring.backends.SecretService.Keyring`."""

    backend: str = ""

    own_variables = {"backend": "PYTHON_KEYRING_BACKEND"}  # noqa: RUF012 - a ClassVar of the base


class Keyrings:
    """The keyrings of this session, in the order in which they are asked."""

    def __init__(self, settings: KeyringSettings) -> None:
        self._name = settings.backend

    def password(self, service: str, username: str) -> bytes | str | None:
        """What is stored, exactly; None for nothing. Raises Denied where it is locked."""
        for each in self._backends():
            of_secrets = type(each).__module__ in _SECRET_SERVICE
            found = _by_secret_service(each, service, username) if of_secrets else each.get_password(service, username)
            if found is not None:
                return found
        return None

    def state(self) -> str:
        """What is asked, for people. Raises NotConfigured where there is nothing to ask, Denied where it is locked."""
        found = self._backends()
        for each in found:
            if type(each).__module__ in _SECRET_SERVICE:
                _by_secret_service(each, "sealpipe: is there anything?", "nobody")
        return ", ".join(each.name for each in found)

    def _backends(self) -> list[KeyringBackend]:
        found = list(_members(self._chosen()))
        modules = [type(each).__module__ for each in found]
        if _SECRET_SERVICE[0] in modules:
            found = [each for each, module in zip(found, modules, strict=True) if module != _SECRET_SERVICE[1]]
        for each in found:
            name = f"{type(each).__module__}.{type(each).__qualname__}"
            if name == "keyring.backends.null.Keyring":
                raise NotConfigured("keyring is switched off here (its null backend)", remedy=_NO_BACKEND)
            if name == "keyring.backends.fail.Keyring":
                raise NotConfigured("there is no keyring here", remedy=_NO_BACKEND)
            if name in _ASKING:
                raise Unsupported(f"{_ASKING[name]} asks for a password, and nobody is asked here", remedy=_NO_BACKEND)
        return found

    def _chosen(self) -> KeyringBackend:
        if not self._name:
            return core.get_keyring()
        try:
            return core.load_keyring(self._name)
        except (ImportError, AttributeError, ValueError):
            reason = "there is no such keyring backend here"
        except RuntimeError:  # keyring's own way to say that it cannot be used
            reason = "the keyring backend that is set cannot be used here"
        raise NotConfigured(f"{reason}: {self._name[:80]}", remedy=_NO_BACKEND)


def _members(chosen: KeyringBackend) -> Iterator[KeyringBackend]:
    """A chainer's keyrings one by one."""
    if type(chosen).__module__ == "keyring.backends.chainer":
        yield from cast("Any", chosen).backends
    else:
        yield chosen


def _by_secret_service(backend: Any, service: str, username: str) -> bytes | None:
    """As keyring's backend reads, with its attributes of an item, but where it would unlock this raises Denied."""
    import secretstorage
    from secretstorage import exceptions

    scheme = backend.schemes[backend.scheme]
    path = getattr(backend, "preferred_collection", secretstorage.collection.DEFAULT_COLLECTION)
    try:
        with closing(secretstorage.dbus_init()) as connection:
            # get_default_collection() would make one, with a dialog for its password.
            collection = secretstorage.Collection(connection, path)
            if collection.is_locked():
                raise Denied("the keyring is locked", remedy=_UNLOCK)
            for item in collection.search_items({scheme["username"]: username, scheme["service"]: service}):
                if item.is_locked():
                    raise Denied("the keyring's entry is locked", remedy=_UNLOCK)
                return bytes(item.get_secret())
            return None
    except exceptions.ItemNotFoundException:
        return None  # no default collection: nothing was ever stored
    except exceptions.LockedException:
        locked = True
    except exceptions.SecretStorageException:
        locked = False
    if locked:
        raise Denied("the keyring is locked", remedy=_UNLOCK)
    raise Unavailable("the Secret Service did not answer", remedy="check the D-Bus session, and restart the keyring")
