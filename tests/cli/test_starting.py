"""What a command imports before it does its work, beside whatever else its environment has installed."""

from __future__ import annotations

import sys

from support.terminal import Terminal


def test_a_command_does_not_import_trio_where_it_is_installed(bare: Terminal) -> None:
    bare.file("beside/trio/__init__.py", "raise SystemExit('trio was imported')")
    done = bare.sealpipe("rehearse", PYTHONPATH=str(bare.here / "beside"))
    assert done.code == 0, done
    used = bare.run([sys.executable, "-c", "import httpcore"], environ={"PYTHONPATH": str(bare.here / "beside")})
    assert "trio was imported" in used.err  # or this would show nothing
