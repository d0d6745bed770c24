"""The suite is the same on every machine: nothing of the user's, and of the CI system that runs it,
reaches a test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from environment import KEPT
from support.parts import ROOT

SET = {
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "http_proxy": "http://127.0.0.1:9",
    "LC_ALL": "C",
    "TZ": "Asia/Kathmandu",
    "XDG_CONFIG_HOME": "/etc",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nowhere",
    "AWS_PROFILE": "work",
    "KUBECONFIG": "/etc/kube",
    "DOCKER_CONFIG": "/etc/docker",
    "VAULT_ADDR": "https://vault.example",
    "SEALPIPE_API_KEY": "none",
    "SEALPIPE_STORE__PROD__PLUGIN": "vault",
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "SSL_CERT_FILE": "/nowhere",
}


def test_nothing_of_the_users_is_seen() -> None:
    more = {name for name in os.environ if not KEPT.fullmatch(name)}
    assert more - {"HYPOTHESIS_NO_PLUGINS"} == {"HOME", "LANG", "SSL_CERT_DIR"}
    assert Path.home().name.startswith("home of the tests")
    assert os.umask(0o022) == 0o022


def test_a_user_who_has_set_everything_has_the_same_run(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n0",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--basetemp={tmp_path / 'b'}",
    ]
    done = subprocess.run(
        [*command, f"{Path(__file__)}::test_nothing_of_the_users_is_seen"],
        cwd=ROOT,
        env={**os.environ, **SET},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
