"""`sealpipe shares list | show | expire`: metadata, as text and as JSON, and what each refusal ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from sealpipe import Client, Field
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal, addresses


@pytest.fixture
def codes(user: Terminal, service: RunningService) -> list[str]:
    """The short codes of three shares, oldest first; the second one never expires."""
    words: list[list[str]] = [["--expires-in", "1h"], ["--no-expiry"], ["--expires-at", "2099-01-02T03:04:05Z"]]
    made = [user.sealpipe("share", "-f", "text:x", "--output", "json", *more).json["short_code"] for more in words]
    assert len(service.seen()) == 3
    return made


def test_list_prints_code_and_expiry_newest_first(user: Terminal, codes: list[str]) -> None:
    done = user.sealpipe("shares", "list")
    assert (done.code, done.err) == (0, "")
    rows = [line.split("\t") for line in done.out.splitlines()]
    assert [row[0] for row in rows] == codes[::-1]
    assert [row[1] for row in rows[:2]] == ["2099-01-02T03:04:05Z", "does not expire"]


def test_list_as_json_has_shares_and_pagination(user: Terminal, codes: list[str]) -> None:
    told = user.sealpipe("shares", "list", "--output", "json").json
    assert list(told) == ["schema", "shares", "pagination"]
    assert [row["short_code"] for row in told["shares"]] == codes[::-1]
    assert [row["expires_at"] for row in told["shares"][:2]] == ["2099-01-02T03:04:05Z", None]
    assert told["pagination"] == {"page": 1, "limit": 25, "total_pages": 1, "total": 3}


def test_an_empty_list_is_empty_stdout_and_as_json_an_empty_array(user: Terminal) -> None:
    assert user.sealpipe("shares", "list").out == ""
    assert user.sealpipe("shares", "list", "--output", "json").json["shares"] == []


def test_pages_are_named_and_stderr_tells_that_there_are_more(user: Terminal, codes: list[str]) -> None:
    first = user.sealpipe("shares", "list", "--limit", "2")
    second = user.sealpipe("shares", "list", "--limit", "2", "--page", "2")
    assert [line.partition("\t")[0] for line in (first.out + second.out).splitlines()] == codes[::-1]
    assert (first.err, second.err) == ("page 1 of 2; --all lists all pages\n", "")


def test_all_walks_every_page(user: Terminal, service: RunningService) -> None:
    service.set_account(plan="enterprise")  # 205 creates in a row are more than the other plan's burst
    with Client(
        api_key=user.environ["SEALPIPE_API_KEY"],
        base_url=service.base_url,
        link_base_url=service.link_base_url,
    ) as client:
        made = [client.share([Field("n", str(n))], custody="off").short_code for n in range(205)]
    told = user.sealpipe("shares", "list", "--all", "--output", "json").json
    assert [row["short_code"] for row in told["shares"]] == made[::-1]
    assert told["pagination"]["total"] == 205
    walked = [seen.target for seen in service.seen() if seen.method == "GET"]
    assert walked == [f"/v1/shares?page={page}&limit=100" for page in (1, 2, 3)]
    assert len(user.sealpipe("shares", "list", "--all").out.splitlines()) == 205


def test_show_tells_a_shares_metadata_and_spends_no_view(user: Terminal, codes: list[str]) -> None:
    assert user.sealpipe("shares", "show", codes[2]).out == f"{codes[2]}\t2099-01-02T03:04:05Z\n"
    told = user.sealpipe("shares", "show", codes[1], "--output", "json").json
    assert told == {"schema": 1, "short_code": codes[1], "expires_at": None}
    assert next(iter(told)) == "schema"
    assert len(user.sealpipe("shares", "list").out.splitlines()) == 3


def test_expire_ends_a_share_and_tells_so(user: Terminal, codes: list[str]) -> None:
    done = user.sealpipe("shares", "expire", codes[0])
    assert (done.code, done.out, done.err) == (0, "", f"expired {codes[0]}\n")
    done = user.sealpipe("shares", "expire", codes[1], "--output", "json")
    assert done.json == {"schema": 1, "short_code": codes[1], "outcome": "expired"}
    assert [line.partition("\t")[0] for line in user.sealpipe("shares", "list").out.splitlines()] == [codes[2]]


ALREADY = {"schema": 1, "outcome": "already-expired"}


def test_expiring_a_share_again_on_the_same_machine_is_done(user: Terminal, codes: list[str]) -> None:
    assert user.sealpipe("shares", "expire", codes[0]).code == 0
    done = user.sealpipe("shares", "expire", codes[0])
    assert (done.code, done.out, done.err) == (0, "", f"{codes[0]} was already expired\n")
    done = user.sealpipe("shares", "expire", codes[0], "--output", "json")
    assert done.json == {**ALREADY, "short_code": codes[0]}
    assert user.sealpipe("shares", "expire", f"{codes[0]}x").code == 6


def test_expiring_again_needs_no_more_than_the_scope_to_expire(user: Terminal, service: RunningService) -> None:
    user.at(service, scopes=["shares:write"])
    code = user.sealpipe("share", "-f", "text:x", "--output", "json").json["short_code"]
    assert [user.sealpipe("shares", "expire", code).code for _ in range(3)] == [0, 0, 0]
    assert user.sealpipe("shares", "expire", "nowhere").code == 6


def test_from_another_machine_a_share_that_was_expired_looks_as_one_that_never_was(
    user: Terminal, codes: list[str], tmp_path: Path
) -> None:
    assert user.sealpipe("shares", "expire", codes[0]).code == 0
    done = user.sealpipe("shares", "expire", codes[0], "--output", "json", SEALPIPE_STATE_DIR=str(tmp_path / "other"))
    assert (done.code, done.out) == (6, "")
    assert (done.error["type"], done.error["status"], done.error["error_code"]) == ("NotFoundError", 404, 1)
    assert "a share that was expired from another machine looks the same" in done.error["remedy"]


@pytest.mark.usefixtures("extended")
def test_where_the_service_lists_what_has_ended_it_is_known_from_every_machine(
    user: Terminal, codes: list[str], tmp_path: Path
) -> None:
    assert user.sealpipe("shares", "expire", codes[0]).code == 0
    done = user.sealpipe("shares", "expire", codes[0], "--output", "json", SEALPIPE_STATE_DIR=str(tmp_path / "other"))
    assert done.json == {**ALREADY, "short_code": codes[0]}
    assert user.sealpipe("shares", "expire", "nowhere").code == 6


def test_a_share_that_ended_by_itself_has_expired_before(
    user: Terminal, service: RunningService, codes: list[str]
) -> None:
    service.advance(3600)
    assert user.sealpipe("shares", "expire", codes[0], "--output", "json").json == {**ALREADY, "short_code": codes[0]}


def test_a_note_that_is_damaged_or_cannot_be_written_proves_nothing_and_stops_nothing(
    user: Terminal, codes: list[str], tmp_path: Path
) -> None:
    state = tmp_path / "there"
    assert user.sealpipe("shares", "expire", codes[0], SEALPIPE_STATE_DIR=str(state)).code == 0
    [note] = (state / "shares").iterdir()
    assert note.stat().st_mode & 0o777 == 0o600
    note.write_bytes(note.read_bytes()[:-1])
    assert user.sealpipe("shares", "expire", codes[0], SEALPIPE_STATE_DIR=str(state)).code == 6
    (tmp_path / "file").touch()
    assert user.sealpipe("shares", "expire", codes[1], SEALPIPE_STATE_DIR=str(tmp_path / "file")).code == 0


def test_anothers_share_is_never_taken_for_one_that_has_expired(
    user: Terminal, service: RunningService, codes: list[str]
) -> None:
    service.advance(3600)
    user.at(service, account="another")
    assert [user.sealpipe("shares", "expire", code).code for code in codes] == [6, 6, 6]


@pytest.mark.parametrize("command", ["show", "expire"])
def test_a_share_that_was_never_there_ends_with_6(user: Terminal, command: str) -> None:
    done = user.sealpipe("shares", command, "nowhere")
    assert (done.code, done.out) == (6, "")
    assert "404, error_code 1" in done.err
    assert "check the short code" in done.err


@pytest.mark.parametrize("command", ["shares show", "shares expire", "shares log", "requests show", "requests expire"])
def test_a_link_in_place_of_a_code_is_refused_and_nothing_is_sent(
    user: Terminal, service: RunningService, command: str
) -> None:
    done = user.sealpipe(*command.split(), f"{service.link_base_url}/nowhere")
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert "this is a link, not a short code: nothing was sent" in done.err


@pytest.mark.parametrize(
    ("scope", "command", "missing"),
    [
        ("shares:write", "shares list", "shares:read"),
        ("shares:write", "shares show x", "shares:read"),
        ("shares:read", "shares expire x", "shares:write"),
        ("shares:write", "requests submissions x", "requests:read"),
        ("requests:write", "requests list", "requests:read"),
        ("requests:read", "stats", "stats:read"),
    ],
)
def test_a_key_without_the_scope_ends_with_4_and_names_it(
    user: Terminal, service: RunningService, scope: str, command: str, missing: str
) -> None:
    user.at(service, scopes=[scope])
    done = user.sealpipe(*command.split())
    assert (done.code, done.out) == (4, "")
    assert "error_code 78" in done.err
    assert f"create an API key with the scope {missing}, and revoke this one" in done.err


def test_a_revoked_key_ends_with_3(user: Terminal, service: RunningService) -> None:
    extra = service.create_key()
    service.revoke_key(extra)
    done = user.sealpipe("shares", "list", "--output", "json", SEALPIPE_API_KEY=extra.reveal())
    assert (done.code, done.out) == (3, "")
    assert (done.error["type"], done.error["exit_code"]) == ("AuthenticationError", 3)
    assert "not revoked" in done.error["remedy"]


def test_no_connection_ends_a_read_with_10(user: Terminal) -> None:
    done = user.sealpipe("shares", "list", "--deadline", "1s", SEALPIPE_BASE_URL="http://127.0.0.1:9/v1")
    assert (done.code, done.out) == (10, "")
    assert "no connection" in done.err


@pytest.mark.parametrize("words", [["--page", "0"], ["--limit", "x"], ["--page", "1_000"], ["--limit", "99999999999"]])
def test_a_page_that_is_no_number_is_refused(user: Terminal, service: RunningService, words: list[str]) -> None:
    done = user.sealpipe("shares", "list", *words)
    assert (done.code, done.out, service.seen()) == (2, "", [])
    assert words[0] in done.err


def test_another_accounts_shares_are_not_there(user: Terminal, service: RunningService, codes: list[str]) -> None:
    stranger = service.create_key(account="stranger").reveal()
    assert user.sealpipe("shares", "list", SEALPIPE_API_KEY=stranger).out == ""
    assert user.sealpipe("shares", "show", codes[0], SEALPIPE_API_KEY=stranger).code == 6


def test_a_two_part_credential_is_enough_to_look(bare: Terminal, service: RunningService) -> None:
    bare.environ |= addresses(service)
    two_parts = service.create_key().reveal().rpartition(".")[0]
    assert bare.sealpipe("shares", "list", SEALPIPE_API_KEY=two_parts).code == 0
