"""`sealpipe rehearsal open` and `answer`: the other end of a link, from a script."""

from __future__ import annotations

import json

import httpx

from sealpipe.wire import envelope, link, tokens
from sealpipe_rehearsal.running_service import RunningService
from support.terminal import Terminal


def asked(user: Terminal, *words: str, **environ: str) -> str:
    """The collect link of a request for two answers."""
    done = user.sealpipe(
        "request", "-a", "Staging password", "-a", "user=User name:text", *words, **environ
    )
    assert done.code == 0, done
    return done.out.rstrip("\n")


def test_what_is_not_named_stays_empty_and_one_access_is_spent(
    user: Terminal, service: RunningService
) -> None:
    link = asked(user)
    code = user.sealpipe(
        "rehearsal", "answer", link, "-f", "User name=text:acme", "--output", "json"
    ).json
    assert list(code) == ["schema", "short_code"]
    opened = [request for request in service.seen() if request.target.endswith("/open")]
    assert len(opened) == 1
    assert "user: acme" in user.sealpipe("collect", link.rpartition("/")[2]).out.lower().replace(
        "user name", "user"
    )


def test_a_share_link_as_an_argument_is_refused_with_the_option_for_it(user: Terminal) -> None:
    link = "http://127.0.0.1:1/s/code#1fragment"
    done = user.sealpipe("rehearsal", "open", link)
    assert done.code == 2
    assert "pipe it in, or name a variable with --link env:LINK" in done.err
    assert link not in done.err + done.out


def test_a_field_without_a_key_has_a_blank_label_and_is_no_error(
    user: Terminal, service: RunningService
) -> None:
    """Specification, fields: a wrong name of the member renders blank labels with no error."""
    content_key = bytes(range(32))
    fields = [
        {"label": "Misnamed", "value": "one", "type": "text"},
        {"key": "Named", "value": "two", "type": "text"},
    ]
    body = {
        "encryption_type": "e2ee-aes256-gcm",
        "data": envelope.seal(content_key, json.dumps(fields).encode()),
        "access_token": tokens.access_token(content_key),
    }
    credential = service.create_key().reveal().rpartition(".")[0]
    for args, shown in ((), ": one\nNamed: two\n"), (("--output", "json"), None):
        headers = {"Authorization": f"Bearer {credential}", "Idempotency-Key": str(args)}
        code = httpx.post(f"{service.base_url}/shares", json=body, headers=headers, trust_env=False)
        address = link.share_link(service.link_base_url, code.json()["short_code"], content_key)
        done = user.sealpipe("rehearsal", "open", *args, stdin=address)
        assert done.code == 0, done
        assert (
            done.out == shown
            if shown
            else [row["key"] for row in done.json["fields"]] == ["", "Named"]
        )
