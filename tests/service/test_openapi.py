"""The service's OpenAPI document: valid, complete, and nothing in it that the service's own tables
do not say.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import gateway, openapi
from sealpipe_service.checks import SCHEMAS
from sealpipe_service.json_bodies import REQUEST, SHARE, SHARE_EXTENDED
from sealpipe_service.responses import GATEWAY, REFUSALS
from service.callers import NO_TLS, Api

MINTING = {"no_api_access", "key_allowance"}
"""What only the app's form refuses with, where keys are made: no call of the API does."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return json.loads(json.dumps(openapi.document()))


def responses(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for operations in document["paths"].values():
        for operation in operations.values():
            yield from operation["responses"].items()


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object schema in a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for each in schema.values():
            yield from objects(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from objects(each)


def test_it_is_served_outside_the_api_without_a_credential(
    service: RunningService, document: dict[str, Any], api: Api
) -> None:
    got = httpx.get(f"{service.origin}/rehearsal/openapi.json", verify=NO_TLS, trust_env=False)
    assert (got.status_code, got.headers["content-type"], got.json()) == (
        200,
        "application/json",
        document,
    )
    assert api.http.get("/openapi.json").status_code == 404


def test_it_is_a_valid_openapi_document(document: dict[str, Any]) -> None:
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []


def test_its_operations_are_the_routes_and_no_others(document: dict[str, Any]) -> None:
    described = {
        (method.upper(), path) for path, each in document["paths"].items() for method in each
    }
    assert described == {(route.method, "/" + "/".join(route.path)) for route in gateway.ROUTES}
    assert set(openapi.HANDLERS) == {
        route.handler for route in (*gateway.ROUTES, *gateway.EXTENDED_ROUTES)
    }
    for route in gateway.ROUTES:
        operation = document["paths"]["/" + "/".join(route.path)][route.method.lower()]
        assert operation["description"] == f"Scope: {route.scope}"


@pytest.mark.usefixtures("extended")
def test_an_extended_service_describes_what_else_it_offers(
    service: RunningService, document: dict[str, Any]
) -> None:
    told = httpx.get(
        f"{service.origin}/rehearsal/openapi.json", verify=NO_TLS, trust_env=False
    ).json()
    assert list(OpenAPIV31SpecValidator(told).iter_errors()) == []
    assert told["paths"].keys() - document["paths"].keys() == {
        "/shares/{shortCode}/access-log",
        "/capabilities",
    }
    log = told["paths"]["/shares/{shortCode}/access-log"]["get"]
    assert log["description"] == "Scope: audit:read"
    assert {"limit", "cursor", "from", "to"} < {each["name"] for each in log["parameters"]}
    for path in ("/shares", "/requests"):
        names = {each["name"] for each in told["paths"][path]["get"]["parameters"]}
        assert names - {each["name"] for each in document["paths"][path]["get"]["parameters"]} == {
            "status"
        }
    body = told["paths"]["/shares"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert list(body["properties"]) == list(SHARE_EXTENDED)


def test_its_refusals_are_the_tables_and_no_others(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert set(schemas) == {*REFUSALS, *GATEWAY}
    used: dict[str, set[str]] = {}
    for status, response in responses(document):
        for name in schemas:
            if f'"#/components/schemas/{name}"' in json.dumps(response):
                used.setdefault(name, set()).add(status)
    assert used == {
        name: {str(row.status)}
        for name, row in {**REFUSALS, **GATEWAY}.items()
        if name not in MINTING
    }
    for name, row in REFUSALS.items():
        assert schemas[name]["properties"]["error_code"] == {"const": row.error_code}


def test_every_answer_is_closed_to_members_that_it_does_not_name(document: dict[str, Any]) -> None:
    answers = [response["content"] for _, response in responses(document)]
    found = list(objects([answers, document["components"]]))
    assert len(found) > 30
    for schema in found:
        if "properties" in schema:
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
        else:  # additional_data: any member, each with a reason
            assert schema["additionalProperties"]["type"] == "string"


def test_creates_need_an_idempotency_key_and_a_refused_rate_says_when_to_return(
    document: dict[str, Any],
) -> None:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            required = [
                each["name"] for each in operation.get("parameters", []) if each.get("required")
            ]
            assert ("Idempotency-Key" in required) == (method == "post"), path
            assert operation["responses"]["429"]["headers"]["Retry-After"]["required"] is True
    assert document["security"] == [{"key": []}]
    assert document["components"]["securitySchemes"]["key"] == {"type": "http", "scheme": "bearer"}


@pytest.mark.parametrize(("path", "rules"), [("/shares", SHARE), ("/requests", REQUEST)])
def test_a_body_has_the_members_that_have_a_rule(
    document: dict[str, Any], path: str, rules: dict[str, Any]
) -> None:
    body = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert list(body["properties"]) == list(rules)
    assert body["required"] == [name for name, rule in rules.items() if rule.required]


CHECKS = {
    f"{what}.{name}": rule.check
    for what, rules in (("share", SHARE_EXTENDED), ("request", REQUEST))
    for name, rule in rules.items()
}
NEAR = [
    *(
        "e2ee-aes256-gcm",
        "2026-11-21T10:00:00Z",
        "2026-11-21t10:00:00.5+01:00",
        "0001-01-01T00:00:00+01:00",
        "now",
    ),
    *(
        "A" * 43,
        " " + "A" * 43 + "\n",
        "A" * 42 + "\u0130",
        "AAAA",
        "AAA=",
        "AA==",
        "A===",
        "AB=C",
        "====",
        "=",
    ),
    *(
        "",
        " ",
        "\u3000",
        "x",
        "A" * 87,
        openapi.SCHEMAS[REQUEST["public_key"].check]["examples"][0],
    ),
    *(
        0,
        1,
        -1,
        2**63 - 1,
        2**63,
        1.5,
        True,
        False,
        [],
        {},
        [""],
        ["a"],
        ["viewed"],
        ["viewed", "viewed"],
        ["gone"],
    ),
    *(
        [{"item": "a", "type": "text"}],
        [{"item": "a"}],
        [{"item": " ", "type": "b"}],
        [{"item": "a", "type": "b", "c": 1}],
    ),
]
VALUES = st.sampled_from(NEAR) | st.recursive(
    st.booleans() | st.integers() | st.text() | st.text("AZaz09_-=+/ \n"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["item", "type", "x"]), inner, max_size=3)
    ),
    max_leaves=4,
)


@settings(max_examples=400, deadline=None)
@given(value=VALUES)
def test_no_schema_is_narrower_than_the_check_it_stands_beside(value: Any) -> None:
    narrower = [
        name
        for name, check in CHECKS.items()
        if check(value) is None
        and not jsonschema.Draft202012Validator(SCHEMAS[check]).is_valid(value)
    ]
    assert narrower == []


WIDER = {"share.expired_at", "request.expired_at", "request.public_key"}
"""Calendars and curves: what no schema can say."""


@pytest.mark.parametrize("name", sorted(set(CHECKS) - WIDER))
def test_nor_wider_where_a_schema_can_say_it(name: str) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMAS[CHECKS[name]])
    accepted = [value for value in NEAR if CHECKS[name](value) is None]
    assert [value for value in NEAR if validator.is_valid(value)] == accepted
    assert 0 < len(accepted) < len(NEAR)


def test_the_example_of_a_point_is_one() -> None:
    for check, schema in SCHEMAS.items():
        for example in schema.get("examples", []):
            assert check(example) is None
