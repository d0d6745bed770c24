"""What `import sealpipe` gives, and what it costs: nothing is loaded before it is used."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import sealpipe
from sealpipe import errors

DEAR = {
    "httpx",
    "httpcore",
    "click",
    "cryptography",
    "pluggy",
    "pydantic",
    "pydantic_settings",
    "rich",
    "anyio",
}
OTHERS = {
    "AsyncClient", "Client", "CollectResult", "Field", "Outbox", "Progress", "Prompt", "Receipt",
    "Secret", "SecureRequest", "Share", "__version__", "aresolve", "resolve",
}  # fmt: skip


def exceptions(module: ModuleType) -> set[str]:
    found = inspect.getmembers(module, inspect.isclass)
    return {
        name
        for name, kind in found
        if issubclass(kind, Exception) and kind.__module__ == module.__name__
    }


def test_every_exception_and_nothing_unknown_is_exported() -> None:
    assert set(sealpipe.__all__) == exceptions(errors) | OTHERS
    assert len(sealpipe.__all__) == len(set(sealpipe.__all__))


@pytest.mark.parametrize("name", sealpipe.__all__)
def test_each_exported_name_is_there_and_has_a_docstring(name: str) -> None:
    assert name in dir(sealpipe)
    thing = getattr(sealpipe, name)
    assert name == "__version__" or thing.__doc__


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Clinet'"):
        sealpipe.Clinet  # noqa: B018


def test_the_plugin_contract_exports_what_it_names() -> None:
    plugin = importlib.import_module("sealpipe.plugin")
    assert all(hasattr(plugin, name) for name in plugin.__all__)
    raised = {
        name for name in exceptions(errors) if issubclass(getattr(errors, name), errors.PluginError)
    }
    assert raised <= set(plugin.__all__)


def loaded_by(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after some code."""
    told = f"{code}\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", told], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr)}


@pytest.mark.parametrize(
    ("code", "may"),
    [
        ("import sealpipe", set()),
        ("from sealpipe import Secret, SealpipeError", set()),
        ("import sealpipe.settings", set()),
        (
            (
                "import sys; sys.argv = ['sealpipe', '--version']; from sealpipe.__main__ "
                "import main; main()"
            ),
            set(),
        ),
        ("import sealpipe.reference", set()),
        ("import sealpipe.plugin", {"pluggy"}),
        ("import sealpipe.cli.main", {"click"}),
        # httpx imports its own command line, and so click and rich where they are installed.
        ("from sealpipe import Client", DEAR - {"pydantic", "pydantic_settings"}),
    ],
)
def test_what_is_dear_is_loaded_only_where_it_is_used(code: str, may: set[str]) -> None:
    assert loaded_by(code) & DEAR <= may


def imported(*words: str) -> set[str]:
    """What `sealpipe WORDS` imports, by the interpreter's own account."""
    command = [sys.executable, "-X", "importtime", "-m", "sealpipe", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


def test_telling_the_version_imports_next_to_nothing() -> None:
    assert (
        imported("--version") & (DEAR | {"argparse", "json", "importlib.metadata", "email", "ssl"})
        == set()
    )


@pytest.mark.parametrize("command", ["", "share", "shares list", "resume", "rehearse"])
def test_help_imports_click_and_no_more_of_what_is_dear(command: str) -> None:
    assert imported(*command.split(), "--help") & DEAR == {"click"}
