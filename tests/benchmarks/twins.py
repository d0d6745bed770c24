"""Two console scripts in one virtual environment: sealpipe's, and the same one around `pass`.

The environment is made for this: what stands in the site-packages of the running one is linked into
it, and beside it a package is installed whose `main` does nothing. The second script is the text of
the first with the other package's name, whichever installer has written it.
"""

from __future__ import annotations

import sys
import sysconfig
import venv
from pathlib import Path

NAME = "nothing_to_do"
_METADATA = f"Metadata-Version: 2.1\nName: {NAME}\nVersion: 1\n"
_ENTRY_POINTS = f"[console_scripts]\n{NAME} = {NAME}.__main__:main\n"
_MAIN = "def main() -> None:\n    pass\n"


def make(folder: Path) -> tuple[Path, Path]:
    """The two scripts: sealpipe's, and the one that does nothing."""
    venv.EnvBuilder(symlinks=True).create(folder)
    packages = Path(
        sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    )
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not (packages / entry.name).exists():
            (packages / entry.name).symlink_to(entry)
    _write(packages / NAME, {"__init__.py": "", "__main__.py": _MAIN})
    _write(
        packages / f"{NAME}-1.dist-info", {"METADATA": _METADATA, "entry_points.txt": _ENTRY_POINTS}
    )
    here = Path(sys.executable).parent
    text = (here / "sealpipe").read_text().replace(str(here), str(folder / "bin"))
    return (
        _script(folder / "bin" / "sealpipe", text),
        _script(folder / "bin" / NAME, text.replace("sealpipe.__main__", f"{NAME}.__main__")),
    )


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_text(content)


def _script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path
