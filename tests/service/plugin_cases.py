"""What a user's tests do by the fixture `sealpipe_rehearsal`, with any service: the tests are those
of the files that import them.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from sealpipe import (
    AuthenticationError,
    Field,
    MissingScopeError,
    NotFoundError,
    PermissionDeniedError,
    Secret,
)
from sealpipe.wire import fields, keys, link, sealed_box
from sealpipe_rehearsal import LinkRefusedError, Rehearsal


def test_a_secret_goes_to_its_recipient(sealpipe_rehearsal: Rehearsal) -> None:
    share = sealpipe_rehearsal.client().share([Field("Password", "s3cret")], passcode="open sesame")
    with pytest.raises(LinkRefusedError, match="passcode"):
        sealpipe_rehearsal.recipient.open_link(share.link)
    (field,) = sealpipe_rehearsal.recipient.open_link(share.link, "open sesame")
    assert (field.key, field.value) == ("Password", "s3cret")


def test_a_secret_comes_from_its_submitter(sealpipe_rehearsal: Rehearsal) -> None:
    pair = keys.from_seed(bytes(32))
    client = sealpipe_rehearsal.client()
    made = client.create_request(
        title="t", public_key=pair.public_key, fields=[("Token", "password")]
    )
    collect_link = link.collect_link(sealpipe_rehearsal.link_base_url, made.short_code)
    sealpipe_rehearsal.submitter.submit(collect_link, {"Token": "s3cret"})
    (submission,) = client.list_submissions(made.short_code).items
    assert submission.data is not None
    (field,) = fields.load(sealed_box.open(pair, submission.data))
    assert (field.key, field.value) == ("Token", "s3cret")
    client.expire_request(made.short_code)
    with pytest.raises(LinkRefusedError) as told:
        sealpipe_rehearsal.submitter.submit(collect_link, {"Token": "late"})
    assert told.value.reason == "expired"


def test_asyncio_too(sealpipe_rehearsal: Rehearsal) -> None:
    async def main() -> Secret:
        async with sealpipe_rehearsal.async_client(deadline=20) as client:
            return (await client.share(["P=text:x"])).link

    assert [
        field.value for field in sealpipe_rehearsal.recipient.open_link(asyncio.run(main()))
    ] == ["x"]


def test_credentials_by_scope_custody_and_account(sealpipe_rehearsal: Rehearsal) -> None:
    reader = sealpipe_rehearsal.client(sealpipe_rehearsal.credential(scopes=["shares:read"]))
    keyless = sealpipe_rehearsal.client(sealpipe_rehearsal.credential(custody="none"))
    other = sealpipe_rehearsal.client(sealpipe_rehearsal.credential(account="somebody else's"))
    code = sealpipe_rehearsal.client().share(["P=text:x"]).short_code
    assert reader.get_share(code).short_code == code
    with pytest.raises(MissingScopeError):
        reader.expire_share(code)
    assert keyless.share(["P=text:x"]).custody == "none"
    assert sealpipe_rehearsal.client().share(["P=text:x"]).custody == "stored"
    with pytest.raises(NotFoundError):
        other.get_share(code)


def test_a_revoked_credential_and_a_smaller_plan(sealpipe_rehearsal: Rehearsal) -> None:
    client = sealpipe_rehearsal.client()
    sealpipe_rehearsal.set_account(view_protection=False)
    with pytest.raises(PermissionDeniedError):
        client.share(["P=text:x"], passcode="open sesame")
    sealpipe_rehearsal.revoke(sealpipe_rehearsal.api_key)
    with pytest.raises(AuthenticationError):
        client.list_shares()


def test_time_passes_in_seconds_or_as_a_timedelta(sealpipe_rehearsal: Rehearsal) -> None:
    client = sealpipe_rehearsal.client()
    client.share(["P=text:x"], expires_in=timedelta(hours=2))
    sealpipe_rehearsal.advance(3600)
    assert len(client.list_shares().items) == 1
    sealpipe_rehearsal.advance(timedelta(hours=1))
    assert client.list_shares().items == ()
