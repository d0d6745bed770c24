"""The inputs of actions and of GitLab's templates, and the arguments and variables of the image."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from unit.docs.generator.markdown import code, escape, item, table, wrap

ROOT = Path(__file__).resolve().parents[4]
ACTIONS = sorted(file.parent.name for file in ROOT.glob("actions/*/action.yml"))
TEMPLATES = sorted(file.stem for file in ROOT.glob("containers/gitlab/*.yml"))


class Input(NamedTuple):
    """An input, an output or an argument: its default as text, empty if it has none."""

    name: str
    about: str
    default: str = ""
    words: tuple[str, ...] = ()
    is_required: bool = False


def render(rows: Iterable[Input]) -> str:
    """Return inputs as a list."""
    return "".join(map(_render, rows))


def _render(row: Input) -> str:
    required = " Required." if row.is_required else ""
    words = f" One of {', '.join(map(code, row.words))}." if row.words else ""
    default = f" Default: {code(row.default)}." if row.default else ""
    return item(f"{wrap(f'{code(row.name)}: {escape(row.about)}{required}{words}{default}')}\n")


@cache
def _load_action(name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _load(
        (ROOT / f"actions/{name}/action.yml").read_text(encoding="utf-8")
    )
    return found


def _load(text: str) -> Any:
    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506


def _inputs_of_action(name: str) -> list[Input]:
    return [
        Input(key, each["description"], each["default"])
        for key, each in _load_action(name)["inputs"].items()
    ]


def actions() -> str:
    """Return the inputs and outputs of each action; those that all have come first."""
    shared = _common(map(_inputs_of_action, ACTIONS))
    own = (_action(name, shared) for name in ACTIONS)
    return "\n".join(["## Inputs of every action\n", render(shared), *own, _workflow()])


def _workflow() -> str:
    """The reusable workflow, which calls the action `share`."""
    text = (ROOT / ".github/workflows/share.yml").read_text(encoding="utf-8")
    called = _load(text)[True]["workflow_call"]  # YAML 1.1 reads the word `on` as a boolean
    intro = "`uses: OWNER/sealpipe/.github/workflows/share.yml@COMMIT`, for a job that shares.\n"
    parts = ["## The reusable workflow\n", intro]
    for part in ("inputs", "secrets", "outputs"):
        rows = [_read(name, row) for name, row in called[part].items()]
        parts += [f"**{part.capitalize()}**\n", render(rows)]
    return "\n".join(parts)


def _read(name: str, row: Mapping[str, Any]) -> Input:
    return Input(
        name, row["description"], row.get("default", ""), is_required=row.get("required", False)
    )


def _action(name: str, shared: list[Input]) -> str:
    action = _load_action(name)
    own = [each for each in _inputs_of_action(name) if each not in shared]
    outputs = [Input(key, each["description"]) for key, each in action["outputs"].items()]
    parts = [
        f"## {name}\n",
        f"{escape(action['description'])}\n",
        "**Inputs**\n",
        render(own),
        "**Outputs**\n",
        render(outputs),
    ]
    return "\n".join(parts)


def _common(lists: Iterable[list[Input]]) -> list[Input]:
    first, *others = lists
    return [each for each in first if all(each in other for other in others)]


class Template(NamedTuple):
    """A template of GitLab: what its job does, and its inputs."""

    name: str
    about: str
    inputs: list[Input]


@cache
def load_template(name: str) -> Template:
    """Read the header of a template, and the comment above it."""
    head = (
        (ROOT / f"containers/gitlab/{name}.yml").read_text(encoding="utf-8").partition("\n---\n")[0]
    )
    about = head.partition("\n#\n")[0].removeprefix("# ").replace("\n# ", " ")
    return Template(
        name, about, [_template_input(*row) for row in _load(head)["spec"]["inputs"].items()]
    )


def _template_input(name: str, row: Mapping[str, Any]) -> Input:
    default = row.get("default", "")
    shown = "" if default in ("", []) else default if isinstance(default, str) else _flow(default)
    return Input(
        name, row["description"], shown, tuple(row.get("options", ())), "default" not in row
    )


def _flow(value: Any) -> str:
    return " ".join(yaml.safe_dump(value, default_flow_style=True, width=1000).split())


def templates() -> str:
    """Return the inputs of each template; those that all have come first."""
    found = [load_template(name) for name in TEMPLATES]
    shared = _common(each.inputs for each in found)
    return "\n".join(
        [
            "## Inputs of every template\n",
            render(shared),
            *(_template(each, shared) for each in found),
        ]
    )


def _template(each: Template, shared: list[Input]) -> str:
    own = [row for row in each.inputs if row not in shared]
    return "\n".join([f"## {each.name}\n", f"{wrap(escape(each.about))}\n", render(own)])


def image() -> str:
    """Return the arguments by which the image is built, and the variables that it sets."""
    text = (ROOT / "containers/Dockerfile").read_text(encoding="utf-8")
    variables = table(
        ("variable", "value"), ((code(name), code(value)) for name, value in _variables(text))
    )
    parts = ["## Build arguments\n", render(arguments(text)), "## Variables\n", variables]
    return "\n".join(parts)


def arguments(text: str) -> Iterator[Input]:
    """Yield the build arguments of a Dockerfile, each with the comment above it."""
    for comment, name, value in re.findall(r"((?:^#.*\n)*)^ARG (\w+)=(.*)$", text, re.MULTILINE):
        about = " ".join(
            line.removeprefix("#").strip()
            for line in comment.splitlines()
            if "hadolint" not in line
        )
        yield Input(name, about, value.strip('"'))


def _variables(text: str) -> Iterator[tuple[str, str]]:
    final = text[text.rindex("\nFROM ") :].replace("\\\n", " ")
    for line in re.findall(r"^ENV (.*)$", final, re.MULTILINE):
        yield from re.findall(r"(\w+)=(\S+)", line)
