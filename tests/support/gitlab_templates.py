"""The templates of containers/gitlab as GitLab reads them, and its reading of a dotenv report.

Written from GitLab's documentation of `spec:inputs` (a string that is nothing but one input takes that input's type;
else the input's text stands in it) and of `artifacts:reports:dotenv`, and from CI-FACTS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from support.parts import ROOT

FOLDER = ROOT / "containers/gitlab"
NAMES = ("share", "request", "collect", "expire")
BOUND = '--bind "gitlab:$CI_PROJECT_PATH:$CI_PIPELINE_ID"'
"""What a sealed link of the template is bound to, as a later job writes it."""
INPUT = re.compile(r"\$\[\[ inputs\.([a-z-]+) \]\]")


@dataclass(frozen=True)
class Template:
    """One file: its inputs, and the document that they are put into."""

    name: str
    inputs: dict[str, dict[str, Any]]
    document: dict[str, Any]

    @classmethod
    def read(cls, name: str) -> Template:
        head, document = yaml.safe_load_all((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))
        assert list(head) == ["spec"]
        assert list(head["spec"]) == ["inputs"]
        return cls(name, head["spec"]["inputs"], document)

    @property
    def job(self) -> dict[str, Any]:
        """The one job, its inputs not filled in."""
        (job,) = self.document.values()
        return dict(job)

    def filled(self, **given: Any) -> dict[str, Any]:
        """The document with inputs (`_` for `-`), defaults in place of the rest."""
        named = {name.replace("_", "-"): value for name, value in given.items()}
        assert set(named) <= set(self.inputs), named
        values = {name: named.get(name, about.get("default")) for name, about in self.inputs.items()}
        assert None not in values.values(), values
        filled = put_in(self.document, values)
        assert isinstance(filled, dict)
        return filled


def put_in(node: Any, values: Mapping[str, Any]) -> Any:
    """A node of the document with the inputs in place."""
    if isinstance(node, dict):
        return {put_in(key, values): put_in(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [put_in(each, values) for each in node]
    if not isinstance(node, str):
        return node
    whole = INPUT.fullmatch(node)
    return values[whole[1]] if whole else INPUT.sub(lambda found: str(values[found[1]]), node)


def texts(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Every text of a node, keys too, and where it stands."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield path, str(key)
            yield from texts(value, (*path, str(key)))
    elif isinstance(node, list):
        for each in node:
            yield from texts(each, path)
    elif isinstance(node, str):
        yield path, node


class ReportError(Exception):
    """GitLab fails the job's upload."""


def read_dotenv(file: Path) -> dict[str, str]:
    """A dotenv report as GitLab takes it: 5 KB, 20 variables, no blank line, and quotes are part of the value."""
    data = file.read_bytes()
    if len(data) > 5 * 1024:
        raise ReportError("larger than 5 KB")
    found: dict[str, str] = {}
    for line in data.decode("ascii").splitlines():
        name, sign, value = line.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z0-9_]+", name.strip()):
            raise ReportError(f"Invalid Format: {line!r}")
        found[name.strip()] = value.strip()
    if len(found) > 20:
        raise ReportError("more than 20 variables")
    return found
