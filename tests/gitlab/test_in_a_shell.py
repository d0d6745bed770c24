"""The templates end to end, as jobs of a shell runner: each job in a checkout of its own."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import jwt as pyjwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sealpipe_rehearsal.running import Running
from support.gitlab_pipeline import Pipeline
from support.gitlab_templates import read_dotenv
from support.openbao import Bao
from support.terminal import opened

CANARY = "canary-7f3a91"
ODD = 'Zoë\'s "5$$" `touch pwned`; $(touch pwned) | \\ # {x}'

VENDOR = """
import os
from sealpipe_rehearsal.people import Submitter
origin = os.environ["SEALPIPE_BASE_URL"].removesuffix("/v1")
link = os.environ["SEALPIPE_LINK_BASE_URL"] + "/r/" + os.environ["REQUEST_SHORT_CODE"]
Submitter(origin).submit(link, {"Staging password": "canary-of-the-vendor", "User name": "acme"})
"""


def test_a_share_hands_its_short_code_to_a_later_job_and_its_link_sealed(
    pipeline: Pipeline, service: Running, tmp_path: Path
) -> None:
    file = pipeline.place / "deploy/fields.txt"
    file.parent.mkdir()
    file.write_text("# what the contractor needs\n\nUser=text:deploy\n  # indented\nTwo lines=env:TWO_LINES\n")
    pipeline.variables |= {"DB_PASSWORD": CANARY, "TWO_LINES": f"{CANARY}\n two", "OUT": str(tmp_path)}
    ran = pipeline.run(
        (
            "share",
            {
                "stage": "before",
                "job-name": "hand over",
                "fields": "Password=env:DB_PASSWORD\n",
                "fields-file": "deploy/fields.txt",
                "title": ODD,
                "views": "3",
                "seal-link": "true",
            },
        ),
        tell={
            "stage": "after",
            "script": [
                'echo "got $SHARE_SHORT_CODE until $SHARE_EXPIRES_AT"',
                'sealpipe unseal --link-file "$OUT/link" < sealpipe-link.sealed',
            ],
        },
    )
    assert ran.code == 0, ran.log
    (listed,) = service.seen()[:1]
    body = json.loads(listed.body)
    assert body["title"] == ODD.replace("$$", "$")
    assert body["max_view"] == 3 if "max_view" in body else body
    receipt = json.loads(ran.artifact("hand over", "sealpipe-share.json").read_text())
    report = read_dotenv(ran.report("hand over"))
    assert report == {"SHARE_SHORT_CODE": receipt["short_code"], "SHARE_EXPIRES_AT": receipt["expires_at"]}
    assert f"got {receipt['short_code']} until {receipt['expires_at']}" in ran.log
    link = (tmp_path / "link").read_text()
    seen = opened(service, link)
    assert seen == {"Password": CANARY, "User": "deploy", "Two lines": f"{CANARY}\n two"}
    assert not list(pipeline.place.rglob("pwned"))
    everything = ran.log + "".join(
        path.read_text(errors="replace")
        for path in (pipeline.place / ".gitlab-ci-local/artifacts").rglob("*")
        if path.is_file()
    )
    assert CANARY not in everything
    assert link.partition("#")[2].strip() not in everything
