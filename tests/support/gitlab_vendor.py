"""A vendor as a job of a pipeline, and a Vault that trusts the project's jobs."""

from __future__ import annotations

import secrets
import time
from typing import Any

import jwt as pyjwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from support.gitlab_pipeline import IMAGE, Pipeline
from support.openbao import Bao

ANSWERED = {"password": "canary-of-the-vendor", "user": "acme"}
"""What the vendor's answers are stored as."""

_SCRIPT = f"""
import os
from sealpipe_rehearsal.people import Submitter
origin = os.environ["SEALPIPE_BASE_URL"].removesuffix("/v1")
link = os.environ["SEALPIPE_LINK_BASE_URL"] + "/r/" + os.environ["REQUEST_SHORT_CODE"]
Submitter(origin).submit(link, {{"Staging password": "{ANSWERED["password"]}", "User name": "{ANSWERED["user"]}"}})
"""
SUBMITS: dict[str, Any] = {
    "stage": "vendor",
    "image": IMAGE,
    "script": ['python3 -c "$VENDOR"'],
    "variables": {"VENDOR": _SCRIPT},
}
"""A job that answers the request that was reported."""


def log_in(pipeline: Pipeline, bao: Bao) -> None:
    """OpenBao trusts this project's tokens, and the job has one, as GitLab would have made it."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    mount = f"gitlab-{secrets.token_hex(4)}"  # others log in to the same one
    bao.call("POST", f"sys/auth/{mount}", {"type": "jwt"})
    bao.call("POST", f"auth/{mount}/config", {"jwt_validation_pubkeys": [public.decode()]})
    rules = (
        'path "secret/data/vendor/*" { capabilities = ["create", "read", "update"] }',
        'path "secret/metadata/vendor/*" { capabilities = ["read", "patch"] }',
    )
    bao.call("PUT", "sys/policies/acl/vendor", {"policy": "\n".join(rules)})
    role = {
        "role_type": "jwt",
        "user_claim": "project_path",
        "bound_audiences": ["vault.example"],
        "bound_claims": {"project_path": "acme/app", "ref_protected": "true"},
        "token_policies": ["vendor"],
    }
    bao.call("POST", f"auth/{mount}/role/app", role)
    now = int(time.time())
    claims = {"aud": "vault.example", "project_path": "acme/app", "ref_protected": "true", "iat": now, "exp": now + 300}
    pipeline.variables |= {
        "VAULT_ADDR": bao.addr,
        "VAULT_AUTH_PATH": mount,
        "VAULT_AUTH_ROLE": "app",
        "VAULT_ID_TOKEN": pyjwt.encode(claims, key, algorithm="RS256"),
    }
