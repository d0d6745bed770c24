"""`aws-sm:NAME` or `aws-sm:ARN`: AWS Secrets Manager.

Text that is a JSON object is a map, as AWS's console writes it; `?raw=1` leaves it the text that it is.
"""

from __future__ import annotations

import json
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
from sealpipe_plugins.aws.batches import Answers, answer_batch, in_batches, parted
from sealpipe_plugins.aws.client import THREADS, OnAws
from sealpipe_plugins.aws.errors import refused
from sealpipe_plugins.aws.login import AwsSettings

BATCH: Final = 20
"""How many secrets AWS gives at once."""

_GET, _BATCH_GET = "secretsmanager:GetSecretValue", "secretsmanager:BatchGetSecretValue"


class AwsSmSource(OnAws, Source):
    """Secrets, by name or ARN."""

    def __init__(self, settings: AwsSettings, context: Context) -> None:
        super().__init__(settings, context)
        self._batches = True

    def fetch(self, locator: Locator) -> Document:
        """The secret's current value, or that of a version or stage."""
        which = {"SecretId": _name(locator), "VersionId": locator.param("version")}
        which["VersionStage"] = locator.param("stage")
        given: dict[str, Any] = {name: value for name, value in which.items() if value is not None}
        region = self._aws.region(locator.body)
        return _document(self._aws.call("secretsmanager", "get_secret_value", locator, region=region, **given), locator)

    def fetch_many(self, locators: Sequence[Locator]) -> Answers:
        """Twenty a call, where they are current values; where AWS does not allow that, one by one."""
        regions: dict[str | None, list[Locator]] = {}
        for locator in locators:
            if locator.body and locator.param("version") is None and locator.param("stage") is None:
                regions.setdefault(self._aws.region(locator.body), []).append(locator)
        batches = [part for alike in regions.values() for part in parted(alike, BATCH) if len(part) > 1]
        return in_batches(locators, batches, self._batch, self.fetch, THREADS)

    def _batch(self, locators: Sequence[Locator]) -> Answers:
        if not self._batches:
            return {}
        names = list(dict.fromkeys(locator.body for locator in locators))
        answers, kind = answer_batch(lambda: self._answers(locators, names), locators, _BATCH_GET)
        self._batches = self._batches and kind not in (AccessDeniedError, UnsupportedError)
        return answers

    def _answers(self, locators: Sequence[Locator], names: Sequence[str]) -> Answers:
        values: list[Mapping[str, Any]] = []
        errors: list[Mapping[str, Any]] = []
        more: dict[str, str] = {}
        while True:
            region = self._aws.region(names[0])
            page = self._aws.ask("secretsmanager", "batch_get_secret_value", region=region, SecretIdList=names, **more)
            values += page.get("SecretValues", ())
            errors += page.get("Errors", ())
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        found = {name: value for value in values for name in _names(value)}
        failed = {str(error.get("SecretId")): error for error in errors}
        answers: Answers = {}
        for locator in locators:
            if locator.body in found:
                answers[locator] = _kept(found[locator.body], locator)
            elif locator.body in failed:
                error = failed[locator.body]
                answers[locator] = refused(str(error.get("ErrorCode")), str(error.get("Message")), locator, _GET)
        return answers


def _name(locator: Locator) -> str:
    if not locator.body:
        raise ReferenceValueError(
            f"{locator.name}: needs the name or the ARN of a secret", remedy=f"write {locator.name}:NAME"
        )
    return locator.body


def _names(value: Mapping[str, Any]) -> list[str]:
    """What one may have called it: its name, its ARN, and the ARN without the six characters that AWS adds."""
    arn = str(value.get("ARN", ""))
    return [str(value.get("Name", "")), arn, arn[:-7]]


def _kept(value: Mapping[str, Any], locator: Locator) -> Document | PluginError:
    try:
        return _document(value, locator)
    except PluginError as error:
        return error


def _document(value: Mapping[str, Any], locator: Locator) -> Document:
    raw = locator.param("raw", "0")
    if raw not in ("0", "1"):
        raise ReferenceValueError(f"{locator}: raw= is 0 or 1", remedy="raw=1 gives the secret's text as it is")
    if value.get("SecretBinary") is not None:
        return Document(bytes(value["SecretBinary"]))
    text = value.get("SecretString")
    if not isinstance(text, str):
        raise PluginError(f"{locator} was answered without a value")
    return Document(text, format="json" if raw == "0" and _is_object(text) else "")


def _is_object(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False
