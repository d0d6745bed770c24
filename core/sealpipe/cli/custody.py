"""`sealpipe custody public-key`."""

from __future__ import annotations

import hashlib
from typing import Any

from sealpipe.cli import render
from sealpipe.cli.command import run_config
from sealpipe.errors import CredentialError
from sealpipe.session import open_credential
from sealpipe.wire import encoding, keys


def public_key(**values: Any) -> None:
    """Run `sealpipe custody public-key`."""
    credential = open_credential(
        run_config().read_api_key(values["api_key_file"]), values["service_tag"]
    )
    if credential.custody_secret is None:
        raise CredentialError(
            "the credential has only two parts: the third, the custody secret, is missing",
            remedy=(
                "set the whole credential, as it was shown once; if it is lost, create a new "
                "API key"
            ),
        )
    point = keys.from_custody_secret(
        credential.custody_secret.reveal(), tag=credential.tag
    ).public_key
    shown = encoding.encode_base64url(point)
    if values["output"] == "json":
        digest = hashlib.sha256(point).hexdigest()
        render.print_json(
            {"public_key": shown, "fingerprint": f"sha256:{digest}", "key_id": credential.key_id}
        )
    else:
        render.print_result(f"{shown}\n")
