"""A backend that results are stored in, set up for a test: what is typed as a target, and what is
there then.

Here are those of this machine; a product's stands beside its server or fake.

`group` is a name of the test's own, so that places never meet. `single` targets take one
submission; `each` has a place for `{submission}`, and is empty where no name of the backend could
hold one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from support.parts import BACKEND

Values = dict[str, bytes]
BOTH = "password=staging_password,user"


def upper(group: str) -> str:
    """A group as variables are called."""
    return group.replace("-", "_").upper()


class Place(ABC):
    """One backend. `marked`: it keeps a marker, so what was rotated there since is left alone."""

    name: ClassVar[str]
    marked: ClassVar[bool] = True
    blind: ClassVar[bool] = False
    url = ""
    """Where it answers; empty for what is no server."""

    def environ(self, url: str = "") -> Mapping[str, str]:
        """The settings of a command that uses it: at its own address, or at that of what stands
        before it.
        """
        del url
        return {}

    def address(self) -> tuple[str, int]:
        """Its host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or 0

    @abstractmethod
    def single(self, group: str) -> Sequence[str]: ...

    def each(self, group: str) -> Sequence[str]:
        return self.single(f"{group}/{{submission}}")

    @abstractmethod
    def there(self, group: str) -> Values:
        """What is stored, as `password` and `user`; empty for nothing."""

    def writes(self, group: str) -> Any:
        """What changes with every write; None where the backend tells of none."""
        del group

    def rotate(self, group: str, password: str) -> None:
        """Somebody else changes the password."""
        raise NotImplementedError

    def groups(self, group: str) -> list[str]:
        """What `each` has made of a group: names for `there` and `writes`."""
        return [group]

    def count(self, group: str) -> int:
        """How often a value was written there, at most.

        A file is made at once, and never over another.
        """
        del group
        return 1


class InKeyring(Place):
    """The real gnome-keyring."""

    name, marked = "keyring", False

    def __init__(self, session: Mapping[str, str]) -> None:
        self._session = session

    def environ(self, url: str = "") -> Mapping[str, str]:
        del url
        names = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
        return {**{name: self._session[name] for name in names}, "PYTHON_KEYRING_BACKEND": BACKEND}

    def single(self, group: str) -> Sequence[str]:
        return [f"keyring:{group}/password#staging_password", f"keyring:{group}/user#user"]

    def each(self, group: str) -> Sequence[str]:
        return self.single(f"{group}-{{submission}}")

    def groups(self, group: str) -> list[str]:
        return sorted(service for service in self.services() if service.startswith(f"{group}-"))

    def services(self) -> set[str]:
        """All that there are."""
        with self._items({}) as items:
            return {item.get_attributes().get("service", "") for item in items}

    def there(self, group: str) -> Values:
        with self._items({"service": group}) as items:
            return {item.get_attributes()["username"]: item.get_secret() for item in items}

    def rotate(self, group: str, password: str) -> None:
        with self._items({"service": group}) as items:
            for item in items:
                if item.get_attributes()["username"] == "password":
                    item.set_secret(password.encode())

    @contextmanager
    def _items(self, wanted: Mapping[str, str]) -> Iterator[list[Any]]:
        import secretstorage
        from jeepney.io.blocking import open_dbus_connection

        with open_dbus_connection(self._session["DBUS_SESSION_BUS_ADDRESS"]) as connection:
            yield list(secretstorage.search_items(connection, dict(wanted)))


class _Local(Place):
    """Files. `folder` is where the command runs; the inode is new with every write."""

    marked = False
    ends: ClassVar[tuple[str, ...]] = ()

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def writes(self, group: str) -> Any:
        found = [path for path in self.folder.glob(f"{group}*") if path.suffix != ".json"]
        files = [each for path in found for each in (path.rglob("*") if path.is_dir() else [path])]
        assert {each.stat().st_mode & 0o777 for each in files if each.is_file()} == {0o600}
        return {str(each): (each.stat().st_ino, each.stat().st_mtime_ns) for each in files}

    def groups(self, group: str) -> list[str]:
        return sorted(
            {
                path.name.removesuffix(end)
                for end in self.ends
                for path in self.folder.glob(f"{group}*{end}")
            }
        )


class InFile(_Local):
    name, ends = "file", (".pw", ".user")

    def single(self, group: str) -> Sequence[str]:
        return [f"file:{group}.pw#staging_password", f"file:{group}.user#user"]

    def each(self, group: str) -> Sequence[str]:
        return [
            f"file:{group}-{{submission}}.pw#staging_password",
            f"file:{group}-{{submission}}.user#user",
        ]

    def there(self, group: str) -> Values:
        files = {"password": self.folder / f"{group}.pw", "user": self.folder / f"{group}.user"}
        return {key: path.read_bytes() for key, path in files.items() if path.exists()}

    def rotate(self, group: str, password: str) -> None:
        (self.folder / f"{group}.pw").write_text(password)


class InDir(_Local):
    name = "dir"

    def single(self, group: str) -> Sequence[str]:
        return [f"dir:{group}#{BOTH}"]

    def there(self, group: str) -> Values:
        folder = self.folder / group
        return (
            {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}
        )

    def groups(self, group: str) -> list[str]:
        return [f"{group}/{path.name}" for path in (self.folder / group).glob("*")]

    def rotate(self, group: str, password: str) -> None:
        (self.folder / group / "password").write_text(password)


class InDotenv(_Local):
    name, ends = "dotenv", (".env",)

    def single(self, group: str) -> Sequence[str]:
        return [f"dotenv:{group}.env#PASSWORD=staging_password,USER_NAME=user"]

    def each(self, group: str) -> Sequence[str]:
        return self.single(f"{group}-{{submission}}")

    def there(self, group: str) -> Values:
        from dotenv import dotenv_values

        path = self.folder / f"{group}.env"
        found = dotenv_values(path) if path.exists() else {}
        names = {"PASSWORD": "password", "USER_NAME": "user"}
        return {names[key]: (value or "").encode() for key, value in found.items()}

    def rotate(self, group: str, password: str) -> None:
        path = self.folder / f"{group}.env"
        lines = [
            "PASSWORD=" + password if line.startswith("PASSWORD=") else line
            for line in path.read_text().split("\n")
        ]
        path.write_text("\n".join(lines))
