"""`aws-ssm:/path/name`: AWS Systems Manager's Parameter Store, always encrypted.

`aws-ssm:/path/#KEY` is /path/KEY.

Below a path each key is a separate parameter; no other parameter is changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from sealpipe.plugin import (
    Locator,
    Mode,
    ReferenceValueError,
    Sink,
    SinkField,
    UnavailableError,
    UnsupportedError,
    WriteConflictError,
    WriteResult,
    merge_fields,
)
from sealpipe_plugins.aws.client import AwsPlugin
from sealpipe_plugins.aws.content import markers_in, tags_with
from sealpipe_plugins.aws.error_table import MARK, READ, WRITE, Verb
from sealpipe_plugins.confirm import Snapshot, has_marker, require_same, store_and_confirm
from sealpipe_plugins.sink_values import decode_text, values_by_key

STANDARD, ADVANCED = 4096, 8192
"""Maximum bytes of a parameter, by its tier."""

_NAME: Final = re.compile(r"/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+){0,14}")
_MAX_NAME: Final = 1011
_RESERVED: Final = re.compile(r"/?(aws|ssm)", re.IGNORECASE)
_NESTED: Final = re.compile(r"\{\{\s*(ssm:[^}]*)?\}\}")
_MISSING, _EXISTS = ("ParameterNotFound", "ParameterVersionNotFound"), ("ParameterAlreadyExists",)


class AwsSsmSink(AwsPlugin, Sink):
    """Parameters, by name."""

    def describe(self, locator: Locator, mode: Mode) -> str:
        """Describe the write."""
        _check_locator(locator)
        is_path = locator.body.endswith("/")
        verb = {
            "create": "create",
            "replace": "create or overwrite",
            "merge": "create or overwrite",
        }[mode]
        what = (
            f"each key as a parameter below {locator.body}"
            if is_path
            else f"the parameter {locator.body}"
        )
        return f"{verb} {what} in AWS Parameter Store, encrypted" + (
            "; other parameters stay" if is_path else ""
        )

    def put(
        self, locator: Locator, fields: Sequence[SinkField], *, mode: Mode, marker: str
    ) -> WriteResult:
        """Store each value, read the version back, and keep the marker in a tag."""
        parameters = [
            _Parameter(self, locator, name, data, mode, marker)
            for name, data in _values_by_name(locator, fields).items()
        ]
        if len(parameters) > 1:
            for each in parameters:  # all are checked before the first is written
                each.check()
        receipts = [each.store() for each in parameters]
        version = ",".join(receipt.version for receipt in receipts)
        return WriteResult(locator, version, already=all(receipt.already for receipt in receipts))

    def call(
        self, operation: str, subject: object, verb: Verb = READ, **more: Any
    ) -> dict[str, Any]:
        """Make a call about one parameter."""
        return self._aws.call("ssm", operation, subject, verb, **more)


class _Parameter:
    """A write to one parameter."""

    def __init__(
        self, sink: AwsSsmSink, locator: Locator, name: str, data: bytes, mode: Mode, marker: str
    ) -> None:
        self._call = partial(sink.call)
        self._locator, self._name, self._wanted, self._mode, self._marker = (
            locator,
            name,
            {name: data},
            mode,
            marker,
        )
        self._value = _check_value(data, locator)
        self._is_new = False

    def check(self) -> None:
        """Raise WriteConflictError if the mode forbids the write, UnsupportedError if AWS would
        refuse the value.
        """
        snapshot = self._read()
        if merge_fields(
            snapshot.values,
            self._wanted,
            mode=self._mode,
            marked=has_marker(snapshot.markers, self._marker),
        ):
            self._unchanged_settings(snapshot)

    def store(self) -> WriteResult:
        """Write the value, unless the parameter already has it."""
        outcome = store_and_confirm(
            self._read, self._write, self._wanted, self._locator, self._mode, self._marker
        )
        if not self._is_new and not has_marker(outcome.snapshot.markers, self._marker):
            markers = self._read_markers() if outcome.is_written else outcome.snapshot.markers
            subject, tags = (
                f"{self._locator} holds the value; its tag",
                tags_with(markers, self._marker),
            )
            self._call(
                "add_tags_to_resource",
                subject,
                MARK,
                ResourceType="Parameter",
                ResourceId=self._name,
                Tags=tags,
            )
        return WriteResult(self._locator, outcome.version, already=not outcome.is_written)

    def _read(self) -> Snapshot:
        response = self._call(
            "get_parameter", self._locator, expected=_MISSING, Name=self._name, WithDecryption=True
        )
        if not response:
            return Snapshot(None)
        described = response.get("Parameter", {})
        if described.get("Type") != "SecureString":
            raise WriteConflictError(
                (
                    f"{self._locator}: the parameter {self._name} exists and is not encrypted "
                    f"({described.get('Type')})"
                ),
                remedy="AWS does not change a parameter's type: delete it, or name another one",
            )
        existing = {self._name: str(described.get("Value", "")).encode("utf-8", "surrogatepass")}
        return Snapshot(existing, str(described.get("Version", "")), self._read_markers())

    def _write(
        self,
        snapshot: Snapshot,
        after: Mapping[str, bytes],  # noqa: ARG002
        tries: int,  # noqa: ARG002
    ) -> str | None:
        request = {
            "Name": self._name,
            "Value": self._value,
            "Type": "SecureString",
            **self._unchanged_settings(snapshot),
        }
        if snapshot.values is None:
            response = self._call(
                "put_parameter",
                self._locator,
                WRITE,
                expected=_EXISTS,
                tagging="add_tags_to_resource",
                Tags=tags_with("", self._marker),
                **request,
            )
            if not response:
                return None
            self._is_new = True
        else:
            response = self._call("put_parameter", self._locator, WRITE, Overwrite=True, **request)
        version = str(response.get("Version", ""))
        self._read_back(version)
        return version

    def _unchanged_settings(self, snapshot: Snapshot) -> dict[str, str]:
        """Return the KMS key and the tier, which AWS would reset.

        UnsupportedError if the value is too long.
        """
        if snapshot.values is None:
            self._check_size(STANDARD)
            return {}
        request = [{"Key": "Name", "Option": "Equals", "Values": [self._name]}]
        described = self._call("describe_parameters", self._locator, ParameterFilters=request).get(
            "Parameters"
        ) or [{}]
        self._check_size(STANDARD if described[0].get("Tier") == "Standard" else ADVANCED)
        return {
            name: str(described[0][name]) for name in ("KeyId", "Tier") if described[0].get(name)
        }

    def _check_size(self, limit: int) -> None:
        size = len(self._wanted[self._name])
        if size > limit:
            raise UnsupportedError(
                (
                    f"{self._locator}: AWS stores at most {limit} bytes in this tier, and the "
                    f"value has {size}"
                ),
                remedy="store it in aws-sm:"
                + (
                    ""
                    if limit == ADVANCED
                    else ", or create the parameter with the tier Advanced and use --mode replace"
                ),
            )

    def _read_back(self, version: str) -> None:
        name = f"{self._name}:{version}"
        read = self._call(
            "get_parameter", self._locator, expected=_MISSING, Name=name, WithDecryption=True
        )
        if not read:
            raise UnavailableError(
                f"{self._locator} was written but cannot be read back yet", remedy="run it again"
            )
        require_same(read.get("Parameter", {}).get("Value"), self._value, self._locator)

    def _read_markers(self) -> str:
        described = self._call(
            "list_tags_for_resource", self._locator, ResourceType="Parameter", ResourceId=self._name
        )
        return markers_in(described.get("TagList"))


def _values_by_name(locator: Locator, fields: Sequence[SinkField]) -> dict[str, bytes]:
    """Return the values by the full names of their parameters."""
    _check_locator(locator)
    values_to_store = values_by_key(fields, locator)
    if not locator.body.endswith("/"):
        if len(values_to_store) != 1:
            raise ReferenceValueError(
                f"{locator} is a single parameter and holds one value",
                remedy=f"write {locator.body}/ to store several below this path",
            )
        (data,) = values_to_store.values()
        return {locator.body: data}
    if "" in values_to_store:
        raise ReferenceValueError(
            f"{locator} is a path", remedy="name the key to store it under: #password=PROMPT"
        )
    for key in values_to_store:
        if not _is_valid_name(locator.body + key) or not _NAME.fullmatch(key):
            raise ReferenceValueError(
                f"{locator}: a key is not a valid parameter name",
                remedy=(
                    "use letters, digits and _.-, separated by /; at most 15 levels and 1011 "
                    "characters"
                ),
            )
    return {locator.body + key: data for key, data in values_to_store.items()}


def _check_locator(locator: Locator) -> None:
    if locator.body.startswith("arn:"):
        raise ReferenceValueError(
            f"{locator}: AWS cannot write a parameter by its ARN",
            remedy="write its name: /PATH/NAME",
        )
    is_path = locator.body.endswith("/")
    if locator.body != "/" and not _is_valid_name(locator.body.removesuffix("/")):
        raise ReferenceValueError(
            f"{locator} is not a valid parameter name",
            remedy=(
                f"write {locator.name}:/PATH/NAME: letters, digits and _.-; it begins with "
                "neither aws nor ssm"
            ),
        )
    if is_path and not locator.body.startswith("/"):
        raise ReferenceValueError(
            f"{locator}: a path begins with /", remedy=f"write {locator.name}:/{locator.body}"
        )


def _is_valid_name(name: str) -> bool:
    # A name with a slash in it is a path from the root and must begin with a slash.
    whole = name.startswith("/") or "/" not in name
    return (
        whole
        and bool(_NAME.fullmatch(name))
        and len(name) <= _MAX_NAME
        and not _RESERVED.match(name)
    )


def _check_value(data: bytes, locator: Locator) -> str:
    value = decode_text(data, locator)
    if not value:
        raise UnsupportedError(
            f"{locator}: AWS does not store empty parameters", remedy="store it elsewhere"
        )
    if _NESTED.search(value):
        raise UnsupportedError(
            f"{locator}: AWS stores no parameter with {{{{}}}} or {{{{ssm:}}}}",
            remedy="store it in aws-sm:",
        )
    return value
