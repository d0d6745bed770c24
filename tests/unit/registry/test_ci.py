"""What a CI job offers: who runs, masks, outputs, tokens (CI-FACTS).

The token endpoint is a fake on a real socket.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from sealpipe.errors import (
    BackendAuthError,
    NotConfiguredError,
    PluginError,
    UnavailableError,
    UnsupportedError,
)
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import CI
from sealpipe.registry import Registry
from support.ci_jobs import GITHUB, GITLAB, PLAIN, Answer, endpoint
from support.ports import silent_port

__all__ = ["endpoint"]


def found(environ: dict[str, str]) -> CI:
    ci = Registry(environ=environ, network=lambda: PluginNetwork(None)).ci()
    assert ci is not None
    return ci


def jwt(**claims: object) -> str:
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.c2ln"


def test_outside_a_ci_there_is_none_and_no_token() -> None:
    registry = Registry(environ={})
    assert registry.ci() is None
    with pytest.raises(NotConfiguredError, match="no CI system"):
        registry.oidc_token("vault")


def test_each_job_knows_its_run_and_who_started_it() -> None:
    assert found(GITHUB).run() == (
        "github", "acme/app/77/2/deploy", "mallory",
        "https://github.example/acme/app/actions/runs/77",
    )  # fmt: skip
    assert found(GITLAB).run() == ("gitlab", "acme/app/99", "eve", GITLAB["CI_JOB_URL"])


def test_github_gives_a_token_for_the_audience_that_was_asked_for(
    endpoint: Callable[[Answer], dict[str, str]],
) -> None:
    seen: list[object] = []

    def answer(query: dict[str, list[str]], bearer: str) -> tuple[int, bytes]:
        seen.append((query, bearer))
        return 200, json.dumps({"value": "the.token.itself"}).encode()

    environ = endpoint(answer)
    assert found(environ).oidc_token("https://vault.example/?a&b").reveal() == "the.token.itself"
    assert (
        Registry(environ=environ, network=lambda: PluginNetwork(None)).oidc_token().reveal()
        == "the.token.itself"
    )
    version = {"api-version": ["2.0"]}
    assert seen == [
        (version | {"audience": ["https://vault.example/?a&b"]}, "bearer runner-bearer"),
        (version, "bearer runner-bearer"),
    ]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, b"{}", BackendAuthError),
        (403, b"no", BackendAuthError),
        (302, b"", NotConfiguredError),
        (429, b"", UnavailableError),
        (503, b"", UnavailableError),
        (200, b"<html>", PluginError),
        (200, b'{"value":""}', PluginError),
        (200, b"[]", PluginError),
    ],
)
def test_github_without_a_token_says_why_and_shows_no_bearer(
    endpoint: Callable[[Answer], dict[str, str]], status: int, body: bytes, error: type[PluginError]
) -> None:
    with pytest.raises(error) as caught:
        found(endpoint(lambda *_: (status, body))).oidc_token()
    assert type(caught.value) is error
    assert "runner-bearer" not in f"{caught.value} {caught.value.remedy} {caught.value!r}"


def test_a_token_endpoint_that_is_not_there_is_unavailable() -> None:
    gone = {
        "ACTIONS_ID_TOKEN_REQUEST_URL": f"http://127.0.0.1:{silent_port()}/x",
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "b",
    }
    with pytest.raises(UnavailableError, match="connection refused"):
        found(GITHUB | gone).oidc_token()


def test_github_without_the_permission_says_which() -> None:
    with pytest.raises(NotConfiguredError) as caught:
        found(GITHUB).oidc_token("vault")
    assert "id-token: write" in caught.value.remedy


def test_gitlab_gives_the_declared_token_where_its_audience_fits() -> None:
    for aud in ("vault", ["other", "vault"]):
        token = jwt(aud=aud)
        assert found(GITLAB | {"VAULT_ID_TOKEN": token}).oidc_token("vault").reveal() == token
    assert found(GITLAB | {"VAULT_ID_TOKEN": "opaque"}).oidc_token().reveal() == "opaque"
    own = {
        "SEALPIPE_PLUGIN_GITLAB__ID_TOKEN_VARIABLE": "AWS_ID_TOKEN",
        "AWS_ID_TOKEN": jwt(aud="aws"),
    }
    assert found(GITLAB | own).oidc_token("aws").reveal() == own["AWS_ID_TOKEN"]


@pytest.mark.parametrize("token", ["", jwt(aud="other"), jwt(), "opaque", "a.b.c", "a.bnVsbA.c"])
def test_gitlab_without_a_fitting_token_says_what_to_declare(token: str) -> None:
    with pytest.raises(NotConfiguredError) as caught:
        found(GITLAB | {"VAULT_ID_TOKEN": token}).oidc_token("vault")
    assert "aud" in caught.value.remedy
    assert not token or token not in f"{caught.value} {caught.value.remedy}"


MASKING = """
import os, sys
from sealpipe.plugin import Secret
from sealpipe.registry import Registry
Registry(environ=dict(os.environ)).ci().mask([Secret(value) for value in sys.argv[1:]])
"""


def masked(*values: str, stderr: int | None = None, environ: Mapping[str, str] = GITHUB) -> bytes:
    command = [sys.executable, "-c", MASKING, *values]
    done = subprocess.run(
        command, env={**os.environ, **environ}, stderr=stderr or subprocess.PIPE, check=True
    )
    return done.stderr or b""


def test_github_masks_the_value_and_each_of_its_longer_lines_one_a_command() -> None:
    lines = masked("first line\nab\n100% \r\nlast", "ab", "once", "once").decode().splitlines()
    assert lines == [
        "::add-mask::first line%0Aab%0A100%25 %0D%0Alast",
        "::add-mask::first line",
        "::add-mask::100%25 ",
        "::add-mask::last",
        "::add-mask::once",
        "::warning title=sealpipe::1 secret line is too short to be masked: do not print it",
    ]


@pytest.mark.parametrize(
    ("environ", "mask", "warning"),
    [
        (GITHUB, "::add-mask::", "::warning title=sealpipe::"),
        ({"TF_BUILD": "True"}, "##vso[task.setsecret]", "##vso[task.logissue type=warning]"),
    ],
    ids=["github", "azure"],
)
def test_lines_too_short_to_mask_are_counted_in_one_warning(
    environ: dict[str, str], mask: str, warning: str
) -> None:
    assert masked("longer", "ab", environ=environ).decode().splitlines() == [
        f"{mask}longer",
        f"{warning}1 secret line is too short to be masked: do not print it",
    ]
    assert masked("longer", "ab", "cd", environ=environ).decode().splitlines() == [
        f"{mask}longer",
        f"{warning}2 secret lines are too short to be masked: do not print them",
    ]


def test_github_masks_what_every_kind_of_break_leaves_of_a_value() -> None:
    lines = masked("one1\rtwo2\u2028three\x0bfour").decode().split("\n")
    assert [line.removeprefix("::add-mask::") for line in lines if line] == [
        "one1%0Dtwo2\u2028three\x0bfour",
        "one1",
        "two2\u2028three\x0bfour",
        "two2",
        "three",
        "four",
    ]


ANNOTATING = """
import os, sys
from sealpipe.registry import Registry
Registry(environ=dict(os.environ)).ci().annotate(*sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("environ", "told"),
    [(GITHUB, "::error title=sealpipe::100%25%0D%0A::add-mask::x\n"), (GITLAB, ""), (PLAIN, "")],
)
def test_an_error_is_shown_where_there_is_a_place_for_it(
    environ: dict[str, str], told: str
) -> None:
    command = [sys.executable, "-c", ANNOTATING, "error", "100%\r\n::add-mask::x"]
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CI", "GITHUB_ACTIONS", "GITLAB_CI")
    }
    done = subprocess.run(command, env={**bare, **environ}, capture_output=True, check=True)
    assert (done.stdout.decode(), done.stderr.decode()) == ("", told)


