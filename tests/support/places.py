"""Every backend that results are stored in, set up for a test: what is typed as a target, and what is there then.

`group` is a name of the test's own, so that places never meet. `single` targets take one submission; `each` has a
place for `{submission}`, and is empty where no name of the backend could hold one.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import hvac

from support import fake_github, fake_gitlab
from support.aws import ENVIRON, Moto
from support.fake_github import FakeGitHub
from support.fake_gitlab import FakeGitLab
from support.kubernetes import TOKEN, Cluster
from support.openbao import Bao
from support.parts import BACKEND

Values = dict[str, bytes]
BOTH = "password=staging_password,user"


class Place(ABC):
    """One backend. `marked`: it keeps a marker, so what was rotated there since is left alone."""

    name: ClassVar[str]
    marked: ClassVar[bool] = True
    blind: ClassVar[bool] = False
    url = ""
    """Where it answers; empty for what is no server."""

    def environ(self, url: str = "") -> Mapping[str, str]:
        """The settings of a command that uses it: at its own address, or at that of what stands before it."""
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
        """How often a value was written there, at most. A file is made at once, and never over another."""
        del group
        return 1


class InVault(Place):
    """The versioned key-value engine of OpenBao, read with the vendor's own client."""

    name = "vault"

    def __init__(self, bao: Bao) -> None:
        self.bao, self.url = bao, bao.addr
        self._kv = hvac.Client(bao.addr, token=bao.root).secrets.kv.v2

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"VAULT_ADDR": url or self.url, "VAULT_TOKEN": self.bao.root}

    def single(self, group: str) -> Sequence[str]:
        return [f"vault:secret/{group}#{BOTH}"]

    def there(self, group: str) -> Values:
        try:
            found = self._kv.read_secret_version(group, mount_point="secret", raise_on_deleted_version=True)
        except hvac.exceptions.InvalidPath:
            return {}
        return {key: value.encode() for key, value in found["data"]["data"].items()}

    def writes(self, group: str) -> int:
        return int(self.metadata(group)["current_version"])

    def count(self, group: str) -> int:
        return self.writes(group)

    def groups(self, group: str) -> list[str]:
        return [f"{group}/{name}" for name in self.names(group)]

    def metadata(self, group: str) -> Any:
        return self._kv.read_secret_metadata(group, mount_point="secret")["data"]

    def marks(self, group: str) -> list[str]:
        """The submissions that are marked there."""
        return str((self.metadata(group)["custom_metadata"] or {}).get("sealpipe", "")).split()

    def names(self, group: str) -> list[str]:
        """What is below a path."""
        try:
            return list(self._kv.list_secrets(group, mount_point="secret")["data"]["keys"])
        except hvac.exceptions.InvalidPath:
            return []

    def rotate(self, group: str, password: str) -> None:
        members = {key: value.decode() for key, value in self.there(group).items()} | {"password": password}
        self._kv.create_or_update_secret(group, members, mount_point="secret")


class _InAws(Place):
    def __init__(self, aws: Moto) -> None:
        self.aws, self.url = aws, aws.url

    def environ(self, url: str = "") -> Mapping[str, str]:
        more = {"AWS_SECRET_ACCESS_KEY": "made-up-k3y-of-the-tests", "AWS_EC2_METADATA_DISABLED": "true"}
        more |= {"SEALPIPE_PLUGIN_AWS__ENDPOINT_URL": url or self.url}
        return {**ENVIRON, **more}


class InAwsSm(_InAws):
    """Secrets Manager."""

    name = "aws-sm"

    def single(self, group: str) -> Sequence[str]:
        return [f"aws-sm:{group}#{BOTH}"]

    def there(self, group: str) -> Values:
        client = self.aws.client("secretsmanager")
        try:
            found = client.get_secret_value(SecretId=group)
        except client.exceptions.ResourceNotFoundException:
            return {}
        return {key: value.encode() for key, value in json.loads(found["SecretString"]).items()}

    def writes(self, group: str) -> Any:
        found = self.aws.client("secretsmanager").list_secret_version_ids(SecretId=group, IncludeDeprecated=True)
        return sorted(version["VersionId"] for version in found["Versions"])

    def rotate(self, group: str, password: str) -> None:
        members = {key: value.decode() for key, value in self.there(group).items()} | {"password": password}
        self.aws.client("secretsmanager").put_secret_value(SecretId=group, SecretString=json.dumps(members))

    def count(self, group: str) -> int:
        return len(self.writes(group))

    def groups(self, group: str) -> list[str]:
        filters = [{"Key": "name", "Values": [f"{group}/"]}]
        return [each["Name"] for each in self.aws.client("secretsmanager").list_secrets(Filters=filters)["SecretList"]]


class InAwsSsm(_InAws):
    """Parameter Store."""

    name = "aws-ssm"

    def single(self, group: str) -> Sequence[str]:
        return [f"aws-ssm:/{group}/#{BOTH}"]

    def _found(self, group: str) -> Any:
        return self.aws.client("ssm").get_parameters_by_path(Path=f"/{group}/", WithDecryption=True)["Parameters"]

    def there(self, group: str) -> Values:
        return {each["Name"].rpartition("/")[2]: each["Value"].encode() for each in self._found(group)}

    def writes(self, group: str) -> Any:
        return {each["Name"]: each["Version"] for each in self._found(group)}

    def rotate(self, group: str, password: str) -> None:
        name = f"/{group}/password"
        self.aws.client("ssm").put_parameter(Name=name, Value=password, Type="SecureString", Overwrite=True)

    def count(self, group: str) -> int:
        return max(self.writes(group).values())

    def groups(self, group: str) -> list[str]:
        found = self.aws.client("ssm").get_parameters_by_path(Path=f"/{group}/", Recursive=True)["Parameters"]
        return sorted({each["Name"].strip("/").rpartition("/")[0] for each in found})


