"""The Secret Service in the format of keyring's backend, but without its prompts.

AccessDeniedError takes their place.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import secretstorage
from jeepney import DBusErrorResponse
from secretstorage import exceptions
from secretstorage.util import open_session

from sealpipe.plugin import AccessDeniedError, NotConfiguredError, UnavailableError

T = TypeVar("T")

UNLOCK: Final = (
    "unlock it first: by logging in, or with gnome-keyring-daemon --unlock in this D-Bus session"
)
_ONE_AT_A_TIME: Final = threading.Lock()
_OPEN: Final[dict[str, tuple[Any, Any]]] = {}
"""Connection and session of this process, by the address of the bus.

They are kept, for gnome-keyring aborts when a connection ends while another one opens its session,
and what takes its place is locked (https://gitlab.gnome.org/GNOME/gnome-keyring/-/work_items/199).
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
        with _ONE_AT_A_TIME:
            return _work_in_session(path, work)
    except exceptions.ItemNotFoundException:
        failure = NotConfiguredError(
            "the Secret Service has no default keyring", remedy=_CREATE_KEYRING
        )
    except (exceptions.LockedException, exceptions.PromptDismissedException):
        failure = AccessDeniedError("the keyring is locked", remedy=UNLOCK)
    except (exceptions.SecretStorageException, DBusErrorResponse, OSError):
        failure = UnavailableError(
            "the Secret Service did not respond",
            remedy="check the D-Bus session, and restart the keyring",
        )
    raise failure


def _work_in_session(path: str, work: Callable[[Any], T]) -> T:
    """Work in the session of this process; after a failure the next call opens a new one."""
    bus = os.environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    if bus not in _OPEN:
        connection = secretstorage.dbus_init()
        atexit.register(connection.close)
        _OPEN[bus] = connection, open_session(connection)
    connection, session = _OPEN[bus]
    try:
        # get_default_collection() would create one, with a dialog for its password
        collection = secretstorage.Collection(connection, path, session)
        if collection.is_locked():
            raise AccessDeniedError("the keyring is locked", remedy=UNLOCK)
        return work(collection)
    except BaseException:
        del _OPEN[bus]
        connection.close()
        raise