def test_any_other_ci_is_plain_and_every_ci_with_a_name_goes_before_it() -> None:
    assert found(PLAIN).run() == ("plain", PLAIN["BUILD_URL"], "", PLAIN["BUILD_URL"])
    assert found({"CI": "1"}).run().id == "unknown"
    assert found(GITHUB | PLAIN).run().ci == "github"
    assert found(GITLAB | PLAIN).run().ci == "gitlab"
    for off in ("", "0", "false"):
        assert Registry(environ={"CI": off}).ci() is None
    with pytest.raises(UnsupportedError):
        found(PLAIN).set_output("a", "b")


def test_a_mask_never_goes_into_a_regular_file(tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        masked("a secret", stderr=log.fileno())
    assert (tmp_path / "log").read_bytes() == b""


def test_github_outputs_stand_behind_a_delimiter_and_the_summary_is_added_to(
    tmp_path: Path,
) -> None:
    files = {
        "GITHUB_OUTPUT": str(tmp_path / "out"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    ci = found(GITHUB | files)
    ci.set_output("short-code", "a\nEOF\nb")
    ci.set_output("expires", "never")
    ci.summary("# Shared")
    first, _, rest = (tmp_path / "out").read_text().partition("\n")
    name, _, delimiter = first.partition("<<")
    assert name == "short-code"
    assert rest.startswith(f"a\nEOF\nb\n{delimiter}\nexpires<<sealpipe-")
    assert (tmp_path / "summary").read_text() == "# Shared\n"
    for bad in ("a=b", "a\nb"):
        with pytest.raises(PluginError):
            ci.set_output(bad, "x")


def test_what_a_ci_cannot_do_it_says_or_leaves_out() -> None:
    with pytest.raises(UnsupportedError):
        found(GITLAB).set_output("a", "b")
    with pytest.raises(UnsupportedError, match="GITHUB_OUTPUT"):
        found(GITHUB).set_output("a", "b")
    found(GITLAB).summary("x")
    found(GITLAB).mask([])
