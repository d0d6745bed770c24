"""Moto's server, mended: the current version of a secret is the one that has the stage AWSCURRENT.

Moto moves that stage (UpdateSecretVersionStage) and goes on giving the version that had it before;
and it answers several at once where AWS does one change of a secret after the other.

And it is quicker: Parameter Store imports all of EC2, 1.5 s, for commands on machines, which no
test gives; and for every request moto lists its folders and looks through the addresses of all
services, for one host after the other.
"""

from __future__ import annotations

import sys
import threading
from functools import cache
from types import ModuleType
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.secretsmanager.models import SecretsManagerBackend
from moto.server import main

_ONE_BY_ONE = threading.Lock()
_move = SecretsManagerBackend.update_secret_version_stage


def moved(backend: Any, secret_id: str, *args: Any, **more: Any) -> Any:
    answer = _move(backend, secret_id, *args, **more)
    secret = backend.secrets[secret_id]
    for version, found in secret.versions.items():
        if "AWSCURRENT" in found["version_stages"]:
            secret.set_default_version_id(version)
    return answer


def in_turn(method: Any) -> Any:
    def held(*args: Any, **more: Any) -> Any:
        with _ONE_BY_ONE:
            return method(*args, **more)

    return held


SecretsManagerBackend.update_secret_version_stage = in_turn(moved)
SecretsManagerBackend.put_secret_value = in_turn(SecretsManagerBackend.put_secret_value)
SecretsManagerBackend.create_secret = in_turn(SecretsManagerBackend.create_secret)
DomainDispatcherApplication.get_backend_for_host = cache(
    DomainDispatcherApplication.get_backend_for_host
)

sys.modules["moto.ec2"] = ec2 = ModuleType("moto.ec2")
ec2.ec2_backends = {}  # type: ignore[attr-defined]

if __name__ == "__main__":
    main(sys.argv[1:])
