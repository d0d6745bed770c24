"""The rules by which the Kubernetes API takes a Secret, from its public documentation: a fake of them.

kmock stores whatever it is given. The API refuses (API conventions, "Concurrency Control and Consistency"; Secrets,
"Immutable Secrets", "Types of Secret", and the limit of 1 MiB): a second one of a name (409), a patch that names
another resourceVersion than the current one (409), a change of an immutable Secret's data (422), a key that is none,
more than 1 MiB of values, or a typed Secret without its keys (422).
"""

from __future__ import annotations

import base64
import re
from typing import Any

REQUIRED = {"kubernetes.io/tls": {"tls.crt", "tls.key"}, "kubernetes.io/ssh-auth": {"ssh-privatekey"}}
LARGEST = 1024 * 1024


def problem(method: str, there: Any, asked: Any) -> int:
    """The status that the API refuses with; 0 where it does not."""
    if method == "POST":
        return 409 if there is not None else _invalid(asked)
    if there is None:
        return 404
    wanted = asked.get("metadata", {}).get("resourceVersion")
    if wanted is not None and wanted != there["metadata"].get("resourceVersion"):
        return 409
    after = patched(there, asked)
    if there.get("immutable") and after.get("data") != there.get("data"):
        return 422
    return _invalid(after)


def patched(there: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    found = dict(there) if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = patched(found.get(key), value)
    return found


def stamped(asked: Any, there: Any) -> Any:
    """What is written, with the next resourceVersion."""
    number = int(there["metadata"].get("resourceVersion", "1")) + 1 if there is not None else 1
    return {**asked, "metadata": {**asked.get("metadata", {}), "resourceVersion": str(number)}}


def _invalid(secret: Any) -> int:
    data = secret.get("data") or {}
    size = sum(len(base64.b64decode(value, validate=True)) for value in data.values())
    named = all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) and not re.match(r"\.$|\.\.", key) for key in data)
    annotations = secret["metadata"].get("annotations") or {}
    noted = sum(len(key) + len(value) for key, value in annotations.items())
    whole = REQUIRED.get(secret.get("type", ""), set()) <= data.keys()
    return 0 if named and whole and size <= LARGEST and noted <= 256 * 1024 else 422
