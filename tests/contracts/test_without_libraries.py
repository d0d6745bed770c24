"""A plugin whose library is not installed says what to install."""

from __future__ import annotations

import json
import subprocess
import sys

WITHOUT = """
import json, re, sys
import importlib.metadata as metadata
from sealpipe.errors import PluginError
from sealpipe.network.plugin_network import PluginNetwork
from sealpipe.registry import Registry

network = PluginNetwork(None)
registry = Registry(environ={"OP_SERVICE_ACCOUNT_TOKEN": "ops_Canary"}, network=lambda: network)
plugins = [each for each in registry.catalog.list_plugins() if each.info.needs and not each.origin]
needs = [need for each in plugins for need in each.info.needs]
wanted = {re.split(r"[^A-Za-z0-9._-]", need)[0].lower() for need in needs}
for module, distributions in metadata.packages_distributions().items():
    if wanted & {each.lower() for each in distributions}:
        sys.modules[module] = None
real = metadata.version

def version(name):
    if name.lower() in wanted:
        raise metadata.PackageNotFoundError(name)
    return real(name)

metadata.version = version
told = {}
for each in plugins:
    try:
        getattr(registry, each.kind)(each.info.name)
    except PluginError as error:
        told[f"{each.kind} {each.info.name}"] = [type(error).__name__, error.message, error.remedy]
print(json.dumps([told, {f"{each.kind} {each.info.name}": each.info.extra for each in plugins}]))
"""


def test_each_names_itself_and_what_installs_its_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told, extras = json.loads(done.stdout)
    assert len(extras) > 15
    assert told.keys() == extras.keys()
    for name, (kind, message, remedy) in told.items():
        assert kind == "NotConfiguredError", name
        assert "cannot be used here" in message or "is not installed" in message, message
        assert remedy.startswith(f"pip install 'sealpipe[{extras[name]}]'"), name
        assert "ops_Canary" not in message
