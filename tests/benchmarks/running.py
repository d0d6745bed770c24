"""What `sealpipe run` costs: its start, and the search of its command's output."""

from __future__ import annotations

from collections.abc import Iterator

from bench import SEALPIPE, Bench
from measuring import Command, by_turns
from table import Row

LINE = (
    "2026-11-23T10:00:{:02d}Z INFO server: handled GET /v1/things/{:08x} in 12ms status=200 "
    "agent=Mozilla/5.0\n"
)
SECRETS = 50


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    names = [f"SECRET_{number}" for number in range(SECRETS)]
    environ = {
        name: f"{number:02d}/canary+of {name}~{number * 7919:x}"
        for number, name in enumerate(names)
    }
    refs, one = bench.folder / "refs.env", bench.folder / "one.env"
    refs.write_text("".join(f"MY_{name}=env:{name}\n" for name in names))
    one.write_text(f"MY_{names[0]}=env:{names[0]}\n")
    size = 200_000 if bench.short else 20_000_000
    log = bench.folder / "log"
    lines = (
        LINE.format(number % 60, number * 2_654_435_761 % 2**32)
        for number in range(size // len(LINE))
    )
    log.write_text("".join(lines) + environ[names[0]] + "\n")

    def both(file: str, *command: str) -> tuple[Command, Command]:
        ours = Command([SEALPIPE, "run", "--env-file", file, "--", *command], environ)
        return ours, Command(bench.python("running.py", file, *command), environ)

    start = both(str(one), "true")
    yield bench.counted(
        "run", "`sealpipe run --env-file FILE -- true`, one `env:`; the smallest script", *start
    )
    wall = by_turns(*start, bench.runs, bench.meter.wall)
    yield Row("run-wall", "the same in wall time", "ms", wall)
    search = both(str(refs), "cat", str(log))
    assert [bench.meter.run(command).out.endswith("\n***\n") for command in search] == [True, True]
    what = f"`run` with {SECRETS} secrets and {size // 1_000_000} MB of output; the smallest script"
    yield bench.timed("run-redact-cpu", what, *search)
    idle = Command(
        [SEALPIPE, "run", "--no-redact", "--env-file", str(refs), "--", "cat", str(log)], environ
    )
    yield bench.timed("run-redact-none-cpu", "the same; `run --no-redact`", search[0], idle)
