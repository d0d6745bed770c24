"""What a whole `sealpipe share` of one small secret costs: outbox, registry and command line
included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import SEALPIPE, Bench
from crowd import install as crowded
from measuring import Command, by_turns
from table import Row

VALUE = "correct horse battery staple"
PLUGINS = 20
SHARE = (SEALPIPE, "share", "-f", "env:DB_PASSWORD")


def rows(bench: Bench) -> Iterator[Row]:
    """The rows of this group."""
    three = bench.at(bench.other.fresh(), DB_PASSWORD=VALUE)
    two = three | {"SEALPIPE_API_KEY": three["SEALPIPE_API_KEY"].rpartition(".")[0]}
    smallest, one_root = (
        bench.python("smallest.py"),
        {"SSL_CERT_FILE": str(_one_root(bench.folder))},
    )
    ours, theirs = Command(SHARE, two), Command(smallest, two)
    yield _row(bench, "share", "two-part key; the smallest script", ours, theirs, 0.8)
    what = "the same in CPU time, the kernel's included"
    yield bench.timed("share-cpu", what, ours, theirs)
    wall = by_turns(ours, theirs, bench.runs, bench.meter.wall)
    yield Row("share-wall", "the same in wall time", "ms", wall, 1.0)
    what = "the same; the script reads one root certificate in place of all"
    yield _row(bench, "share-one-root", what, ours, Command(smallest, two | one_root))

    crowd, nobody = (
        str(crowded(bench.folder / f"plugins-{count}", count)) for count in (PLUGINS, 0)
    )
    what = f"{PLUGINS} distributions with plugins beside it; none"
    ours, theirs = (Command(SHARE, two | {"PYTHONPATH": folder}) for folder in (crowd, nobody))
    yield _row(bench, "share-plugins", what, ours, theirs, 1.005)

    off = (*SHARE, "--custody", "off")
    what = "three-part key, `--custody off`; the smallest script"
    yield _row(bench, "share-custody-off", what, Command(off, three), Command(smallest, three), 1.1)
    what = "three-part key, with a wrap; the smallest script, without one"
    yield _row(bench, "share-wrap", what, Command(SHARE, three), Command(smallest, three), 1.1)
    what = "three-part key, with a wrap; the smallest script with one"
    theirs = Command(bench.python("smallest_with_wrap.py"), three)
    yield _row(bench, "share-wrap-both", what, Command(SHARE, three), theirs, 1.1)

    crs = bench.at(bench.other.fresh("crs"), DB_PASSWORD=VALUE)
    ours, theirs = Command((*off, "--title", "Database"), crs), Command(bench.python("sdk.py"), crs)
    what = "`--custody off`; a script with the SDK credenshare 0.4.0"
    yield _row(bench, "share-sdk", what, ours, theirs, tag="crs")


def _row(
    bench: Bench,
    name: str,
    what: str,
    ours: Command,
    theirs: Command,
    target: float | None = None,
    tag: str = "svc",
) -> Row:
    for command in (ours, theirs):
        bench.opens(command, "DB_PASSWORD", VALUE, tag)
    # Under callgrind each of these takes seconds.
    return bench.counted(
        name, f"`sealpipe share`, {what}" if name == "share" else what, ours, theirs, target
    )


def _one_root(folder: Path) -> Path:
    """A file with the first root certificate that httpx trusts."""
    import certifi

    end = "-----END CERTIFICATE-----\n"
    path = folder / "one-root.pem"
    path.write_text(
        Path(certifi.where()).read_text(encoding="utf-8").partition(end)[0] + end, encoding="utf-8"
    )
    return path
