"""CI systems of third parties: found by their sign, whatever was looked up before, and never in
place of ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sealpipe.ci_systems import CI_SYSTEMS, PLUGINS, CISystem
from sealpipe.errors import SettingError
from sealpipe.registry import Registry
from sealpipe_rehearsal.running_service import RunningService
from support.ci_jobs import GITHUB, job, titled
from support.distributions import ALLOWS_ALL, Machine, Site
from support.terminal import Terminal

HOOKS = """
from sealpipe.plugin import CIInfo, hookimpl

@hookimpl
def sealpipe_ci(register):
    register(CIInfo({name!r}, "a test", "MODULE_it:It", sign={sign!r}))
"""
IT = """
from sealpipe.plugin import *

class It(CI):
    def run(self):
        return Run(self.context.store, "77")
    def mask(self, values):
        import sys
        sys.stderr.write("the third party saw it\\n")
    def set_output(self, name, value): ...
    def summary(self, markdown): ...
    def oidc_token(self, audience=None):
        return Secret("its token")
"""

DRONE = {"DRONE": "true"}


def install(site: Site, name: str, sign: str, point: str = "") -> str:
    return site.install(point or name, HOOKS.format(name=name, sign=sign), IT)


def ci_name(environ: dict[str, str], registry: Registry | None = None) -> str:
    found = (registry or Registry(environ=environ)).ci()
    assert found is not None
    return found.run().ci


@pytest.mark.parametrize("around", [{}, {"CI": "true"}, DRONE], ids=["nothing else", "CI", "Drone"])
def test_it_is_found_without_any_other_look_up(site: Site, around: dict[str, str]) -> None:
    install(site, "buildfarm", "ACME_FARM")
    environ = {"ACME_FARM": "1", **around}
    assert ci_name(environ) == "buildfarm"
    assert Registry(environ=environ).oidc_token().reveal() == "its token"


def test_it_is_found_among_distributions_without_entry_points(site: Site) -> None:
    """Most have none; a folder lists them in any order."""
    for number in range(30):
        info = site.folder / f"plain{number}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: plain{number}\nVersion: 1.0\n"
        )
    install(site, "buildfarm", "ACME_FARM")
    assert ci_name({"ACME_FARM": "1"}) == "buildfarm"


def test_it_is_found_in_the_last_folder_behind_one_that_does_not_exist(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "buildfarm", "ACME_FARM")
    others = [folder for folder in sys.path if folder != str(site.folder)]
    monkeypatch.setattr(sys, "path", [*others, str(tmp_path / "gone"), str(site.folder)])
    assert ci_name({"ACME_FARM": "1"}) == "buildfarm"


def test_it_is_the_same_one_after_any_look_up(site: Site) -> None:
    install(site, "second", "ACME_FARM", "one")
    install(site, "first", "ACME_FARM", "two")
    looked = Registry(environ={"ACME_FARM": "1"})
    looked.catalog.list_plugins()
    assert ci_name({}, looked) == ci_name({"ACME_FARM": "1"}) == "first"


def test_one_for_a_system_that_we_only_recognise_is_found(site: Site) -> None:
    install(site, "hummer", "DRONE")
    assert ci_name(DRONE) == "hummer"
    assert ci_name({"TRAVIS": "true"}) == "plain"


OURS = [row for row in CI_SYSTEMS if row.plugin != "plain"]


@pytest.mark.parametrize("row", OURS, ids=titled)
def test_none_is_loaded_where_the_system_has_a_plugin_of_ours(site: Site, row: CISystem) -> None:
    module = install(site, "usurper", row.indicators[0])
    assert ci_name(job(row)) == row.plugin
    assert module not in sys.modules


def test_one_that_may_not_be_loaded_is_not_found(site: Site) -> None:
    module = install(site, "buildfarm", "ACME_FARM")
    environ = {"ACME_FARM": "1", "CI": "true"}
    found = Registry(environ=environ, config=lambda: {"allow_plugins": []})
    assert ci_name(environ, found) == "plain"
    assert module not in sys.modules


def test_metadata_is_not_imported_where_no_third_party_is_installed() -> None:
    code = (
        "import sys\nfrom sealpipe.registry import Registry\n"
        "for environ in ({}, {'CI': '1'}, {'TEAMCITY_VERSION': 'x'}, {'DRONE': 'x'}): "
        "Registry(environ=environ).ci()\n"
        "print('importlib.metadata' in sys.modules, 'pluggy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize("row", OURS, ids=titled)
def test_a_job_loads_an_http_client_only_for_a_token(row: CISystem) -> None:
    code = (
        "import os, sys\nfrom sealpipe.registry import Registry\n"
        "ci = Registry(environ=dict(os.environ)).ci()\nci.run(), ci.mask([])\n"
        "print('httpx' in sys.modules)"
    )
    environ = {**os.environ, **job(row)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, check=True, capture_output=True, text=True
    )
    assert done.stdout == "False\n"


def test_one_in_a_zip_file_is_found(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "buildfarm", "ACME_FARM")
    with zipfile.ZipFile(tmp_path / "site.zip", "w") as packed:
        for file in site.folder.rglob("*"):
            packed.write(file, file.relative_to(site.folder))
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / "site.zip"), *(p for p in sys.path if p != str(site.folder))]
    )
    assert ci_name({"ACME_FARM": "1"}) == "buildfarm"


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_the_config_cannot_replace_one_of_ours(site: Site, name: str) -> None:
    module = install(site, name, "GITHUB_ACTIONS", "usurper")
    found = Registry(environ=GITHUB, config=lambda: {"plugins": {name: {"from": "usurper"}}})
    with pytest.raises(
        SettingError, match=rf"plugins\.{name}\.from replaces sealpipe's plugin for a CI system"
    ) as error:
        found.ci()
    assert error.value.remedy == f"remove `from` from [plugins.{name}]"
    assert module not in sys.modules


@pytest.mark.parametrize("machine_has_a_policy", [True, False])
def test_a_third_party_in_the_config_never_sees_what_is_masked(
    user: Terminal, service: RunningService, site: Site, *, machine_has_a_policy: bool
) -> None:
    install(site, "github", "GITHUB_ACTIONS", "usurper")
    config = user.file("config.toml", '[plugins.github]\nfrom = "usurper"\n')
    machine = Machine(user)
    if machine_has_a_policy:
        machine.allow(ALLOWS_ALL)
    around = {
        "DB": "c4nary-value",
        "SEALPIPE_CONFIG": str(config),
        "PYTHONPATH": site.path,
        **GITHUB,
    }
    done = machine.sealpipe("share", "-f", "env:DB", "--print", **around)
    assert (done.code, done.out) == (2, "")
    assert "remove `from` from [plugins.github]" in done.err
    assert "third party" not in done.err
    assert service.seen() == []


BROKEN = """
from sealpipe.plugin import *

class It(CI):
    def run(self):
        return Run(self.context.store, "77")
    def mask(self, values):
        raise ValueError(*(value.reveal() for value in values))
    def set_output(self, name, value):
        raise KeyError(name)
    def annotate(self, level, message):
        raise TypeError
    def summary(self, markdown): ...
    def oidc_token(self, audience=None): ...
"""


def test_one_that_fails_costs_no_link_and_shows_none(
    user: Terminal, service: RunningService, site: Site
) -> None:
    site.install("buildfarm", HOOKS.format(name="buildfarm", sign="DRONE"), BROKEN)
    around = {"PYTHONPATH": site.path, **DRONE}
    done = user.sealpipe("share", "-f", "text:a", "--link-file", "link", **around)
    assert (done.code, (user.here / "link").exists(), user.outbox()) == (0, True, []), done
    assert "could not set the output short-code (KeyError)" in done.err
    printed = user.sealpipe("share", "-f", "text:a", "--print", **around)
    assert (printed.code, printed.out) == (11, ""), printed
    assert "could not be masked: its CI's plugin failed" in printed.err
    assert "Traceback" not in printed.err
    (entry,) = user.outbox()
    assert user.sealpipe("resume", entry.stem, "--print").out.startswith(service.link_base_url)
