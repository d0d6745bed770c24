"""KeePass databases, made and read by pykeepass: with a key derivation that takes no time."""

from __future__ import annotations

import io
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykeepass import PyKeePass
from pykeepass.entry import Entry
from pykeepass.pykeepass import BLANK_DATABASE_LOCATION, BLANK_DATABASE_PASSWORD

from support.parts import program

PASSWORD = "Canary-77bd-kdbx-81c2d904"
P = "SEALPIPE_PLUGIN_KEEPASS__"
_BLANK: list[bytes] = []
"""The content of a new database: the first one is derived slowly."""


class Databases:
    """A database in a folder."""

    def __init__(self, folder: Path, name: str = "team.kdbx") -> None:
        self.file = folder / name
        if not _BLANK:
            kp = PyKeePass(BLANK_DATABASE_LOCATION, BLANK_DATABASE_PASSWORD)
            settings = kp.kdbx.header.value.dynamic_header.kdf_parameters.data.dict
            settings["I"].value, settings["M"].value = 2, 64 * 1024
            kp.password, content = PASSWORD, io.BytesIO()
            kp.save(content)
            _BLANK.append(content.getvalue())
        self.file.write_bytes(_BLANK[0])
        self.file.chmod(0o600)

    def environ(self) -> dict[str, str]:
        """The settings that lead to it."""
        return {f"{P}DATABASE": str(self.file), f"{P}PASSWORD": PASSWORD}

    def open(self) -> Any:
        """The database, by pykeepass."""
        return PyKeePass(self.file, PASSWORD)

    def add(self, path: str, password: str = "", **more: Any) -> None:
        """Make an entry, also beside another one of that path.

        `custom` are fields, `files` attachments.
        """
        kp = self.open()
        custom, files = more.pop("custom", {}), more.pop("files", {})
        *groups, title = path.split("/")
        group = kp.root_group
        for name in groups:
            group = kp.find_groups(
                name=name, group=group, first=True, recursive=False
            ) or kp.add_group(group, name)
        entry = kp.add_entry(
            group, title, more.pop("username", ""), password, force_creation=True, **more
        )
        for name, value in custom.items():
            entry.set_custom_property(name, value, protect=True)
        for name, content in files.items():
            entry.add_attachment(kp.add_binary(content), name)
        kp.save()

    def entry(self, path: str) -> Entry:
        """The entry with that path."""
        found = [each for each in self.open().entries if "/".join(each.path) == path]
        assert len(found) == 1, found
        return found[0]

    def files(self, path: str) -> dict[str, bytes]:
        """The attachments of an entry by name."""
        return {each.filename: each.binary for each in self.entry(path).attachments}

    def fields(self, path: str) -> Mapping[str, str]:
        """What an entry holds, but its title and empty fields."""
        entry = self.entry(path)
        standard = {
            "Password": entry.password,
            "UserName": entry.username,
            "URL": entry.url,
            "Notes": entry.notes,
        }
        return {
            name: value for name, value in {**standard, **entry.custom_properties}.items() if value
        }


def keepassxc(*words: str | Path, given: str = PASSWORD) -> str:
    """Run KeePassXC's own program; it reads the password from its stdin."""
    command = [program("keepassxc-cli"), *words]
    done = subprocess.run(command, input=f"{given}\n", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout
