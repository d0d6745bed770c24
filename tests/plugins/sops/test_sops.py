"""sops:PATH#KEY, with the real program and age keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from plugins.sops.age import Encrypt, Keys, encrypt, keys, others
from sealpipe.errors import (
    AccessDeniedError,
    NotConfiguredError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
)
from sealpipe.reference import parse_field
from sealpipe.registry import Registry
from sealpipe.sources.resolve import MAX_TRIES, resolve
from sealpipe.wire.fields import Field
from support.backends import as_nobody, opened
from support.fake_web import FakeWeb, Reply, drop
from support.parts import program
from support.playing import play
from support.ports import silent_port

__all__ = ["encrypt", "keys", "others"]

CANARY = "Canary-40ce"


@pytest.fixture
def environ(keys: Keys, tmp_path: Path) -> dict[str, str]:
    """What a job has that may decrypt."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SOPS_AGE_KEY_FILE": str(keys.file)}


def fetched(
    *texts: str, environ: Mapping[str, str], config: Mapping[str, object] | None = None
) -> list[Field]:
    registry = Registry(environ=environ, config=lambda: config or {})
    fields: list[Field] = resolve([parse_field(text) for text in texts], lambda: registry)
    return fields


def values(
    *texts: str, environ: Mapping[str, str], config: Mapping[str, object] | None = None
) -> list[tuple[str, bytes]]:
    return [(field.key, opened(field)) for field in fetched(*texts, environ=environ, config=config)]


YAML = "db:\n  password: hunter2\n  port: 5432\n  hosts: [a, b]\n  on: true\nkey: |\n  one\n  twö\n"
MEMBERS = {
    "db": {"password": "hunter2", "port": 5432, "hosts": ["a", "b"], "on": True},
    "key": "one\ntwö\n",
}
DOCUMENTS = {"a.yaml": YAML, "a.yml": YAML, "a.json": json.dumps(MEMBERS)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_keys_are_taken_out_of_a_decrypted_document(
    name: str, encrypt: Encrypt, environ: Mapping[str, str]
) -> None:
    path = encrypt(name, DOCUMENTS[name])
    assert b"hunter2" not in path.read_bytes()
    assert values(
        f"sops:{path}#/db/password,Port=/db/port,/db/hosts/1,/db/on,key", environ=environ
    ) == [
        ("password", b"hunter2"),
        ("Port", b"5432"),
        ("1", b"b"),
        ("on", b"true"),
        ("key", "one\ntwö\n".encode()),
    ]


def test_dotenv_and_ini_are_maps_too(encrypt: Encrypt, environ: Mapping[str, str]) -> None:
    dotenv = encrypt("prod.env", "USER=app\nPASSWORD=a=b c#d\n")
    ini = encrypt("prod.ini", "[db]\npassword = hunter2\n")
    assert values(f"sops:{dotenv}#*", environ=environ) == [
        ("USER", b"app"),
        ("PASSWORD", b"a=b c#d"),
    ]
    assert values(f"sops:{ini}#/db/password", environ=environ) == [("password", b"hunter2")]


def test_a_binary_file_is_taken_exactly(encrypt: Encrypt, environ: Mapping[str, str]) -> None:
    content = "\ufeffbegin\r\n\té\n".encode()
    assert values(f"sops:{encrypt('deploy.pem', content)}", environ=environ) == [
        ("deploy.pem", content)
    ]


def test_any_file_is_taken_whole_where_raw_asks_for_it(
    encrypt: Encrypt, environ: Mapping[str, str]
) -> None:
    path = encrypt("kube.yaml", "# which one\nuser: app\ntoken: hunter2\n")
    assert values(f"sops:{path}?raw=1", environ=environ) == [
        ("kube.yaml", b"# which one\nuser: app\ntoken: hunter2\n")
    ]
    assert values(f"sops:{path}?raw=1&format=yaml#token", environ=environ) == [
        ("token", b"hunter2")
    ]


def test_the_format_can_be_given_where_the_name_does_not_tell(
    encrypt: Encrypt, environ: Mapping[str, str]
) -> None:
    path = encrypt("secrets.enc", "a: hunter2\n", "--input-type", "yaml", "--output-type", "yaml")
    assert values(f"sops:{path}?input=yaml#a", environ=environ) == [("a", b"hunter2")]
    assert values(f"sops:{path}?input=yaml&raw=1", environ=environ) == [
        ("secrets.enc", b"a: hunter2\n")
    ]
    with pytest.raises(PluginError, match="not encrypted by sops, or not in the format") as caught:
        values(f"sops:{path}", environ=environ)
    assert "?input=yaml" in caught.value.remedy


def test_several_yaml_documents_are_not_silently_one(
    encrypt: Encrypt, environ: Mapping[str, str]
) -> None:
    path = encrypt("two.yaml", "# head\na: 1\n---\na: 2\n")
    with pytest.raises(ReferenceValueError, match="several YAML documents") as caught:
        values(f"sops:{path}#a", environ=environ)
    assert "?raw=1" in caught.value.remedy
    assert values(f"sops:{path}?raw=1", environ=environ) == [
        ("two.yaml", b"# head\na: 1\n---\na: 2\n")
    ]
    one = encrypt("one.yaml", "---\na: hunter2\n")
    assert values(f"sops:{one}#a", environ=environ) == [("a", b"hunter2")]


@pytest.mark.parametrize(
    "name", ["-x.yaml", "--help", "--output=made", "a b.yaml", "é;$(touch made).yaml"]
)
def test_a_path_is_a_file_and_nothing_else(
    name: str,
    encrypt: Encrypt,
    environ: Mapping[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encrypt("a.yaml", "a: hunter2\n").rename(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert values(f"sops:{name}?input=yaml#a", environ=environ) == [("a", b"hunter2")]
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("variable", ["SOPS_AGE_KEY_FILE", "SOPS_AGE_KEY"])
def test_keys_are_what_sops_itself_knows_them_by(
    variable: str, encrypt: Encrypt, environ: dict[str, str], keys: Keys
) -> None:
    path = encrypt("a.yaml", "a: hunter2\n")
    del environ["SOPS_AGE_KEY_FILE"]
    environ[variable] = {"SOPS_AGE_KEY_FILE": str(keys.file), "SOPS_AGE_KEY": keys.private}[
        variable
    ]
    assert values(f"sops:{path}#a", environ=environ) == [("a", b"hunter2")]


def test_each_failure_reads_differently(
    encrypt: Encrypt, environ: dict[str, str], others: Keys, tmp_path: Path
) -> None:
    good = encrypt("good.yaml", f"a: {CANARY}\nplain_unencrypted: x\n")
    theirs = encrypt("theirs.yaml", f"a: {CANARY}\n", recipient=others.recipient)
    (tmp_path / "plain.yaml").write_text(f"a: {CANARY}\n")
    (tmp_path / "broken.json").write_text(f'{{"a": "{CANARY}')
    data = re.sub(r"data:(....)", "data:AAAA", good.read_text(), count=1)
    (tmp_path / "data.yaml").write_text(data)
    (tmp_path / "mac.yaml").write_text(
        good.read_text().replace("plain_unencrypted: x", "plain_unencrypted: y")
    )
    (tmp_path / "wrong.key").write_text(CANARY)
    os.mkfifo(tmp_path / "fifo")
    key = "SOPS_AGE_KEY_FILE"
    no_key = {name: value for name, value in environ.items() if name != key}
    cases: list[tuple[str, Mapping[str, str], type[PluginError], str]] = [
        (f"{tmp_path}/none.yaml", environ, SecretNotFoundError, "does not exist"),
        (f"{tmp_path}", environ, PluginError, "is a directory"),
        (f"{tmp_path}/fifo", environ, PluginError, "is not a regular file"),
        ("", environ, ReferenceValueError, "needs a path"),
        (f"{tmp_path}/plain.yaml", environ, PluginError, "is not encrypted by sops"),
        (f"{tmp_path}/broken.json", environ, PluginError, "is not encrypted by sops"),
        (
            f"{tmp_path}/data.yaml",
            environ,
            PluginError,
            "was changed after it was encrypted, or is damaged",
        ),
        (f"{tmp_path}/mac.yaml", environ, PluginError, "its MAC does not match"),
        (
            f"{theirs}",
            environ,
            AccessDeniedError,
            "is encrypted for keys that are not available here",
        ),
        (f"{good}", no_key, NotConfiguredError, "needs an age key, but none is set"),
        (
            f"{good}",
            {**environ, key: "/none"},
            NotConfiguredError,
            "that SOPS_AGE_KEY_FILE names cannot be read",
        ),
        (
            f"{good}",
            {**environ, key: f"{tmp_path}/wrong.key"},
            NotConfiguredError,
            "the one that is set is invalid",
        ),
        (
            f"{good}",
            {**no_key, "SOPS_AGE_KEY": CANARY},
            NotConfiguredError,
            "the one that is set is invalid",
        ),
        (
            f"{good}",
            {**environ, "PATH": "/none"},
            NotConfiguredError,
            "the program sops is not on PATH",
        ),
    ]
    seen = set()
    for body, variables, kind, why in cases:
        with pytest.raises(kind) as caught:
            values(f"sops:{body}#a", environ=variables)
        error = caught.value
        assert why in error.message
        assert type(error) is kind
        assert error.remedy, why
        assert CANARY not in repr(vars(error))
        seen.add(error.message)
    assert len(seen) == len(cases) - 1  # a wrong key is told alike, wherever it stands
    (tmp_path / "locked.yaml").write_bytes(good.read_bytes())
    (tmp_path / "locked.yaml").chmod(0)
    with as_nobody(), pytest.raises(AccessDeniedError, match="may not be read by this user"):
        values(f"sops:{tmp_path}/locked.yaml#a", environ=environ)


KMS = """\
a: ENC[AES256_GCM,data:6hQ5cA==,iv:5Ppq734a86PVoPMthxxT+ImqLRnPPLsjaoGcQ9pWM9Y=,\
tag:+2t9xUo7h4KpZk6WRJ9z3Q==,type:str]
sops:
    kms:
        - arn: arn:aws:kms:us-east-1:000000000000:key/11111111-2222-3333-4444-555555555555
          created_at: "2026-01-01T00:00:00Z"
          enc: AQICAHiKYbBtEVyB1ZsW
    lastmodified: "2026-01-01T00:00:00Z"
    mac: ENC[AES256_GCM,data:6hQ5cA==,iv:AAAA,tag:AAAA,type:str]
    version: 3.11.0
"""


def test_a_key_service_without_login_differs_from_a_silent_one(
    environ: dict[str, str], tmp_path: Path
) -> None:
    program("sops")
    (tmp_path / "kms.yaml").write_text(KMS)
    nobody = {**environ, "AWS_EC2_METADATA_DISABLED": "true"}
    login = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_MAX_ATTEMPTS": "1"}
    with pytest.raises(NotConfiguredError, match="that has no login here"):
        values(f"sops:{tmp_path}/kms.yaml#a", environ=nobody)
    denied = {"__type": "AccessDeniedException", "Message": CANARY}
    with FakeWeb() as fake:
        fake.instead = [Reply(400, denied)]
        environ = {**nobody, **login, "AWS_ENDPOINT_URL": fake.base_url}
        with pytest.raises(AccessDeniedError, match="key service that denies access") as caught:
            values(f"sops:{tmp_path}/kms.yaml#a", environ=environ)
        assert CANARY not in repr(vars(caught.value))
        fake.instead = [drop]
        hangs_up, is_not_there = fake.base_url, f"http://127.0.0.1:{silent_port()}"
        for url in (hangs_up, is_not_there):
            registry = Registry(environ={**nobody, **login, "AWS_ENDPOINT_URL": url})
            locator = registry.locate(parse_field(f"sops:{tmp_path}/kms.yaml#a").ref)
            error = registry.fetch({"sops": [locator]})[locator]
            assert isinstance(error, UnavailableError)
            assert "key service that did not respond" in error.message


def recorder(folder: Path, then: str) -> Path:
    """A program that notes its argv and environment before it does something else."""
    path = folder / "recorder"
    path.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > "{folder}/argv"\n'
        f'tr "\\0" "\\n" < /proc/$$/environ > "{folder}/environ"\n{then}\n'
    )
    path.chmod(0o755)
    return path


def test_nothing_of_ours_and_no_secret_reaches_the_program(
    encrypt: Encrypt, environ: dict[str, str], tmp_path: Path
) -> None:
    path = encrypt("a.yaml", "a: hunter2\n")
    tool = recorder(tmp_path, f'exec {program("sops")} "$@"')
    environ |= {"SEALPIPE_API_KEY": CANARY, "SEALPIPE_PLUGIN_VAULT__TOKEN": CANARY, "KEPT": "yes"}
    config = {"plugins": {"sops": {"program": str(tool)}}}
    assert values(f"sops:{path}#a", environ=environ, config=config) == [("a", b"hunter2")]
    assert (tmp_path / "argv").read_text().splitlines() == [
        "decrypt",
        "--output-type",
        "json",
        "--",
        str(path),
    ]
    given = dict(
        line.partition("=")[::2] for line in (tmp_path / "environ").read_text().splitlines()
    )
    assert given.keys() - {"PWD", "OLDPWD", "SHLVL", "_"} == {
        "PATH",
        "HOME",
        "SOPS_AGE_KEY_FILE",
        "KEPT",
    }


def test_a_sops_that_hangs_is_unavailable_and_tried_again(
    encrypt: Encrypt, environ: dict[str, str], tmp_path: Path
) -> None:
    path = encrypt("a.yaml", "a: hunter2\n")
    tool = recorder(tmp_path, f'echo x >> "{tmp_path}/times"; exec sleep 60')
    (tmp_path / "times").touch()
    config = {"plugins": {"sops": {"program": str(tool), "timeout": 1.5}}}
    registry = Registry(environ=environ, config=lambda: config)
    waits: list[float] = []
    with pytest.raises(UnavailableError, match=r"sops did not finish within 1.5 s"):
        play(lambda: resolve([parse_field(f"sops:{path}#a")], lambda: registry), wait=waits.append)
    assert len(waits) + 1 == MAX_TRIES
    # A busy machine may start none of them in its time.
    assert (tmp_path / "times").read_text("ascii") in ["x\n" * n for n in range(MAX_TRIES + 1)]


def test_doctor_names_the_version(environ: Mapping[str, str]) -> None:
    program("sops")
    health = Registry(environ=environ).check("source", "sops")
    assert health.ok
    assert re.fullmatch(r"sops 3\.[0-9.]+", health.detail)
