"""What `sealpipe server key list` tells of keys."""

from __future__ import annotations

from pathlib import Path

from support.own_service import OwnService, make_own_service


def list_custody(own: OwnService) -> dict[str, str]:
    """Return the custody of each key, by its name."""
    rows = [line.split("\t") for line in own.command("key", "list").out.splitlines()]
    return {row[1]: row[4] for row in rows}


def test_a_key_that_waits_for_approval_says_so_until_it_is_approved_or_revoked(
    tmp_path: Path,
) -> None:
    own = make_own_service(tmp_path)
    account = ("--custody", "account")
    for name, words in (("plain", ()), ("one", account), ("two", account), ("gone", account)):
        assert own.command("key", "create", "--name", name, "--print", *words).code == 0
    waits = "self (account waits for approval)"
    of_init = list_custody(own)
    assert {of_init.pop(each) for each in ("one", "two", "gone")} == {waits}
    assert waits not in of_init.values()
    listed = own.command("key", "list", "--output", "json").json["keys"]
    ids = {each["name"]: each["key_id"] for each in listed}
    assert own.command("custody", "approve", ids["one"]).code == 0
    assert own.command("key", "revoke", ids["gone"]).code == 0
    custody = list_custody(own)
    assert (custody["one"], custody["two"], custody["gone"]) == ("account", waits, "self")
