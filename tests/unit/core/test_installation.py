"""What to run for a missing package, in each kind of environment; where they can be had, in real
ones.
"""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from sealpipe.installation import IMAGE_MARKER, format_command
from support.parts import ROOT, program

VAULT = ["sealpipe[vault]"]


@pytest.mark.parametrize(
    ("files", "packages", "command"),
    [
        ({}, VAULT, "pip install 'sealpipe[vault]'"),
        ({}, [], ""),
        ({}, ["a>=1", "b"], "pip install 'a>=1' 'b'"),
        ({"pipx_metadata.json": "{}"}, VAULT, "pipx inject sealpipe 'sealpipe[vault]'"),
        ({"pipx_metadata.json": "{}"}, ["a>=1", "b"], "pipx inject sealpipe 'a>=1' 'b'"),
        (
            {"uv-receipt.toml": ""},
            ["a>=1", "b"],
            "uv tool install --with 'a>=1' --with 'b' sealpipe",
        ),
        ({"pyvenv.cfg": "home = /usr\nuv = 0.9.1\n"}, VAULT, "uv pip install 'sealpipe[vault]'"),
        ({"pyvenv.cfg": "home = /usr/uv = 1\n"}, VAULT, "pip install 'sealpipe[vault]'"),
        ({IMAGE_MARKER: ""}, VAULT, "build the image with vault in --build-arg EXTRAS=..."),
        ({IMAGE_MARKER: ""}, ["a"], "build an image of your own that also has a"),
    ],
)
def test_each_environment_is_told_by_its_files(
    tmp_path: Path, files: dict[str, str], packages: list[str], command: str
) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert format_command(packages, str(tmp_path), has_pip=False) == command


def test_a_venv_of_uv_that_has_pip_is_told_pip(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("uv = 0.9.1\n")
    assert format_command(VAULT, str(tmp_path), has_pip=True) == "pip install 'sealpipe[vault]'"


def test_without_a_wheel_it_begins_with_the_version_to_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 14, 10))
    said = format_command(["sealpipe[op]"], str(tmp_path), has_pip=True)
    assert said == (
        "use Python 3.13 (onepassword-sdk has no wheel for 3.14) and run pip install 'sealpipe[op]'"
    )
    assert format_command(VAULT, str(tmp_path), has_pip=True) == "pip install 'sealpipe[vault]'"
    monkeypatch.setattr(sys, "version_info", (3, 13, 18))
    assert (
        format_command(["sealpipe[op]"], str(tmp_path), has_pip=True)
        == "pip install 'sealpipe[op]'"
    )


def test_a_real_venv_is_told_pip(tmp_path: Path) -> None:
    venv.create(tmp_path / "v", with_pip=False)
    assert (
        format_command(VAULT, str(tmp_path / "v"), has_pip=False) == "pip install 'sealpipe[vault]'"
    )


def test_a_real_venv_of_uv_is_told_uv_pip(tmp_path: Path) -> None:
    run(["venv", "--offline", "--python", sys.executable, str(tmp_path / "v")], tmp_path)
    assert (
        format_command(VAULT, str(tmp_path / "v"), has_pip=False)
        == "uv pip install 'sealpipe[vault]'"
    )


def test_a_real_tool_of_uv_is_told_uv_tool(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as content:
        content.writestr("tiny.py", "def main(): pass\n")
        content.writestr(
            "tiny-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1\n"
        )
        content.writestr(
            "tiny-1.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        content.writestr(
            "tiny-1.dist-info/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n"
        )
        names = [
            "tiny.py",
            *(
                f"tiny-1.dist-info/{name}"
                for name in ("METADATA", "WHEEL", "entry_points.txt", "RECORD")
            ),
        ]
        content.writestr("tiny-1.dist-info/RECORD", "".join(f"{name},,\n" for name in names))
    run(["tool", "install", "--offline", "--python", sys.executable, str(wheel)], tmp_path)
    assert (
        format_command(["a"], str(tmp_path / "tools/tiny")) == "uv tool install --with 'a' sealpipe"
    )


def run(words: list[str], home: Path) -> None:
    """The real uv, with a home of its own."""
    command = [program("uv"), *words]
    environ = {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "UV_TOOL_DIR": str(home / "tools"),
        "UV_TOOL_BIN_DIR": str(home / "bin"),
        "UV_CACHE_DIR": str(home / "cache"),
    }
    subprocess.run(command, env=environ, cwd=home, check=True, capture_output=True, timeout=60)


def test_the_image_has_its_marker() -> None:
    assert f"touch /opt/sealpipe/{IMAGE_MARKER} " in (ROOT / "containers/Dockerfile").read_text()
