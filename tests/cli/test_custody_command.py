"""`sealpipe custody public-key`: the key of the credential's third part, reckoned here and told to
nobody.
"""

from __future__ import annotations

import hashlib

from sealpipe.wire import keys
from sealpipe.wire.encoding import decode_base64url
from sealpipe_rehearsal.running_service import RunningService
from support.leaks import Detector
from support.terminal import Terminal


def test_it_is_the_point_that_the_service_has_registered(
    user: Terminal, service: RunningService
) -> None:
    done = user.sealpipe("custody", "public-key")
    assert (done.code, done.err) == (0, "")
    secret = user.environ["SEALPIPE_API_KEY"].split(".")[2]
    point = decode_base64url(done.out.removesuffix("\n"))
    assert len(point) == 65
    assert point == keys.from_custody_secret(secret).public_key
    told = user.sealpipe("custody", "public-key", "--output", "json").json
    assert told == {
        "schema": 1,
        "public_key": done.out.strip(),
        "fingerprint": "sha256:" + hashlib.sha256(point).hexdigest(),
        "key_id": user.environ["SEALPIPE_API_KEY"].split("_live_")[1].split(".")[0],
    }
    assert service.seen() == []


def test_no_address_is_needed_and_the_secret_does_not_show(user: Terminal) -> None:
    secret = user.environ["SEALPIPE_API_KEY"].split(".")[2]
    done = user.sealpipe(
        "custody", "public-key", SEALPIPE_BASE_URL=None, SEALPIPE_LINK_BASE_URL=None
    )
    assert done.code == 0
    assert Detector({"custody": secret.encode()}).find((done.out + done.err).encode()) == set()


def test_another_tag_makes_another_key(user: Terminal) -> None:
    mine = user.sealpipe("custody", "public-key").out
    other = user.environ["SEALPIPE_API_KEY"].replace("svc_sk", "acme_sk")
    assert user.sealpipe("custody", "public-key", SEALPIPE_API_KEY=other).out not in ("", mine)
    done = user.sealpipe("custody", "public-key", "--service-tag", "acme")
    assert (done.code, done.out) == (2, "")
