"""The Secret Service in the format of keyring's backend, but without its prompts.

AccessDeniedError takes their place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, Final, NamedTuple, TypeVar

import secretstorage
from secretstorage import exceptions

from sealpipe.plugin import AccessDeniedError, NotConfiguredError, UnavailableError

T = TypeVar("T")

UNLOCK: Final = (
    "unlock it first: by logging in, or with gnome-keyring-daemon --unlock in this D-Bus session"
)
_ONE_AT_A_TIME: Final = threading.Lock()
"""While connections of one process come and go at once, gnome-keyring sometimes says that an entry
does not exist.
"""

_CREATE_KEYRING: Final = (
    "log in on a desktop once, or start it with gnome-keyring-daemon --unlock, which creates one"
)


class SecretServiceEntry(NamedTuple):
    """An entry of a keyring backend."""

    backend: Any
    service: str
    username: str

    @property
    def attributes(self) -> Mapping[str, str]:
        """The attributes that identify it."""
        scheme = self.backend.schemes[self.backend.scheme]
        return {scheme["username"]: self.username, scheme["service"]: self.service}


def read(entry: SecretServiceEntry) -> bytes | None:
    """Return the stored bytes, or None."""

    def read_secret(collection: Any) -> bytes | None:
        item = _find_item(collection, entry)
        return None if item is None else bytes(item.get_secret())

    try:
        return _run_in_collection(entry, read_secret)
    except NotConfiguredError:
        return None  # no default collection: nothing has ever been stored


def write(entry: SecretServiceEntry, value: bytes) -> None:
    """Store the value in the existing entry, or in a new one in keyring's format.

    Raises NotConfiguredError if there is no keyring.
    """

    def write_secret(collection: Any) -> None:
        item = _find_item(collection, entry)
        if item is not None:
            item.set_secret(value)
            return
        label = f"Password for '{entry.username}' on '{entry.service}'"
        attributes = {**entry.attributes, "application": entry.backend.appid}
        collection.create_item(label, attributes, value, replace=True)

    _run_in_collection(entry, write_secret)


def _find_item(collection: Any, entry: SecretServiceEntry) -> Any:
    for item in collection.search_items(dict(entry.attributes)):
        if item.is_locked():
            raise AccessDeniedError("the keyring's entry is locked", remedy=UNLOCK)
        return item
    return None


def _run_in_collection(entry: SecretServiceEntry, work: Callable[[Any], T]) -> T:
    path = getattr(
        entry.backend, "preferred_collection", secretstorage.collection.DEFAULT_COLLECTION
    )
    failure: AccessDeniedError | NotConfiguredError | UnavailableError
    try:
        with _ONE_AT_A_TIME, closing(secretstorage.dbus_init()) as connection:
            # get_default_collection() would create one, with a dialog for its password
            collection = secretstorage.Collection(connection, path)
            if collection.is_locked():
                raise AccessDeniedError("the keyring is locked", remedy=UNLOCK)
            return work(collection)
    except exceptions.ItemNotFoundException:
        failure = NotConfiguredError(
            "the Secret Service has no default keyring", remedy=_CREATE_KEYRING
        )
    except (exceptions.LockedException, exceptions.PromptDismissedException):
        failure = AccessDeniedError("the keyring is locked", remedy=UNLOCK)
    except exceptions.SecretStorageException:
        failure = UnavailableError(
            "the Secret Service did not respond",
            remedy="check the D-Bus session, and restart the keyring",
        )
    raise failure
