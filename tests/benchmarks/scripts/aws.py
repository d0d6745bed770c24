"""200 references to one AWS account, and the same reads with boto3 in a loop, by turns: ms of each,
as JSON.

    python aws.py SERVICE COUNT RUNS      SERVICE is sm or ssm; the environment says where and who

The names are /app/0, /app/1, ...; everything is imported before the clock runs, clients are made
while it does.
"""

import json
import os
import sys
import time
from collections.abc import Callable

import boto3

import sealpipe


def ours(service: str, names: list[str]) -> list[str]:
    return [
        field.value.reveal()
        for field in sealpipe.resolve([f"aws-{service}:{name}" for name in names])
    ]


def theirs(service: str, names: list[str]) -> list[str]:
    kind = {"sm": "secretsmanager", "ssm": "ssm"}[service]
    client = boto3.session.Session().client(kind, endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    if service == "sm":
        return [client.get_secret_value(SecretId=name)["SecretString"] for name in names]
    return [
        client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"] for name in names
    ]


def took(
    way: Callable[[str, list[str]], list[str]], service: str, names: list[str]
) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    found = way(service, names)
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert found == [f"value of {name}" for name in names]
    return 1000 * spent[0], 1000 * spent[1]


def main() -> None:
    service, count, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    names = [f"/app/{number}" for number in range(count)]
    took(ours, service, names[:1])  # so that both are imported whole
    took(theirs, service, names[:1])
    turns = [(took(ours, service, names), took(theirs, service, names)) for _ in range(runs)]
    told = {
        kind: [[turn[side][index] for turn in turns] for side in (0, 1)]
        for index, kind in enumerate(("wall", "cpu"))
    }
    print(json.dumps(told))


main()
