"""The other end, in a process of its own: rehearsal services, the receiver, and a recipient who
opens links.

Each line on stdin is a request in JSON, each line on stdout its answer: `{"fresh": TAG}` forgets
what that service has and gives the environment of a new key, `{"open": LINK, "tag": TAG}` opens a
link.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from typing import Any

import receiver

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start


def main() -> None:
    port = receiver.start()
    with start() as svc, start(service_tag="crs") as crs:
        services = {"svc": svc, "crs": crs}
        for line in sys.stdin:
            asked = json.loads(line)
            if "fresh" in asked:
                told: dict[str, Any] = _fresh(
                    services[asked["fresh"]], f"http://127.0.0.1:{port}/v1"
                )
            else:
                told = _opened(services[asked["tag"]], asked["open"])
            print(json.dumps(told), flush=True)


def _fresh(service: RunningService, receiver_url: str) -> dict[str, Any]:
    service.reset()
    service.set_account(requests_per_minute=10**6)
    return {
        "receiver": receiver_url,
        "environ": {
            "SEALPIPE_API_KEY": service.create_key().reveal(),
            "SEALPIPE_BASE_URL": service.base_url,
            "SEALPIPE_LINK_BASE_URL": service.link_base_url,
        },
    }


def _opened(service: RunningService, link: str) -> dict[str, Any]:
    return {
        "fields": [
            [field.key, _digest(field.value)] for field in service.recipient().open_link(link)
        ]
    }


def _digest(value: object) -> str:
    return sha256(str(value).encode()).hexdigest()


main()
