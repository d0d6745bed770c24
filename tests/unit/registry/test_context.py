"""What a plugin is handed of its surroundings, and what not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping

import pytest

from sealpipe.errors import NotConfiguredError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.plugin import Context
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.stores import Store
from support.distributions import Site

JOB = {"GITLAB_CI": "true", "CI_PROJECT_PATH": "acme/app", "CI_JOB_ID": "9"}
TOKEN = "e30.e30.c2ln"

ATTIC = """
import json, subprocess, sys

class It(Source):
    def fetch(self, locator):
        code = "import json, os; print(json.dumps(sorted(os.environ)))"
        environ = self.context.child_environ()
        command = [sys.executable, "-S", "-c", code]
        done = subprocess.run(command, env=environ, capture_output=True, check=True)
        return Document({"names": json.loads(done.stdout)})
"""


def context(environ: Mapping[str, str], site: Site) -> Context:
    site.source("attic", ATTIC)
    found = Registry(environ=environ, network=lambda: PluginNetwork(None))
    return found.source("attic").context


def test_a_program_that_a_plugin_starts_gets_nothing_of_sealpipes(site: Site) -> None:
    site.source("attic", ATTIC)
    ours = {
        "SEALPIPE_API_KEY": "k",
        "SEALPIPE_STORE__MY__PLUGIN": "attic",
        "SEALPIPE_PLUGIN_ATTIC__TOKEN": "t",
    }
    found = Registry(environ={"PATH": "/bin", "VAULT_TOKEN": "v", "NOT_SEALPIPE_X": "y", **ours})
    locator = found.locate(parse("attic:x"))
    names = found.fetch({"attic": [locator]})[locator].content["names"]  # type: ignore[union-attr]
    assert {"PATH", "VAULT_TOKEN", "NOT_SEALPIPE_X"} <= set(names)
    assert [name for name in names if name.startswith("SEALPIPE_")] == []


def test_the_environment_of_a_child_is_a_copy(site: Site) -> None:
    environ = {"A": "x"}
    context(environ, site).child_environ()["B"] = "y"
    assert environ == {"A": "x"}


def test_the_token_of_the_ci_is_there_in_a_job_and_nowhere_else(site: Site) -> None:
    token = context(JOB | {"VAULT_ID_TOKEN": TOKEN}, site).oidc_token()
    assert token.reveal() == TOKEN
    assert TOKEN not in repr(token)
    for environ in ({}, JOB):
        with pytest.raises(NotConfiguredError) as lacking:
            context(environ, Site(site.folder.parent / f"site{len(environ)}")).oidc_token(
                "an-audience"
            )
        assert lacking.value.remedy
    with pytest.raises(NotConfiguredError, match="no CI"):
        Context("attic", environ={}).oidc_token()


def test_the_logger_has_the_stores_name_and_writes_nothing_by_itself(site: Site) -> None:
    assert context({}, site).logger.name == "sealpipe.plugin.attic"
    code = (
        "from sealpipe.plugin import Context\nlog = Context('attic').logger\n"
        "log.debug('c4nary'); log.info('c4nary')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize("name", ["slack", "prod.chat-2"])
@pytest.mark.parametrize("is_default", [True, False])
def test_a_plugin_names_the_variable_that_sets_it(name: str, *, is_default: bool) -> None:
    store = Store(name, "slack", {}, is_default=is_default)
    assert Context(name, named=not is_default).get_variable("webhooks") == store.get_variable(
        "webhooks"
    )
