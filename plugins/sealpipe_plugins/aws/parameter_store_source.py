"""`aws-ssm:/path/name`: AWS Systems Manager's Parameter Store, decrypted.

`aws-ssm:/path/` is a map of its parameters.

A version or label follows the name, as in AWS (`/path/name:3`), or is given by `?version=` or
`?label=`. A StringList is returned as its text, commas included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    Document,
    Locator,
    PluginError,
    ReferenceValueError,
    SecretNotFoundError,
    Source,
)
from sealpipe_plugins.aws.batches import Results, fetch_in_batches, run_batch, split
from sealpipe_plugins.aws.client import THREADS, AwsPlugin
from sealpipe_plugins.aws.errors import error_for_code

BATCH: Final = 10
"""Maximum number of parameters per call."""

_GET_MANY = "ssm:GetParameters"


class AwsSsmSource(AwsPlugin, Source):
    """Parameters, by name or ARN."""

    def fetch(self, locator: Locator) -> Document:
        """Fetch one parameter, or all parameters below a path."""
        name = _request_name(locator)
        if locator.body.endswith("/"):
            return Document(self._fetch_path(locator))
        region = self._aws.region(locator.body)
        response = self._aws.call(
            "ssm", "get_parameter", locator, region=region, Name=name, WithDecryption=True
        )
        return _make_document(response.get("Parameter", {}), locator)

    def fetch_many(self, locators: Sequence[Locator]) -> Results:
        """Fetch ten in a call.

        If AWS denies one of them, it denies the whole call: then fetch one by one.
        """
        regions: dict[str | None, dict[str, Locator]] = {}
        for locator in locators:
            if _single_name(locator) is not None:
                # One version of each per call: the response names the parameter without its
                # version.
                regions.setdefault(self._aws.region(locator.body), {}).setdefault(
                    _base_name(locator.body), locator
                )
        batches = [
            part
            for by_name in regions.values()
            for part in split(list(by_name.values()), BATCH)
            if len(part) > 1
        ]
        return fetch_in_batches(locators, batches, self._fetch_batch, self.fetch, THREADS)

    def _fetch_batch(self, locators: Sequence[Locator]) -> Results:
        names = {_request_name(locator): locator for locator in locators}
        region = self._aws.region(locators[0].body)

        def read_page() -> Results:
            page = self._aws.call_raw(
                "ssm", "get_parameters", region=region, Names=list(names), WithDecryption=True
            )
            return _collect_documents(page, names)

        return run_batch(read_page, locators, _GET_MANY)[0]

    def _fetch_path(self, locator: Locator) -> Mapping[str, str]:
        path, region = locator.body.rstrip("/") or "/", self._aws.region(locator.body)
        values: dict[str, str] = {}
        more: dict[str, str] = {}
        while True:
            request: dict[str, Any] = {
                "Path": path,
                "Recursive": True,
                "WithDecryption": True,
                **more,
            }
            page = self._aws.call(
                "ssm", "get_parameters_by_path", locator, region=region, **request
            )
            for parameter in page.get("Parameters", ()):
                values[str(parameter["Name"]).removeprefix(locator.body)] = str(parameter["Value"])
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        if not values:
            raise SecretNotFoundError(
                f"there is no parameter below {locator}",
                remedy="check the path, the region and the account",
            )
        return values


def _collect_documents(page: Mapping[str, Any], names: Mapping[str, Locator]) -> Results:
    values = {
        str(parameter.get(key)): parameter
        for parameter in page.get("Parameters", ())
        for key in ("Name", "ARN")
    }
    results: Results = {}
    for name, locator in names.items():
        if _base_name(name) in values:
            results[locator] = _make_document(values[_base_name(name)], locator)
        elif name in page.get("InvalidParameters", ()):
            results[locator] = error_for_code("ParameterNotFound", "", locator, _GET_MANY)
    return results


def _make_document(parameter: Mapping[str, Any], locator: Locator) -> Document:
    value = parameter.get("Value")
    if not isinstance(value, str):
        raise PluginError(f"{locator} has no value in AWS's response")
    return Document(value)


def _base_name(name: str) -> str:
    """Return the name without version or label. An ARN itself contains five colons."""
    colons = 5 if name.startswith("arn:") else 0
    return ":".join(name.split(":")[: colons + 1])


def _single_name(locator: Locator) -> str | None:
    """Return the requested name; None if it is not a valid single parameter."""
    try:
        return None if locator.body.endswith("/") else _request_name(locator)
    except ReferenceValueError:
        return None


def _request_name(locator: Locator) -> str:
    selectors = [
        value for value in (locator.param("version"), locator.param("label")) if value is not None
    ]
    is_path = locator.body.endswith("/")
    if not locator.body:
        raise ReferenceValueError(
            f"{locator.name}: needs the name or the ARN of a parameter",
            remedy=f"write {locator.name}:/PATH/NAME",
        )
    if len(selectors) + (_base_name(locator.body) != locator.body) > 1 or (is_path and selectors):
        raise ReferenceValueError(
            f"{locator} names more than one version", remedy="name one version or one label"
        )
    version = locator.param("version")
    if version is not None and not re.fullmatch("[1-9][0-9]{0,17}", version):
        raise ReferenceValueError(
            f"{locator}: version= must be a number", remedy="use label= for a label"
        )
    return ":".join([locator.body, *selectors])
