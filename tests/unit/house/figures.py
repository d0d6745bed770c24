"""The figures of the house: how many files core has and how long they are, and what one `share` goes through.

    python tests/unit/house/figures.py

`share -f env:NAME` runs in this process against a rehearsal service, under a profiler: which of our modules and
functions it enters (a body counts for its module), how many of our frames lie above the socket, and which modules are
handed the options. Of an option that is only sent, `--timed-view`, it counts the files that name it.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
CORE: Final = ROOT / "core" / "sealpipe"
ON_TOP: Final = ("batch", "mcp", "run")
"""Capabilities of their own: their files, and their commands in `cli/` (`batch_rows.py`), come on top of those that the
figures count. Their length is held, too.
"""

_PROFILED: Final = """
import inspect
import sys
import threading
ours = tuple(f"{root}/" for root in sys.argv[1].split(":"))
modules, functions, rooms, deepest = set(), set(), set(), (0, 0)

def note(frame, event, called):
    global deepest
    file = frame.f_code.co_filename
    if event == "call" and file.startswith(ours):
        modules.add(file)
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no body of a module or a class
            functions.add((file, frame.f_code.co_name, frame.f_code.co_firstlineno))
        if any(type(value).__name__ == "ShareOptions" for value in frame.f_locals.values()):
            rooms.add(file)
    elif event == "c_call" and getattr(called, "__name__", "") in ("send", "sendall", "connect"):
        files = []
        while frame is not None:
            files.append(frame.f_code.co_filename)
            frame = frame.f_back
        deepest = max(deepest, (sum(file.startswith(ours) for file in files), len(files)))

sys.argv = ["sealpipe", "share", "-f", "env:FIGURE", "--print"]
threading.setprofile(note)
sys.setprofile(note)
try:
    from sealpipe.__main__ import main
    main()
except SystemExit as ended:
    sys.setprofile(None)
    print(len(modules), len(functions), *deepest, len(rooms), file=sys.stderr)
    sys.exit(ended.code)
"""


@dataclass(frozen=True)
class Figures:
    """Files of core and their lines; what a share enters, frames at its socket, modules with its options."""

    files: int
    median_lines: int
    longest: int
    modules: int
    functions: int
    frames: int
    frames_with_libraries: int
    modules_with_options: int
    option_files: int


def count_lines() -> dict[Path, int]:
    """Count the lines of each module of core."""
    return {file: len(file.read_text(encoding="utf-8").splitlines()) for file in CORE.rglob("*.py")}


def is_on_top(file: Path) -> bool:
    """Return whether a module belongs to one of the capabilities of `ON_TOP`."""
    folder, name = (*file.relative_to(CORE).parts, "")[:2]
    return folder in ON_TOP or (folder == "cli" and name.removesuffix(".py").partition("_")[0] in ON_TOP)


def measure() -> Figures:
    """Count the files, and run a share under the profiler."""
    lines = count_lines()
    first = {file: number for file, number in lines.items() if not is_on_top(file)}
    lengths = [number for file, number in first.items() if file.name != "errors.py"]
    longest = max(number for file, number in lines.items() if file.name != "errors.py")
    naming = sum(bool(re.search(r"\btimed_view\b", file.read_text(encoding="utf-8"))) for file in lines)
    return Figures(len(first), int(statistics.median(lengths)), longest, *_share(), naming)


def _share() -> tuple[int, int, int, int, int]:
    from sealpipe_rehearsal.server import start

    with start() as service, tempfile.TemporaryDirectory() as folder:
        environ: Mapping[str, str] = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": folder,
            "SEALPIPE_STATE_DIR": f"{folder}/state",
            "SEALPIPE_API_KEY": service.create_key(scopes=["shares:write"]).reveal(),
            "SEALPIPE_BASE_URL": service.base_url,
            "SEALPIPE_LINK_BASE_URL": service.link_base_url,
            "FIGURE": "a value that is counted",
        }
        roots = ":".join(str(ROOT / part) for part in ("core/sealpipe", "plugins/sealpipe_plugins"))
        done = subprocess.run(
            [sys.executable, "-c", _PROFILED, roots], env=environ, capture_output=True, text=True, check=True
        )
    modules, functions, frames, all_frames, rooms = map(int, done.stderr.splitlines()[-1].split())
    return modules, functions, frames, all_frames, rooms


if __name__ == "__main__":
    for name, value in vars(measure()).items():
        print(f"{name:24}{value}")
