"""`aws-sm:NAME` or `aws-sm:ARN`: AWS Secrets Manager.

Text that is a JSON object becomes a map, as in AWS's console; with `?raw=1` it stays text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sealpipe.plugin import (
    AccessDeniedError,
    Context,
    Document,
    Locator,
    PluginError,
    ReferenceValueError,
    Source,
    UnsupportedError,
)
from sealpipe_plugins.aws.batches import Results, fetch_in_batches, run_batch, split
from sealpipe_plugins.aws.client import THREADS, AwsPlugin
from sealpipe_plugins.aws.content import get_stored
from sealpipe_plugins.aws.errors import error_for_code
from sealpipe_plugins.aws.login import AwsSettings
from sealpipe_plugins.secret_documents import make_source_document

BATCH: Final = 20
"""Maximum number of secrets per call."""

_GET, _BATCH_GET = "secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue"


class AwsSmSource(AwsPlugin, Source):
    """Secrets, by name or ARN."""

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._use_batches = True

    def fetch(self, locator: Locator) -> Document:
        """Fetch the secret's current value, or the value of a version or stage."""
        selectors = {"SecretId": _check_name(locator), "VersionId": locator.param("version")}
        selectors["VersionStage"] = locator.param("stage")
        request: dict[str, Any] = {
            name: value for name, value in selectors.items() if value is not None
        }
        region = self._aws.region(locator.body)
        return _make_document(
            self._aws.call("secretsmanager", "get_secret_value", locator, region=region, **request),
            locator,
        )

    def fetch_many(self, locators: Sequence[Locator]) -> Results:
        """Fetch current values, twenty in a call; one by one if AWS does not allow batches."""
        regions: dict[str | None, list[Locator]] = {}
        for locator in locators:
            if locator.body and locator.param("version") is None and locator.param("stage") is None:
                regions.setdefault(self._aws.region(locator.body), []).append(locator)
        batches = [
            part
            for same_region in regions.values()
            for part in split(same_region, BATCH)
            if len(part) > 1
        ]
        return fetch_in_batches(locators, batches, self._fetch_batch, self.fetch, THREADS)

    def _fetch_batch(self, locators: Sequence[Locator]) -> Results:
        if not self._use_batches:
            return {}
        names = list(dict.fromkeys(locator.body for locator in locators))
        results, kind = run_batch(lambda: self._read_batch(locators, names), locators, _BATCH_GET)
        self._use_batches = self._use_batches and kind not in (AccessDeniedError, UnsupportedError)
        return results

    def _read_batch(self, locators: Sequence[Locator], names: Sequence[str]) -> Results:
        values: list[Mapping[str, Any]] = []
        errors: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            region = self._aws.region(names[0])
            page = self._aws.call_raw(
                "secretsmanager",
                "batch_get_secret_value",
                region=region,
                SecretIdList=names,
                **more,
            )
            values += page.get("SecretValues", ())
            errors += page.get("Errors", ())
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        by_name = {name: value for value in values for name in _known_names(value)}
        failed = {str(error.get("SecretId")): error for error in errors}
        results: Results = {}
        for locator in locators:
            if locator.body in by_name:
                results[locator] = _document_or_error(by_name[locator.body], locator)
            elif locator.body in failed:
                error = failed[locator.body]
                results[locator] = error_for_code(
                    str(error.get("ErrorCode")), str(error.get("Message")), locator, _GET
                )
        return results


def _check_name(locator: Locator) -> str:
    if not locator.body:
        raise ReferenceValueError(
            f"{locator.name}: needs the name or the ARN of a secret",
            remedy=f"write {locator.name}:NAME",
        )
    return locator.body


def _known_names(value: Mapping[str, Any]) -> list[str]:
    """Return the names of a secret.

    Name, ARN, and the ARN without the six characters that AWS appends.
    """
    arn = str(value.get("ARN", ""))
    return [str(value.get("Name", "")), arn, arn[:-7]]


def _document_or_error(value: Mapping[str, Any], locator: Locator) -> Document | PluginError:
    try:
        return _make_document(value, locator)
    except PluginError as error:
        return error


def _make_document(value: Mapping[str, Any], locator: Locator) -> Document:
    stored = get_stored(value)
    if stored is None:
        raise PluginError(f"{locator} has no value in AWS's response")
    return make_source_document(stored, locator)
