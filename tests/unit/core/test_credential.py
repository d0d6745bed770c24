"""The credential: three parts, two of which are sent.

What is malformed is told without showing any of it.
"""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealpipe import Secret
from sealpipe.api.operation import Credential
from sealpipe.errors import CredentialError
from support.parts import shared


def part(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).map(
        lambda raw: base64.urlsafe_b64encode(raw).decode().rstrip("=")
    )


tags = st.from_regex(r"[a-z][a-z0-9]{0,15}", fullmatch=True)


def test_the_vector_is_read_part_by_part() -> None:
    vector = json.loads(shared("vectors/wire.json").read_text())["credential"]
    credential = Credential.parse(vector["text"])
    assert credential.tag == "svc"
    assert credential.header().reveal() == vector["header"]
    assert credential.custody_secret == Secret(vector["custody_secret"])
    assert Credential.parse(Secret(vector["text"])) == credential


@given(tags, part(12), part(32), st.none() | part(32))
def test_every_credential_is_read_and_its_header_has_two_parts(
    tag: str, key_id: str, auth: str, custody: str | None
) -> None:
    text = f"{tag}_sk_live_{key_id}.{auth}" + (f".{custody}" if custody else "")
    credential = Credential.parse(text)
    assert (credential.tag, credential.key_id, credential.auth_secret.reveal()) == (
        tag,
        key_id,
        auth,
    )
    assert credential.header().reveal() == f"Bearer {tag}_sk_live_{key_id}.{auth}"
    assert (credential.custody_secret and credential.custody_secret.reveal()) == custody
    assert repr(credential) == f"Credential(tag={tag!r}, key_id={key_id!r})"


@given(tags, part(12), part(32), part(32), st.data())
def test_a_credential_with_one_character_changed_is_another_one_or_none(
    tag: str, key_id: str, auth: str, custody: str, data: st.DataObject
) -> None:
    text = f"{tag}_sk_live_{key_id}.{auth}.{custody}"
    place = data.draw(st.integers(0, len(text) - 1))
    sign = data.draw(st.characters(codec="utf-8"))
    changed = text[:place] + sign + text[place + 1 :]
    error = refusal(changed)
    if error is not None:
        assert error.remedy
        assert auth not in error.message + error.remedy
        return
    credential = Credential.parse(changed)
    custody_part = credential.custody_secret.reveal() if credential.custody_secret else ""
    assert f"{credential.header().reveal().removeprefix('Bearer ')}.{custody_part}" == changed


def refusal(text: str) -> CredentialError | None:
    try:
        Credential.parse(text)
    except CredentialError as error:
        return error
    return None


@given(st.text())
def test_junk_is_refused_by_the_one_error(text: str) -> None:
    with pytest.raises(CredentialError):
        Credential.parse(text)
