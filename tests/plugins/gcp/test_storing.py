"""What the sink gcp-sm leaves in Google Secret Manager, however others write and whatever is lost
on the way.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from plugins.gcp.fake_secret_manager import PROJECT, FakeSecretManager
from sealpipe.errors import (
    AccessDeniedError,
    PluginError,
    ReferenceValueError,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
)
from sealpipe.plugin import Mode
from sealpipe_plugins.gcp.writing import ANNOTATION
from support.backends import SECRET, put, put_refused, values
from support.fake_web import Asked, FakeWeb, Fault, Reply, drop_after, first, meanwhile


def is_call(suffix: str, method: str = "POST") -> Any:
    return lambda asked: asked.method == method and asked.path.endswith(suffix)


def members(google: FakeSecretManager, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(google.newest(name))
    return found


def markers(google: FakeSecretManager, name: str) -> list[str]:
    return google.secrets[name].annotations.get(ANNOTATION, "").split()


def others_add(google: FakeSecretManager, *theirs: bytes) -> Fault:
    """Right before it is done, others add these versions."""
    return meanwhile(lambda: [google.add("db", each) for each in theirs])


class TestWhatIsStored:
    def test_the_source_reads_it_under_the_same_reference(self, environ: dict[str, str]) -> None:
        put(environ, "gcp-sm:acme", {"user": "é", "a.b/c": ' "\\\n'})
        put(environ, f"gcp-sm:{PROJECT}/raw", {"": b"\xff\x00"})
        assert values(environ, "gcp-sm:acme#user,a.b/c") == ["é".encode(), b' "\\\n']

    def test_bytes_that_are_no_text_stay_bytes(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        put(environ, "gcp-sm:raw", {"": b"\xff\x00"})
        assert google.newest("raw") == b"\xff\x00"
        put_refused(environ, "gcp-sm:keys", {"a": b"\xff"}, UnsupportedError, "holds text only")

    def test_a_merge_keeps_every_other_member_as_it_is_written(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b'{ "n": 1.10,\n "pw":"old", "e":1E5 }')
        put(environ, "gcp-sm:db", {"pw": "new"}, "merge")
        assert google.newest("db") == b'{ "n": 1.10,\n "pw":"new", "e":1E5 }'

    def test_other_annotations_stay(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"{}").annotations = {"team": "a"}
        put(environ, "gcp-sm:db", {"a": "x"}, "merge")
        assert google.secrets["db"].annotations == {"team": "a", ANNOTATION: "m1"}

    @pytest.mark.parametrize("mode", ["create", "replace", "merge"])
    def test_a_secret_without_a_version_gets_its_first(
        self, mode: Mode, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db")
        assert put(environ, "gcp-sm:db", {"a": "x"}, mode).version == "1"
        assert (members(google, "db"), markers(google, "db")) == ({"a": "x"}, ["m1"])

    def test_a_disabled_version_is_only_replaced(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db").versions = [(b"x", "DISABLED")]
        for mode in ("create", "merge"):
            put_refused(
                environ,
                "gcp-sm:db",
                {"a": "x"},
                WriteConflictError,
                "is disabled or destroyed",
                mode,
            )
        assert put(environ, "gcp-sm:db", {"a": "x"}, "replace").version == "2"

    @pytest.mark.parametrize("value", ["", "x" * 65537])
    def test_what_google_does_not_store_is_refused_before_a_call(
        self, value: str, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        put_refused(environ, "gcp-sm:db", {"": value}, UnsupportedError, "Google")
        assert google.asked == []

    def test_values_with_and_without_a_key_do_not_mix(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        put_refused(
            environ, "gcp-sm:db", {"": "x", "a": "y"}, ReferenceValueError, "cannot be mixed"
        )
        google.hold("text", b"text")
        put_refused(
            environ,
            "gcp-sm:text",
            {"a": SECRET},
            WriteConflictError,
            "has a value without keys",
            "merge",
        )
        google.hold("keys", b"{}")
        put_refused(environ, "gcp-sm:keys", {"": SECRET}, WriteConflictError, "has keys", "merge")

    def test_the_checksum_is_sent(self, google: FakeSecretManager, environ: dict[str, str]) -> None:
        put(environ, "gcp-sm:db", {"": "123456789"})
        (added,) = [asked.json for asked in google.asked if asked.path.endswith(":addVersion")]
        assert added["payload"]["dataCrc32c"] == str(0xE3069283)


class TestAtTheSameMoment:
    def test_a_version_made_of_an_older_one_takes_back_no_change(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        """Of three writers, the third began with a version that lacks what the first changed."""
        google.hold("db", b'{"a": "old"}')
        theirs = [b'{"a": "new"}', b'{"a": "old", "b": "ours", "c": "theirs"}']

        def rule(asked: Asked) -> Any:
            if not is_call(":addVersion")(asked) or not theirs:
                return None
            content = theirs.pop(0)
            return meanwhile(lambda: google.add("db", content))

        google.rule = rule
        put(environ, "gcp-sm:db", {"b": "ours"}, "merge")
        assert members(google, "db") == {"a": "new", "b": "ours", "c": "theirs"}

    def test_values_of_others_stay_as_they_are_written(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        """Numbers, lists and null, which a sink does not write."""
        google.hold("db", b'{"n": 1.10, "l": [1]}')
        google.rule = first(
            is_call(":addVersion"), others_add(google, b'{"n": 1.10, "l": [2], "c": null}')
        )
        put(environ, "gcp-sm:db", {"b": "ours"}, "merge")
        assert google.newest("db") == b'{"n": 1.10, "l": [2], "b": "ours", "c": null}'

    @pytest.mark.parametrize("ours", ["theirs", "ours"])
    def test_a_create_that_came_too_late_takes_back_no_merge(
        self, ours: str, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        """One created it, with our values or others, and a third merged into that."""
        google.hold("db")
        theirs = [b'{"a": "theirs"}', b'{"a": "theirs", "c": "merged"}']
        google.rule = first(is_call(":addVersion"), others_add(google, *theirs))
        if ours == "theirs":
            put(environ, "gcp-sm:db", {"a": ours}, "create")
        else:
            put_refused(environ, "gcp-sm:db", {"a": ours}, WriteConflictError, "same moment")
        assert members(google, "db") == {"a": "theirs", "c": "merged"}

    def test_a_version_that_cannot_be_read_at_once_is_merged(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        """A later call would not see it: ours is newer."""
        google.hold("db", b'{"a": "old"}')
        between = first(is_call(":addVersion"), others_add(google, b'{"a": "old", "c": "theirs"}'))
        failure = first(is_call("/versions/2:access", "GET"), Reply(503))
        google.rule = lambda asked: between(asked) or failure(asked)
        put(environ, "gcp-sm:db", {"b": "ours"}, "merge")
        assert members(google, "db") == {"a": "old", "b": "ours", "c": "theirs"}

    def test_a_version_that_stays_unreadable_is_an_error_that_names_it(
        self, google: FakeSecretManager, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("time.sleep", lambda _: None)
        google.hold("db", b'{"a": "old"}')
        between = first(is_call(":addVersion"), others_add(google, b'{"c": "theirs"}'))
        unreadable = is_call("/versions/2:access", "GET")
        google.rule = lambda asked: between(asked) or (Reply(503) if unreadable(asked) else None)
        error = put_refused(
            environ, "gcp-sm:db", {"b": "ours"}, PluginError, "version 2 of another", "merge"
        )
        assert not isinstance(error, UnavailableError), "called again, it would be called stored"

    def test_a_merge_whose_response_is_lost_keeps_what_was_between(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b'{"a": "old"}')

        def lost(fake: FakeWeb, asked: Asked) -> None:
            google.add("db", b'{"a": "old", "c": "theirs"}')
            drop_after(fake, asked)

        google.rule = first(is_call(":addVersion"), lost)
        put(environ, "gcp-sm:db", {"b": "ours"}, "merge")
        assert members(google, "db") == {"a": "old", "b": "ours", "c": "theirs"}

    def test_a_marker_is_written_over_none_of_others(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b'{"a": "x"}')

        def mark() -> None:
            google.secrets["db"].annotations = {ANNOTATION: "theirs"}
            google.secrets["db"].etag += 1

        google.rule = first(is_call("/db", "PATCH"), meanwhile(mark))
        assert put(environ, "gcp-sm:db", {"a": "x"}).already
        assert markers(google, "db") == ["theirs", "m1"]

    def test_who_never_comes_between_two_writers_says_so(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"{}")
        numbers = itertools.count()

        def theirs() -> None:
            google.add("db", json.dumps({f"k{next(numbers)}": "x"}).encode())

        google.rule = lambda asked: meanwhile(theirs) if is_call(":addVersion")(asked) else None
        put_refused(
            environ,
            "gcp-sm:db",
            {"a": "x"},
            UnavailableError,
            "other writers keep changing it",
            "merge",
        )

    def test_a_number_that_no_writers_explain_is_not_counted_up_to(
        self, google: FakeSecretManager, environ: dict[str, str]
    ) -> None:
        google.hold("db", b"{}")
        name, sent = f"projects/{PROJECT}/secrets/db/versions/{10**17}", list[Any]()

        def rule(asked: Asked) -> Reply | None:
            if is_call(":addVersion")(asked):
                sent.append(asked.json["payload"])
            is_new = asked.path.endswith((":addVersion", f"/{10**17}:access"))
            return Reply(200, {"name": name, "payload": sent[-1]}) if is_new else None

        google.rule = rule
        put_refused(
            environ,
            "gcp-sm:db",
            {"a": "x"},
            UnavailableError,
            "other writers keep changing it",
            "merge",
        )
        assert put(environ, "gcp-sm:db", {"a": "x"}, "replace").version == str(10**17)


def test_a_login_is_told_which_permission_it_lacks(
    google: FakeSecretManager, environ: dict[str, str]
) -> None:
    google.hold("db", b"{}")
    denied = Reply(403, {"error": {"status": "PERMISSION_DENIED"}})
    for permission, target, fits in (
        ("secretmanager.secrets.get", "gcp-sm:db", is_call("/db", "GET")),
        ("secretmanager.secrets.create", "gcp-sm:new", is_call("/secrets")),
        ("secretmanager.versions.add", "gcp-sm:db", is_call(":addVersion")),
        ("secretmanager.secrets.update", "gcp-sm:db", is_call("/db", "PATCH")),
    ):
        google.rule = first(fits, denied)
        put_refused(environ, target, {"a": "x"}, AccessDeniedError, permission, "merge")
