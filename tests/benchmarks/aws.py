"""What 200 references to one AWS account cost, beside the same reads with boto3 in a loop.

The server is moto's.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import Bench
from measuring import Command, Pair
from table import Row

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.aws import ENVIRON, REGION, Moto, moto

COUNT, SHORT_COUNT = 200, 5


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    count = SHORT_COUNT if bench.short else COUNT
    with moto() as server:
        secrets, parameters = server.client("secretsmanager"), server.client("ssm")
        for name in (f"/app/{number}" for number in range(count)):
            secrets.create_secret(Name=name, SecretString=f"value of {name}")
            parameters.put_parameter(Name=name, Value=f"value of {name}", Type="SecureString")
        sm, ssm = (_told(bench, server, service, count) for service in ("sm", "ssm"))
    what = f"{count} references to one Secrets Manager; the same with boto3 in a loop"
    yield Row("aws-sm-cpu", what, "ms CPU", sm["cpu"])
    yield Row("aws-sm-wall", "the same, the server on this machine", "ms", sm["wall"], 0.35)
    what = f"{count} references to one Parameter Store; the same with boto3 in a loop"
    yield Row("aws-ssm-wall", what, "ms", ssm["wall"], 0.35)


def _told(bench: Bench, server: Moto, service: str, count: int) -> dict[str, Pair]:
    environ = {**ENVIRON, "AWS_DEFAULT_REGION": REGION, "AWS_ENDPOINT_URL": server.url}
    words = bench.python("aws.py", service, str(count), str(bench.runs))
    found = json.loads(bench.meter.run(Command(words, environ)).out)
    return {kind: Pair.of(*sides) for kind, sides in found.items()}
