"""The smallest script that asks for a password, under the credential's key; prints the collect
link.
"""

import os
import uuid
from datetime import UTC, datetime, timedelta

import httpx
from opening import URL, headers, private_key, public_key

key = public_key(private_key())
answer = httpx.post(
    f"{URL}/requests",
    json={
        "title": "Staging password",
        "public_key": key,
        "fields": [{"item": "Staging password", "type": "password"}],
        "expired_at": (datetime.now(UTC) + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ"),
    },
    headers={**headers(), "idempotency-key": str(uuid.uuid4())},
    timeout=60,
)
answer.raise_for_status()
members = answer.json()
if members["public_key"] != key:
    raise SystemExit("the service has it under another key")
print(f"{os.environ['SEALPIPE_LINK_BASE_URL']}/r/{members['short_code']}")
