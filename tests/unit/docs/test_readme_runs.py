"""README's "Share in 60 seconds" runs word for word, on a network of its own: port 8765 may be
taken here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from support.parts import ROOT, missing


def blocks_of(page: str) -> list[str]:
    """Return the commands under "Share in 60 seconds"."""
    section = (
        (ROOT / page)
        .read_text(encoding="utf-8")
        .partition("## Share in 60 seconds\n")[2]
        .partition("\n## ")[0]
    )
    return re.findall(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)


BLOCKS = blocks_of("README.md")
FIRST_SHELL = """set -eu
ip link set lo up
(exec {server}) >serve.log 2>&1 & serving=$!
trap 'kill "$serving"; wait "$serving" || true' EXIT
for second in $(seq 300); do
    grep -q '^  export SEALPIPE_API_KEY' serve.log && break; sleep 0.1
done
grep -q '^  export SEALPIPE_API_KEY' serve.log
{share}
"""


def test_share_in_60_seconds_prints_a_link(tmp_path: Path) -> None:
    for name in ("unshare", "ip"):
        if shutil.which(name) is None:
            missing(f"{name} is not installed")
    if subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode:
        missing("this user may not make a network namespace")
    server, share = BLOCKS
    assert server == "sealpipe rehearsal serve\n"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SEALPIPE_")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    done = subprocess.run(
        ["unshare", "-rn", "bash", "-c", FIRST_SHELL.format(server=server.strip(), share=share)],
        env={**kept, "PATH": path, "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"http://127\.0\.0\.1:8765/s/\S+#1[\w-]{43}\n", done.stdout)


def test_the_home_page_of_the_documentation_has_the_same_commands() -> None:
    assert blocks_of("docs/index.md") == BLOCKS
