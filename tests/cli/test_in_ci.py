"""What the command line does where a CI system is around it: masks first, outputs at once, errors
shown.
"""

from __future__ import annotations

from sealpipe_rehearsal.running_service import RunningService
from support.github_log import command, pairs
from support.terminal import Terminal, opened

GITHUB = {"GITHUB_ACTIONS": "true", "CI": "true"}


def test_a_link_is_masked_before_it_is_printed_and_its_code_is_an_output(
    user: Terminal, service: RunningService
) -> None:
    output = user.here / "output"
    done = user.sealpipe(
        "share",
        "-f",
        "Note=text:some note",
        "--title",
        "a title",
        **GITHUB,
        GITHUB_OUTPUT=str(output),
    )
    link = done.out.rstrip("\n")
    fragment = link.partition("#")[2]
    commands = [found for found in map(command, done.err.splitlines()) if found]
    assert [(each.name, each.data) for each in commands] == [
        ("add-mask", link),
        ("add-mask", fragment),
        ("add-mask", fragment[1:]),
    ]
    handed = dict(pairs(output.read_text()))
    assert handed.keys() == {"short-code", "expires-at"}
    for open_one in (handed["short-code"], "some note", "a title", service.base_url):
        assert all(open_one != each.data for each in commands), "what is no secret is not masked"
    assert opened(service, link) == {"Note": "some note"}


def test_what_was_handed_over_is_masked_before_it_is_printed(
    user: Terminal, service: RunningService
) -> None:
    made = user.sealpipe(
        "request", "-a", "Password", "-a", "User:text", "--receipt", "r.json", "--output", "json"
    ).json
    service.submitter().submit(made["collect_link"], {"Password": 'one"\n100%', "User": "deploy"})
    by_code, by_receipt = (
        user.sealpipe("collect", word, "--print", **GITHUB)
        for word in (made["short_code"], "./r.json")
    )
    for done in (by_code, by_receipt):
        assert {'one"\n100%', 'one"', "100%"} <= masked(done.err)
        assert "User: deploy" in done.out
    # That it is no secret, our own prompt says; what a submission says of itself is a stranger's
    # word.
    assert "deploy" in masked(by_code.err)
    assert "deploy" not in masked(by_receipt.err)


def masked(err: str) -> set[str]:
    return {found.data for found in map(command, err.splitlines()) if found}


def test_a_failure_is_shown_beside_the_log_in_one_harmless_line(user: Terminal) -> None:
    done = user.sealpipe(
        "share", "-f", "env:::add-mask::deploy ##[add-mask]x %25", "--output", "json", **GITHUB
    )
    assert done.code == 14
    commands = [found for found in map(command, done.err.splitlines()) if found]
    assert [each.name for each in commands] == ["error"]
    assert commands[0].properties == {"title": "sealpipe"}
    assert done.error["message"] in commands[0].data.replace("\\\\", "\\")
