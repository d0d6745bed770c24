"""A process that stores something in a sink of this machine: `python -P putting.py SINK MODE`.

It stores once in the folder WARM, so that nothing is imported later; then it reads a line of JSON
from stdin, `{"body": ..., "values": {...}}`, stores that, and says on stdout how it went.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from sealpipe.errors import PluginError
from sealpipe.plugin import Mode, SinkField, WriteResult
from sealpipe.reference import Reference
from sealpipe.registry import Registry
from sealpipe.secret import Secret
from sealpipe.state.files import create_file, replace_file

TESTS = Path(__file__).resolve().parents[2]


def put(
    name: str, body: str, values: Mapping[str, str | bytes], mode: Mode, **params: str
) -> WriteResult:
    """Store some values, as the core does. `params` are the sink's own."""
    # As the clients do, without their imports: httpx loads trio, which starts ldconfig.
    registry = Registry(
        environ={},
        new_file=lambda path, content: create_file(path, lambda: [content]),
        replace_file=replace_file,
    )
    fields = [SinkField(key, Secret(value)) for key, value in values.items()]
    return registry.sink(name).put(
        registry.locate(Reference(name, body, tuple(params.items())), "sink"),
        fields,
        mode=mode,
        marker="m1",
    )


class Putting:
    """Such a process. It waits until `tell` says what to store; `place` is a folder of the test."""

    code: ClassVar[Sequence[Path]] = (TESTS,)
    """Where its modules are, before those that are installed."""

    def __init__(
        self,
        place: Path,
        name: str,
        mode: Mode,
        *,
        under: Sequence[str] = (),
        umask: int = -1,
        warm: str = "warm",
    ) -> None:
        (place / warm).mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            [*under, sys.executable, "-P", __file__, name, mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                "PATH": os.defpath,
                "PYTHONPATH": os.pathsep.join(map(str, self.code)),
                "PYTHONDONTWRITEBYTECODE": ""
                if umask == -1
                else "1",  # a cache with such a mode is none of ours
                "WARM": str(place / warm),
                "PYTHONHASHSEED": "0",  # so that a second run makes the same system calls
            },
            umask=umask,
            text=True,
        )

    def tell(self, body: str | Path, values: Mapping[str, str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"body": str(body), "values": values}) + "\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[int, str]:
        """Its exit code, and what it said: stored, already, or an error."""
        # In the process that stores it would load an SDK, which starts ldconfig.
        from support.terminal import (
            PATIENCE,
        )

        out, err = self.process.communicate(timeout=PATIENCE)
        assert not err, err
        return self.process.returncode, out.strip()


def _main() -> None:
    name, mode, warm = sys.argv[1], sys.argv[2], Path(os.environ["WARM"])
    for value in ("first", "second"):
        how: Mode = "replace" if mode != "create" or value == "second" else "create"
        put(name, str(warm / "it"), {"WARM": value}, how if mode != "merge" else "merge")
    told = json.loads(sys.stdin.readline())
    try:
        result = put(name, told["body"], told["values"], mode)  # type: ignore[arg-type]
        print("already" if result.already else "stored")
    except PluginError as error:
        print(f"{type(error).__name__}: {error.message} ({error.remedy})")


if __name__ == "__main__":
    _main()
