"""`aws-ssm:/path/name`: AWS Systems Manager's Parameter Store, decrypted. `aws-ssm:/path/` is all below, as a map.

A version or label stands behind the name, as AWS writes it (`/path/name:3`), or in `?version=`, `?label=`. A
StringList is its text, commas and all.
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
from sealpipe_plugins.aws.batches import Answers, answer_batch, in_batches, parted
from sealpipe_plugins.aws.client import THREADS, OnAws
from sealpipe_plugins.aws.errors import refused

BATCH: Final = 10
"""How many parameters AWS gives at once."""

_GET_MANY = "ssm:GetParameters"


class AwsSsmSource(OnAws, Source):
    """Parameters, by name or ARN."""

    def fetch(self, locator: Locator) -> Document:
        """One parameter, or all below a path."""
        name = _name(locator)
        if locator.body.endswith("/"):
            return Document(self._below(locator))
        region = self._aws.region(locator.body)
        answer = self._aws.call("ssm", "get_parameter", locator, region=region, Name=name, WithDecryption=True)
        return _document(answer.get("Parameter", {}), locator)

    def fetch_many(self, locators: Sequence[Locator]) -> Answers:
        """Ten a call. AWS refuses such a call whole where it does not allow one of them: then one by one."""
        regions: dict[str | None, dict[str, Locator]] = {}
        for locator in locators:
            if _parts(locator) is not None:
                # One version of each in a call: its answer is known by the name alone.
                regions.setdefault(self._aws.region(locator.body), {}).setdefault(_base(locator.body), locator)
        batches = [part for alike in regions.values() for part in parted(list(alike.values()), BATCH) if len(part) > 1]
        return in_batches(locators, batches, self._batch, self.fetch, THREADS)

    def _batch(self, locators: Sequence[Locator]) -> Answers:
        names = {_name(locator): locator for locator in locators}
        region = self._aws.region(locators[0].body)

        def ask() -> Answers:
            page = self._aws.ask("ssm", "get_parameters", region=region, Names=list(names), WithDecryption=True)
            return _answers(page, names)

        return answer_batch(ask, locators, _GET_MANY)[0]

    def _below(self, locator: Locator) -> Mapping[str, str]:
        path, region = locator.body.rstrip("/") or "/", self._aws.region(locator.body)
        found: dict[str, str] = {}
        more: dict[str, str] = {}
        while True:
            asked: dict[str, Any] = {"Path": path, "Recursive": True, "WithDecryption": True, **more}
            page = self._aws.call("ssm", "get_parameters_by_path", locator, region=region, **asked)
            for parameter in page.get("Parameters", ()):
                found[str(parameter["Name"]).removeprefix(locator.body)] = str(parameter["Value"])
            if not page.get("NextToken"):
                break
            more = {"NextToken": page["NextToken"]}
        if not found:
            raise SecretNotFoundError(
                f"there is no parameter below {locator}", remedy="check the path, the region and the account"
            )
        return found


def _answers(page: Mapping[str, Any], names: Mapping[str, Locator]) -> Answers:
    found = {str(one.get(key)): one for one in page.get("Parameters", ()) for key in ("Name", "ARN")}
    answers: Answers = {}
    for name, locator in names.items():
        if _base(name) in found:
            answers[locator] = _document(found[_base(name)], locator)
        elif name in page.get("InvalidParameters", ()):
            answers[locator] = refused("ParameterNotFound", "", locator, _GET_MANY)
    return answers


def _document(parameter: Mapping[str, Any], locator: Locator) -> Document:
    value = parameter.get("Value")
    if not isinstance(value, str):
        raise PluginError(f"{locator} was answered without a value")
    return Document(value)


def _base(name: str) -> str:
    """Without a version or label. An ARN has five colons of its own."""
    own = 5 if name.startswith("arn:") else 0
    return ":".join(name.split(":")[: own + 1])


def _parts(locator: Locator) -> str | None:
    """What AWS is asked for; None where it is no single parameter, or no reference to one."""
    try:
        return None if locator.body.endswith("/") else _name(locator)
    except ReferenceValueError:
        return None


def _name(locator: Locator) -> str:
    which = [value for value in (locator.param("version"), locator.param("label")) if value is not None]
    below = locator.body.endswith("/")
    if not locator.body:
        raise ReferenceValueError(
            f"{locator.name}: needs the name or the ARN of a parameter", remedy=f"write {locator.name}:/PATH/NAME"
        )
    if len(which) + (_base(locator.body) != locator.body) > 1 or (below and which):
        raise ReferenceValueError(f"{locator} names more than one version", remedy="name one version or one label")
    version = locator.param("version")
    if version is not None and not re.fullmatch("[1-9][0-9]{0,17}", version):
        raise ReferenceValueError(f"{locator}: version= is a number", remedy="a label is named by label=")
    return ":".join([locator.body, *which])
