"""`sealpipe rehearsal open` and `answer`: the other end of a link, from a script."""

from __future__ import annotations

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Done, Terminal


def shared(user: Terminal, *words: str, **environ: str) -> str:
    """The link of a share, and a newline."""
    done = user.sealpipe(
        "share", "-f", "Password=env:DB", "-f", "User=text:deploy", *words, DB="s3cret\x1b[2J", **environ
    )
    assert done.code == 0, done
    return done.out


def asked(user: Terminal, *words: str, **environ: str) -> str:
    """The collect link of a request for two answers."""
    done = user.sealpipe("request", "-a", "Staging password", "-a", "user=User name:text", *words, **environ)
    assert done.code == 0, done
    return done.out.rstrip("\n")


def test_the_recipient_sees_what_was_sent_and_spends_the_view(user: Terminal) -> None:
    link = shared(user)
    done = user.sealpipe("rehearsal", "open", stdin=link)
    assert (done.code, done.out) == (0, "Password: s3cret\\x1b[2J\nUser: deploy\n"), done
    again = user.sealpipe("rehearsal", "open", stdin=link)
    assert (again.code, again.out) == (6, "")
    assert "all views of the share are used up" in again.err
    assert link.strip() not in done.err + again.err


def test_as_json_values_are_as_they_were_sent(user: Terminal) -> None:
    user.file("link", shared(user))
    told = user.sealpipe("rehearsal", "open", "--link", "file:link", "--output", "json").json
    assert [(each["key"], each["value"], each["type"]) for each in told["fields"]] == [
        ("Password", "s3cret\x1b[2J", "password"),
        ("User", "deploy", "text"),
    ]


def test_a_passcode_is_wanted_refused_and_taken(user: Terminal) -> None:
    link = shared(user, "--passcode-from", "env:CODE", CODE="open sesame")
    codes = [user.sealpipe("rehearsal", "open", *words, stdin=link).code for words in ([], _passcode("wrong"))]
    assert codes == [6, 6]
    done = user.sealpipe("rehearsal", "open", *_passcode("open sesame"), stdin=link)
    assert (done.code, "User: deploy" in done.out) == (0, True), done


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ("dotenv:two.env#*", "dotenv:two.env#* gives 2 values, but only one is possible here"),
        ("env:NOT_SET?optional=1", "--passcode-from: env:NOT_SET?optional=1 has no value"),
    ],
)
def test_a_passcode_is_one_value(user: Terminal, reference: str, told: str) -> None:
    user.file("two.env", "A=x\nB=y\n")
    done = user.sealpipe("rehearsal", "open", "--passcode-from", reference, stdin=shared(user))
    assert_told(done, 2, told)


def _passcode(text: str) -> list[str]:
    return ["--passcode-from", f"text:{text}"]


def test_the_vendors_answer_is_what_collect_gets(user: Terminal) -> None:
    link = asked(user, "--receipt", "acme.json")
    words = ["-f", "Staging password=env:THEIRS", "-f", "User name=text:acme"]
    done = user.sealpipe("rehearsal", "answer", link, *words, THEIRS="from the vendor")
    assert (done.code, done.err) == (0, ""), done
    collected = user.sealpipe("collect", "acme.json", "--output", "json").json
    assert [each["short_code"] for each in collected["submissions"]] == [done.out.strip()]
    (submission,) = collected["submissions"]
    assert [each["value"] for each in submission["fields"]] == ["from the vendor", "acme"]


def test_what_is_not_named_stays_empty_and_one_access_is_spent(user: Terminal, service: RunningService) -> None:
    link = asked(user)
    code = user.sealpipe("rehearsal", "answer", link, "-f", "User name=text:acme", "--output", "json").json
    assert list(code) == ["schema", "short_code"]
    opened = [request for request in service.seen() if request.target.endswith("/open")]
    assert len(opened) == 1
    assert "user: acme" in user.sealpipe("collect", link.rpartition("/")[2]).out.lower().replace("user name", "user")


def test_the_forms_passcode_is_asked_for(user: Terminal) -> None:
    link = asked(user, "--passcode-from", "env:CODE", CODE="open sesame")
    words = ["rehearsal", "answer", link, "-f", "User name=text:acme"]
    assert user.sealpipe(*words).code == 6
    assert user.sealpipe(*words, *_passcode("open sesame")).code == 0


REFUSED = {
    "no link": (["open"], "nonsense", 13, "the link has no key"),
    "a damaged key": (["open"], "http://127.0.0.1:1/s/x#1abc", 13, "the link's key is damaged"),
    "nothing": (["open"], "", 14, "stdin"),
    "no service": (["open"], f"http://127.0.0.1:1/s/x#1{'A' * 43}", 2, "no rehearsal responds"),
    "a real service": (["open"], f"https://links.example/s/x#1{'A' * 43}", 2, "on this machine only"),
    "an access link": (["answer", "http://127.0.0.1:1/s/r/x#1abc"], "", 2, "this is an access link"),
    "no collect link": (["answer", "x"], "", 2, "these commands are for links of `sealpipe rehearsal serve`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_links_say_what_to_do_and_are_not_echoed(bare: Terminal, name: str) -> None:
    words, stdin, code, said = REFUSED[name]
    done = bare.sealpipe("rehearsal", *words, stdin=stdin)
    assert (done.code, done.out) == (code, ""), done
    assert said in done.err
    assert "A" * 43 not in done.err


def test_a_prompt_that_is_not_asked_for_is_told_beside_those_that_are(user: Terminal) -> None:
    done = user.sealpipe("rehearsal", "answer", asked(user), "-f", "Staging pasword=text:x")
    assert_told(done, 2, 'does not ask for "Staging pasword"', '"Staging password", "User name"')


def assert_told(done: Done, code: int, *texts: str) -> None:
    assert (done.code, done.out) == (code, ""), done
    assert all(text in done.err for text in texts), done.err
