"""`sealpipe shares list | show | expire`: metadata, as text and as JSON, and what each refusal ends
with.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealpipe import Client, Field
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal


@pytest.fixture
def codes(user: Terminal) -> list[str]:
    """The short codes of two shares, the first of which expires within the hour."""
    more: list[list[str]] = [["--expires-in", "1h"], ["--no-expiry"]]
    return [
        user.sealpipe("share", "-f", "text:x", "--output", "json", *each).json["short_code"]
        for each in more
    ]


def test_all_walks_every_page(user: Terminal, service: RunningService) -> None:
    # 205 creates in a row are more than the other plan's burst.
    service.set_account(plan="enterprise")
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


def test_on_a_terminal_lists_are_aligned_below_the_names_of_their_columns(user: Terminal) -> None:
    named = user.sealpipe(
        "share",
        "-f",
        "text:x",
        "--name",
        "staging-db",
        "--title",
        "Staging \u202e",
        "--output",
        "json",
    )
    plain = user.sealpipe("share", "-f", "text:x", "--no-expiry", "--output", "json")
    asked = user.sealpipe("request", "-a", "Password", "--output", "json")
    assert re.sub(r"\d{4}-\S+Z", "<time>              ", user.on_a_terminal("shares", "list")) == (
        f"CODE          EXPIRES               STATE   NAME        TITLE\n"
        f"{plain.json['short_code']}  does not expire       active  -           -\n"
        f"{named.json['short_code']}  <time>                active  staging-db  Staging \\u202e\n"
    )
    assert user.on_a_terminal("shares", "show", plain.json["short_code"]).splitlines() == [
        "CODE          EXPIRES          STATE        NAME  TITLE",
        f"{plain.json['short_code']}  does not expire  not expired  -     -",
    ]
    header, row = user.on_a_terminal("requests", "list").splitlines()
    assert header.split() == ["CODE", "EXPIRES", "KEY", "STATE", "NAME", "TITLE"]
    assert row.split()[0] == asked.json["short_code"]
    assert row[header.index("KEY") :].split() == ["credential", "active", "-", "Password"]
    assert (
        user.sealpipe("shares", "list").out.splitlines()[0]
        == f"{plain.json['short_code']}\tdoes not expire\tactive\t-\t-"
    )


ALREADY = {"schema": 1, "outcome": "already-expired"}


@pytest.mark.usefixtures("extended")
def test_where_the_service_lists_what_has_ended_it_is_known_from_every_machine(
    user: Terminal, codes: list[str], tmp_path: Path
) -> None:
    assert user.sealpipe("shares", "expire", codes[0]).code == 0
    done = user.sealpipe(
        "shares", "expire", codes[0], "--output", "json", SEALPIPE_STATE_DIR=str(tmp_path / "other")
    )
    assert done.json == {**ALREADY, "short_code": codes[0]}
    assert user.sealpipe("shares", "expire", "nowhere").code == 6


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
    assert (
        user.sealpipe("shares", "expire", codes[1], SEALPIPE_STATE_DIR=str(tmp_path / "file")).code
        == 0
    )
