"""`sealpipe custody`."""

from __future__ import annotations

import hashlib
import secrets
from typing import Any

from sealpipe.cli import disclosure, render
from sealpipe.cli.command import run_config
from sealpipe.cli.local import make_registry
from sealpipe.errors import CredentialError
from sealpipe.secret import Secret
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
    shown = _describe(point)
    if values["output"] == "json":
        render.print_json({**shown, "key_id": credential.key_id})
    else:
        render.print_result(f"{shown['public_key']}\n")


def new(**values: Any) -> None:
    """Run `sealpipe custody new`."""
    gate = disclosure.plan_disclosure(
        "the custody secret", "run this by hand, and store it", printing=values["print"]
    )
    secret = Secret(encoding.encode_base64url(secrets.token_bytes(32)))
    shown = _describe(
        keys.from_custody_secret(secret.reveal(), tag=values["service_tag"] or "svc").public_key
    )

    def write() -> None:
        if values["output"] == "json":
            render.print_json({"custody_secret": secret.reveal(), **shown})
        else:
            render.print_result(f"{secret.reveal()}\n{shown['public_key']}\n")

    gate.write(make_registry, [secret], write)


def _describe(point: bytes) -> dict[str, str]:
    digest = hashlib.sha256(point).hexdigest()
    return {
        "public_key": encoding.encode_base64url(point),
        "fingerprint": f"sha256:{digest}",
    }
