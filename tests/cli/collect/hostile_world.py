"""Hostile submissions through the real collecting, on this machine: opened, picked, written to
stdout and into files.

Everything is real but the network: what the service says is answered in this process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from cli.collect.hostile_expected import PROMPTS, WAYS, Batch, Take, anybodys, folder_of, taken
from cli.collect.hostile_files import Watch, dotenv_says, files_in
from cli.collect.hostile_output import (
    as_json,
    fields_in,
    harmless,
    keeps_to_itself,
    shows,
    stream,
    umask,
)
from sealpipe import Client
from sealpipe.api.operation import Operation, Response
from sealpipe.cli import collect_report, render
from sealpipe.cli.disclosure import Disclosure
from sealpipe.collect import poll
from sealpipe.collect.options import CollectPlan, plan_collect
from sealpipe.collect.results import CollectResult, choose_worst_error
from sealpipe.state.receipt import Receipt
from sealpipe.wire import encoding, keys
from support.hostile import CANARY, LABEL, Hostile, Row, sealed
from support.playing import PlayedNetwork, play

_MARKER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}\.[0-9a-f]{12}|x\.[0-9a-f]{32}")
_OUTSIDE_CI = Disclosure(None, is_allowed=True, is_print_given=False)


class World:
    """A credential, a working directory deep in a folder, and a service in this process.

    The process goes there.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.here, self.state = root, root / "a/b/c/d/work", root / "state"
        for folder in (*reversed(self.here.relative_to(root).parents[:-1]), self.here, self.state):
            (root / folder).mkdir(mode=0o700)
        secret = encoding.encode_base64url(os.urandom(32))
        api_key = f"svc_sk_live_{_part(12)}.{_part(32)}.{secret}"
        self.client = Client(
            api_key=api_key, base_url="http://127.0.0.1:9/v1", link_base_url="http://127.0.0.1:9"
        )
        self.pair = keys.from_custody_secret(secret)
        self.public_key = encoding.encode_base64url(self.pair.public_key)
        self.figures: Counter[str] = Counter()
        self.watch = Watch(root)
        self._bodies: dict[str, bytes] = {}
        os.chdir(self.here)

    def play(self, batch: Batch) -> None:
        """A batch into stdout, as text and as JSON, and by its way into files; raises
        AssertionError.
        """
        takes, by_receipt = WAYS[batch.way]
        requests = self.requests(batch)
        asked = [self.receipt(code) if by_receipt else code for code in requests]
        pick = "each" if batch.together else "only"
        with self._clean():
            plan = plan_collect(asked, pick=pick, state=self.state)
            results, err = self.collect(plan)
            wanted = [
                [one.fields or () for one in self._opened(found)] for found in requests.values()
            ]
            self.judge_stdout(plan, results, list(requests.values()), wanted)
            keeps_to_itself(err)
            self._kept(requests)
        place = "{submission}" if batch.together else "{request}"
        targets = [take.text(place) for take in takes]
        folder = None if takes else "out"
        plan = plan_collect(asked, pick=pick, to=targets, folder=folder, state=self.state)
        with self._clean():
            before = self._stored(plan, requests, takes, by_receipt=by_receipt)
            if len(batch.rows[0].sent.payload) % 4 == 0:
                assert (
                    self._stored(plan, requests, takes, by_receipt=by_receipt, again=True) == before
                )
        self.figures["submissions"] += len(batch.rows)

    # -- what is asked, and who answers --------------------------------------------------------

    def requests(self, batch: Batch) -> dict[str, list[tuple[Row, str | None]] | None]:
        """The service's answers are set; what it hands out for each request, None where it lies
        about that.
        """
        found = [(row, sealed(row.sent, self.pair.public_key)) for row in batch.rows]
        groups = [found] if batch.together else [[each] for each in found]
        requests: dict[str, list[tuple[Row, str | None]] | None] = {}
        self._bodies.clear()
        for number, group in enumerate(groups):
            told: list[dict[str, Any]] = [
                {"short_code": row.short_code, "created_at": row.created_at, "data": data}
                for row, data in group
            ]
            lies = batch.lie is not None and number == 0
            if lies:
                told[-1] |= batch.lie
            code = f"r{number}x"
            self._bodies[code] = json.dumps(
                {"submissions": [*told, *told[:1]], "count": len(told)}
            ).encode()
            distinct: dict[object, tuple[Row, str | None]] = {}
            for row, data in group:
                distinct.setdefault((row.short_code, data), (row, data))
            requests[code] = None if lies else list(distinct.values())
        return requests

    def receipt(self, code: str) -> Receipt:
        return Receipt(code, self.public_key, PROMPTS)

    def answer(self, operation: Operation[Any]) -> Response:
        """As the service would, at once."""
        _, _, code, *rest = operation.path.split("/")
        about = {
            "short_code": code,
            "expired_at": "2099-01-01T00:00:00Z",
            "public_key": self.public_key,
        }
        return Response(200, {}, self._bodies[code] if rest else json.dumps(about).encode())

    def collect(self, plan: CollectPlan) -> tuple[list[CollectResult], bytes]:
        """The results, and what is said on stderr: while it runs, beside its results, and why it
        failed.
        """
        with stream() as err, redirect_stderr(err.file), self.watch.on(), umask(0):
            progress = collect_report.ProgressReport()
            results = self._run(replace(plan, on_progress=progress), progress.tick)
            progress.clear()
            for result in results:
                collect_report.print_warnings(result)
            problems = [each for result in results for each in result.problems()]
            first = choose_worst_error([result.problem() for result in results])
            collect_report.print_errors(problems, first)
            if first is not None:
                render.print_error(first, as_json=False)
                render.print_error(first, as_json=True)
        return results, err.read()

    def _run(self, plan: CollectPlan, tick: float | None) -> list[CollectResult]:
        """As the client does, but that no time passes in waiting."""
        session = self.client.session.with_transport(
            PlayedNetwork(lambda operation, _: self.answer(operation))
        )
        return play(lambda: poll.collect(session, plan, tick=tick), lambda _: None)

    def stdout(
        self, plan: CollectPlan, results: Sequence[CollectResult], how: str, *, stored: bool
    ) -> bytes:
        values = {"to": ("x",) if stored else (), "dir": None, "dry_run": False, "output": how}
        with stream() as out, redirect_stdout(out.file):
            collect_report.print_results(self.client.session, results, plan, values, _OUTSIDE_CI)
        return out.read()

    # -- what must come of it ------------------------------------------------------------------

    def _opened(self, group: Sequence[tuple[Row, str | None]] | None) -> list[Hostile]:
        """What is handed out of a request: everything that is an array of fields, in order."""
        return [row.sent for row, _ in group or () if row.sent.fields is not None]

    def judge_stdout(
        self,
        plan: CollectPlan,
        results: Sequence[CollectResult],
        groups: Sequence[Sequence[tuple[Row, str | None]] | None],
        wanted: Sequence[Sequence[Any]],
    ) -> None:
        """As text and as JSON: exactly what was typed."""
        text = self.stdout(plan, results, "text", stored=False)
        shows(harmless(text) if text else "", wanted)
        told = as_json(self.stdout(plan, results, "json", stored=False))
        for result, group, fields in zip(
            told if isinstance(told, list) else [told], groups, wanted, strict=True
        ):
            assert [fields_in(row) for row in result["submissions"]] == [
                list(each) for each in fields
            ]
            codes = [row.short_code for row, _ in group or () if row.sent.fields is not None]
            assert [row["short_code"] for row in result["submissions"]] == codes
            unreadable = [row.short_code for row, _ in group or () if row.sent.fields is None]
            assert [row["short_code"] for row in result["unreadable"]] == unreadable
            assert all(_MARKER.fullmatch(row["marker"]) for row in result["submissions"])
            assert bool(result.get("errors")) == (group is None)
            self.figures["opened"] += len(fields)
            self.figures["not opened"] += len(unreadable)
            self.figures["not believed"] += group is None

    def _stored(
        self,
        plan: CollectPlan,
        requests: Mapping[str, Sequence[tuple[Row, str | None]] | None],
        takes: Sequence[Take],
        *,
        by_receipt: bool,
        again: bool = False,
    ) -> dict[str, tuple[int, int]]:
        """Into files; what each is by, so that one that was written anew shows."""
        results, err = self.collect(plan)
        keeps_to_itself(err)
        text = self.stdout(plan, results, "text", stored=True)
        if text:
            harmless(text, tabs=3)
        assert not any(canary in text for canary in (CANARY.encode(), LABEL.encode()))
        told = self.stdout(plan, results, "json", stored=True)
        assert CANARY.encode() not in told
        as_json(told)
        expected: dict[str, bytes] = {}
        dotenv: dict[Path, dict[str, str]] = {}
        failures = 0
        for result, (code, group) in zip(results, requests.items(), strict=True):
            usable = [
                (row, found)
                for row, _ in group or ()
                if (found := taken(row.sent, takes)) is not None
            ]
            assert [each.short_code for each in result.submissions] == [
                row.short_code for row, _ in usable
            ]
            assert len(result.unreadable) == len(group or ()) - len(usable)
            markers = [each.marker for each in result.submissions]
            assert len({*markers}) == len(markers)
            for (row, found), marker in zip(usable, markers, strict=True):
                assert _MARKER.fullmatch(marker)
                place = marker if plan.pick == "each" else code
                if not takes:
                    expected |= folder_of(row, f"out/{marker}", by_receipt=by_receipt)
                for take, values in zip(takes, found, strict=True):
                    name = f"{take.folder}/{place}"
                    if take.sink == "file" and values:
                        expected[f"{name}.pw"] = values[""].encode()
                    elif take.sink == "dir":
                        expected |= {
                            f"{name}/{key}": value.encode() for key, value in values.items()
                        }
                    elif values:
                        path = self.here / f"{name}.env"
                        if path.exists() or anybodys(values):
                            assert path.exists(), (path, values)
                            expected[f"{name}.env"] = path.read_bytes()
                            dotenv[path] = values
                        else:
                            failures += 1
            assert len({*(placed.already for placed in result.stored)} - {again}) == 0
        assert sum(len(result.failures) for result in results) == failures
        found = files_in(self.root)
        prefix = f"{self.here.relative_to(self.root)}/"
        ours = {name.removeprefix(prefix): found[name] for name in found if name.startswith(prefix)}
        assert ours.keys() == expected.keys(), ours.keys() ^ expected.keys()
        assert all(ours[name] == expected[name] for name in expected)
        self._kept(requests)
        if not again:
            dotenv_says(dotenv)
            self.figures["files"] += len(expected)
            self.figures["dotenv files"] += len(dotenv)
            self.figures["refused by dotenv"] += failures
            self.figures["stored"] += sum(len(result.submissions) for result in results)
        about = {name: (self.here / name).stat() for name in expected}
        return {name: (each.st_ino, each.st_mtime_ns) for name, each in about.items()}

    def _kept(self, requests: Mapping[str, object]) -> None:
        """Outside the targets there are records of ours alone, one a request, and they hold no
        value.
        """
        found = files_in(self.root)
        inside = f"{self.here.relative_to(self.root)}/"
        for name, content in found.items():
            if not name.startswith(inside):
                assert re.fullmatch(r"state/[0-9a-f]{32}\.jsonl", name), name
                assert content.isascii()
                assert CANARY.encode() not in content
        assert len(found) - sum(name.startswith(inside) for name in found) <= len(requests)

    @contextmanager
    def _clean(self) -> Iterator[None]:
        for name in ("f", "e"):
            (self.here / name).mkdir(mode=0o700, exist_ok=True)
        yield
        for folder in (*self.here.iterdir(), *self.state.iterdir()):
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink()


def _part(size: int) -> str:
    return encoding.encode_base64url(os.urandom(size))


def memory() -> Path | None:
    """Where so many files are best made: in memory, where the system has such a folder."""
    shared = Path("/dev/shm")
    return shared if shared.is_dir() else None