class InKubernetes(Place):
    """kmock's emulator. A Secret's name has no capitals, so that no submission can be in it."""

    name = "k8s"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.url = cluster, cluster.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"SEALPIPE_PLUGIN_K8S__SERVER": url or self.url, "SEALPIPE_PLUGIN_K8S__TOKEN": TOKEN}

    def single(self, group: str) -> Sequence[str]:
        return [f"k8s:prod/{group}#{BOTH}"]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        try:
            data = self.cluster.read("prod", group)["data"]
        except LookupError:
            return {}
        return {key: base64.b64decode(value) for key, value in data.items()}

    def writes(self, group: str) -> int:
        return int(self.cluster.read("prod", group)["metadata"]["resourceVersion"])

    def count(self, group: str) -> int:
        return self.writes(group)

    def rotate(self, group: str, password: str) -> None:
        coded = base64.b64encode(password.encode()).decode()
        self.cluster.change("prod", group, {"data": {"password": coded}})


class InGitHub(Place):
    """The secrets of a repository: a fake that opens what was sealed with its private key. Nobody can read them."""

    name, marked, blind = "github-secret", False, True

    def __init__(self, fake: FakeGitHub) -> None:
        self.fake, self.url = fake, fake.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"GITHUB_API_URL": url or self.url, "GITHUB_TOKEN": fake_github.TOKEN}

    def single(self, group: str) -> Sequence[str]:
        return [f"github-secret:acme/app#{_upper(group)}_PW=staging_password,{_upper(group)}_USER=user"]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        kept = self.fake.vaults.places["acme", "app"].opened
        names = {"password": f"{_upper(group)}_PW", "user": f"{_upper(group)}_USER"}
        return {key: kept[name] for key, name in names.items() if name in kept}

    def writes(self, group: str) -> int:
        return sum(asked.method == "PUT" and _upper(group) in asked.target for asked in self.fake.asked)

    def count(self, group: str) -> int:
        names = [asked.target for asked in self.fake.asked if asked.method == "PUT"]
        return max(sum(f"{_upper(group)}_{end}" in name for name in names) for end in ("PW", "USER"))

    def rotate(self, group: str, password: str) -> None:
        self.fake.vaults.places["acme", "app"].opened[f"{_upper(group)}_PW"] = password.encode()


class InGitLab(Place):
    """The variables of a project."""

    name = "gitlab-variable"

    def __init__(self, fake: FakeGitLab) -> None:
        self.fake, self.url = fake, fake.base_url

    def environ(self, url: str = "") -> Mapping[str, str]:
        return {"CI_SERVER_URL": url or self.url, "GITLAB_TOKEN": fake_gitlab.TOKEN}

    def single(self, group: str) -> Sequence[str]:
        return [f"gitlab-variable:acme/sub/app#{_upper(group)}_PW=staging_password,{_upper(group)}_USER=user"]

    def each(self, group: str) -> Sequence[str]:
        del group
        return []

    def there(self, group: str) -> Values:
        kept = {row["key"]: row["value"] for row in self.fake.shelves.places["projects", "acme/sub/app"]}
        names = {"password": f"{_upper(group)}_PW", "user": f"{_upper(group)}_USER"}
        return {key: kept[name].encode() for key, name in names.items() if name in kept}

    def writes(self, group: str) -> int:
        """Every request that changes a variable names it: in its path, or a new one in its body."""
        name = _upper(group)
        writing = [each for each in self.fake.asked if each.method in ("POST", "PUT")]
        return sum(name in each.target or name in each.body.decode() for each in writing)

    def count(self, group: str) -> int:
        names = [asked.body.decode() + asked.target for asked in self.fake.asked if asked.method in ("POST", "PUT")]
        return max(sum(f"{_upper(group)}_{end}" in each for each in names) for end in ("PW", "USER"))

    def rotate(self, group: str, password: str) -> None:
        self.fake.shelves.find(("projects", "acme/sub/app"), f"{_upper(group)}_PW")["value"] = password


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
        return sorted({path.name.removesuffix(end) for end in self.ends for path in self.folder.glob(f"{group}*{end}")})


class InFile(_Local):
    name, ends = "file", (".pw", ".user")

    def single(self, group: str) -> Sequence[str]:
        return [f"file:{group}.pw#staging_password", f"file:{group}.user#user"]

    def each(self, group: str) -> Sequence[str]:
        return [f"file:{group}-{{submission}}.pw#staging_password", f"file:{group}-{{submission}}.user#user"]

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
        return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}

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
            "PASSWORD=" + password if line.startswith("PASSWORD=") else line for line in path.read_text().split("\n")
        ]
        path.write_text("\n".join(lines))


def _upper(group: str) -> str:
    return group.replace("-", "_").upper()
