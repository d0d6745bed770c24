"""The sink k8s on kmock, with the rules for writing that the Kubernetes API has and kmock has
not.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from sealpipe.errors import (
    AccessDeniedError,
    BackendAuthError,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Mode
from sealpipe_plugins.kubernetes.sink import ANNOTATION, ANNOTATION_LIMIT
from support.backends import SECRET, put, put_refused, registry, values
from support.fake_web import Asked, first, meanwhile
from support.kubernetes import TOKEN, Cluster, status

DEFAULT = "SEALPIPE_PLUGIN_K8S__"


@pytest.fixture
def environ(cluster: Cluster) -> dict[str, str]:
    return {
        f"{DEFAULT}SERVER": cluster.base_url,
        f"{DEFAULT}TOKEN": TOKEN,
        f"{DEFAULT}TIMEOUT": "5",
    }


def held(cluster: Cluster, name: str) -> dict[str, bytes]:
    data: Mapping[str, str] = cluster.read("prod", name).get("data") or {}
    return {key: base64.b64decode(value) for key, value in data.items()}


def markers(cluster: Cluster, name: str) -> list[str]:
    found: str = (cluster.read("prod", name)["metadata"].get("annotations") or {}).get(
        ANNOTATION, ""
    )
    return found.split()


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def writes(cluster: Cluster) -> list[str]:
    return [method for method, _ in cluster.writes]


class TestWhatIsStored:
    def test_the_source_reads_it_under_the_same_reference(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        put(environ, "k8s:prod/acme", {"tls.key": "é\n", "-._": b" "})
        assert values(environ, "k8s:prod/acme#tls.key,-._") == ["é\n".encode(), b" "]
        put(
            {**environ, f"{DEFAULT}NAMESPACE": "prod"},
            "k8s:acme",
            {"raw": b"\xff\x00", "none": ""},
            "merge",
            "m2",
        )
        assert held(cluster, "acme") == {
            "tls.key": "é\n".encode(),
            "-._": b" ",
            "raw": b"\xff\x00",
            "none": b"",
        }
        assert (cluster.read("prod", "acme")["type"], markers(cluster, "acme")) == (
            "Opaque",
            ["m1", "m2"],
        )

    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_all_else_that_the_secret_has_stays(
        self, cluster: Cluster, environ: dict[str, str], mode: Mode
    ) -> None:
        meta = {"name": "tls", "namespace": "prod", "resourceVersion": "7", "labels": {"app": "a"}}
        meta["annotations"] = {"note": "theirs"}
        old = {"tls.crt": b"c", "tls.key": b"k", "ca.crt": b"\xff"}
        cluster.secret("prod", "tls", old, metadata=meta, type="kubernetes.io/tls")
        put(environ, "k8s:prod/tls", {"tls.key": "new", "tls.crt": "new"}, mode)
        found = cluster.read("prod", "tls")
        assert (found["type"], found["metadata"]["labels"]) == ("kubernetes.io/tls", {"app": "a"})
        assert found["metadata"]["annotations"] == {"note": "theirs", ANNOTATION: "m1"}
        new = {"tls.crt": b"new", "tls.key": b"new"}
        assert held(cluster, "tls") == (new if mode == "replace" else {**old, **new})
        assert (
            sorted(cluster.writes[-1][1]["data"]) == ["ca.crt", *sorted(new)][mode == "merge" :]
        ), "others are not sent"

    @pytest.mark.parametrize("nothing", [None, {}])
    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_a_secret_without_keys_gets_some(
        self,
        cluster: Cluster,
        environ: dict[str, str],
        nothing: dict[str, bytes] | None,
        mode: Mode,
    ) -> None:
        cluster.secret("prod", "void", nothing)
        put(environ, "k8s:prod/void", {"a": "x"}, mode)
        assert held(cluster, "void") == {"a": b"x"}

    def test_the_markers_of_all_submissions_are_kept_and_the_oldest_go_first(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        many = " ".join(f"{number:080}" for number in range(ANNOTATION_LIMIT // 81))
        cluster.secret("prod", "db", {"a": b"x"})
        cluster.change("prod", "db", {"metadata": {"annotations": {ANNOTATION: many}}})
        assert put(environ, "k8s:prod/db", {"a": "x"}, marker="n" * 80).already
        assert markers(cluster, "db") == [*many.split()[1:], "n" * 80]
        assert writes(cluster) == ["PATCH"]
        assert put(environ, "k8s:prod/db", {"a": "x"}, marker="n" * 80).already
        assert writes(cluster) == ["PATCH"], "what is marked is not marked again"


class TestAtTheSameMoment:
    @pytest.mark.parametrize("mode", ["replace", "merge"])
    def test_a_concurrent_write_is_noticed(
        self, cluster: Cluster, environ: dict[str, str], mode: Mode
    ) -> None:
        cluster.secret("prod", "db", {"a": b"1"})
        theirs = {"data": {"theirs": coded("x")}, "metadata": {"annotations": {ANNOTATION: "m0"}}}
        cluster.rule = self.once("PATCH", lambda: cluster.change("prod", "db", theirs))
        put(environ, "k8s:prod/db", {"ours": "y"}, mode)
        both = {"a": b"1", "theirs": b"x", "ours": b"y"}
        assert held(cluster, "db") == (both if mode == "merge" else {"ours": b"y"})
        assert markers(cluster, "db") == ["m0", "m1"]
        assert writes(cluster) == ["PATCH", "PATCH"]

    def test_where_others_never_stop_it_is_to_be_tried_later(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "db", {"a": b"1"})
        numbers = itertools.count()

        def changes(asked: Asked) -> None:
            if asked.method == "PATCH":
                cluster.change("prod", "db", {"data": {"n": coded(str(next(numbers)))}})

        cluster.rule = changes
        put_refused(
            environ,
            "k8s:prod/db",
            {"a": SECRET},
            UnavailableError,
            "other writers keep changing it",
            "merge",
        )
        assert next(numbers) < 20

    def test_a_secret_that_goes_in_between_is_made_anew(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "db", {"a": b"1"})
        cluster.rule = self.once("PATCH", lambda: cluster.delete("prod", "db"))
        put(environ, "k8s:prod/db", {"b": "2"}, "merge")
        assert held(cluster, "db") == {"b": b"2"}

    @staticmethod
    def once(method: str, do: Any) -> Any:
        return first(lambda asked: asked.method == method, meanwhile(do))


class TestRefusals:
    @pytest.mark.parametrize(
        ("method", "verb"), [("GET", "get"), ("POST", "create"), ("PATCH", "patch")]
    )
    def test_the_verb_that_is_missing_is_named(
        self, cluster: Cluster, environ: dict[str, str], method: str, verb: str
    ) -> None:
        if method == "PATCH":
            cluster.secret("prod", "db", {"old": b"1"})
        cluster.rule = lambda asked: status(403) if asked.method == method else None
        error = put_refused(
            environ, "k8s:prod/db", {"a": SECRET}, AccessDeniedError, f"denies `{verb}`", "replace"
        )
        assert f"kubectl auth can-i {verb} secrets" in error.remedy

    @pytest.mark.parametrize(
        ("code", "kind", "words"),
        [
            (401, BackendAuthError, "does not accept the login"),
            (413, UnsupportedError, "too large for Kubernetes"),
            (422, WriteConflictError, "rejected the Secret (422)"),
            (429, UnavailableError, "asks to try again later"),
            (500, UnavailableError, "was not written: the store failed"),
            (418, PluginError, "responded with 418"),
        ],
    )
    def test_each_status_reads_differently(
        self,
        cluster: Cluster,
        environ: dict[str, str],
        code: int,
        kind: type[PluginError],
        words: str,
    ) -> None:
        cluster.rule = lambda asked: status(code) if asked.method == "POST" else None
        put_refused(environ, "k8s:prod/db", {"a": SECRET}, kind, words)

    def test_a_namespace_that_is_not_there_is_named(self, environ: dict[str, str]) -> None:
        put_refused(
            environ, "k8s:dev/db", {"a": SECRET}, SecretNotFoundError, "has no namespace dev"
        )

    def test_an_immutable_secret_is_reported_and_may_have_a_marker(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "fixed", {"a": b"x"}, immutable=True)
        for mode in ("replace", "merge"):
            put_refused(
                environ, "k8s:prod/fixed", {"a": SECRET}, WriteConflictError, "is immutable", mode
            )
        assert put(environ, "k8s:prod/fixed", {"a": "x"}).already
        assert markers(cluster, "fixed") == ["m1"]

    def test_a_typed_secret_keeps_the_keys_that_it_must_have(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "tls", {"tls.crt": b"c", "tls.key": b"k"}, type="kubernetes.io/tls")
        error = put_refused(
            environ,
            "k8s:prod/tls",
            {"a": SECRET},
            WriteConflictError,
            "its type kubernetes.io/tls",
            "replace",
        )
        assert "--mode merge" in error.remedy
        assert held(cluster, "tls") == {"tls.crt": b"c", "tls.key": b"k"}

    def test_one_that_is_being_deleted_is_left_alone(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        cluster.secret("prod", "db", {"a": b"x"})
        cluster.change(
            "prod",
            "db",
            {"metadata": {"deletionTimestamp": "2026-11-21T00:00:00Z", "finalizers": ["x"]}},
        )
        put_refused(
            environ, "k8s:prod/db", {"a": SECRET}, WriteConflictError, "is being deleted", "replace"
        )

    def test_more_than_a_mebibyte_is_refused_and_as_much_is_taken(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        half = "x" * (512 * 1024)
        cluster.secret("prod", "db", {"a": half.encode()})
        put_refused(
            environ, "k8s:prod/db", {"b": half + "x"}, UnsupportedError, "1048576 bytes", "merge"
        )
        assert writes(cluster) == []
        put(environ, "k8s:prod/db", {"b": half}, "merge")
        assert sum(map(len, held(cluster, "db").values())) == 1024 * 1024

    @pytest.mark.parametrize(
        ("target", "key"),
        [
            ("k8s:prod/db", ""),
            ("k8s:prod/db", "a/b"),
            ("k8s:prod/db", ".."),
            ("k8s:prod/db", "..a"),
            ("k8s:prod/db", "é"),
            ("k8s:prod/db", "a" * 254),
            ("k8s:Prod/db", "a"),
            ("k8s:prod/../db", "a"),
            ("k8s:prod/", "a"),
            ("k8s:", "a"),
        ],
    )
    def test_an_invalid_write_fails_before_any_call(
        self, cluster: Cluster, environ: dict[str, str], target: str, key: str
    ) -> None:
        put_refused(environ, target, {key: SECRET}, ReferenceValueError, "")
        assert cluster.targets == []

    def test_the_check_tells_what_may_not_be_done_and_changes_nothing(
        self, cluster: Cluster, environ: dict[str, str]
    ) -> None:
        environ[f"{DEFAULT}NAMESPACE"] = "prod"
        health = registry(environ).check("sink", "k8s")
        assert (health.ok, "may store Secrets in the namespace prod" in health.detail) == (
            True,
            True,
        )
        cluster.allowed = False
        health = registry(environ).check("sink", "k8s")
        assert (health.ok, "(get, create, patch)" in health.detail) == (False, True)
        assert {path.rpartition("/")[2] for path in cluster.targets} == {"selfsubjectaccessreviews"}
