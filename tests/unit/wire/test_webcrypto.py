"""A third reading, with a browser's WebCrypto: three hundred envelopes and boxes, sealed by either,
opened by both.

A hundred thousand of them: tests/endurance/cross_open.py. Every vector: test_vectors.py.
"""

from __future__ import annotations

import json
import random
import struct
from concurrent.futures import Future
from typing import Any

import pytest

from sealpipe.wire import jsontext
from support.parts import program
from unit.wire import crossing
from unit.wire.items import Box, Envelope, Item
from unit.wire.node import Node

pytestmark = pytest.mark.filterwarnings("ignore:unknown field type")  # some have one on purpose
SEED = 20240607  # the same on every run
COUNT = 300


def test_each_opens_what_the_other_seals_and_both_refuse_what_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = crossing.run(program("node"), COUNT, SEED)
    assert figures.wrong == []
    assert figures.done.total() == COUNT
    whole = {what: number for what, number in figures.done.items() if what.endswith("whole")}
    assert whole.keys() == {
        f"{what} sealed by {who}, whole" for what in ("envelope", "box") for who in SEALERS
    }
    assert min(whole.values()) > COUNT / 8
    assert figures.refused.total() == COUNT - sum(whole.values()) > COUNT / 8
    crossing.show(figures, 1)
    assert (
        f"{COUNT} in 1 s, {figures.refused.total()} refused, 0 disagreements"
        in capsys.readouterr().out
    )


SEALERS = ("sealpipe", "webcrypto")


@pytest.mark.parametrize("kind", [Envelope, Box])
def test_a_disagreement_is_counted(kind: type[Item]) -> None:
    chance = random.Random(SEED)  # noqa: S311  # test data
    item = kind(chance)
    item.data = item.sealed()
    opened, derived = item.plaintext.hex(), item.derived()
    broken = kind(chance)
    broken.data, broken.fault = broken.sealed(), "none in truth"
    for subject, answers, wrong in (
        (item, [opened, *derived], ""),
        (item, [{"refused": "box wrong-key"}, *derived], "not opened alike"),
        (item, [opened + "00", *derived], "not opened alike"),
        (item, [opened, "other"], "not derived alike"),
        (broken, [broken.plaintext.hex(), *broken.derived()], "opened"),
    ):
        answer: Future[list[Any]] = Future()
        answer.set_result(answers)
        figures = crossing.Figures()
        crossing.compare([subject], answer, figures)
        assert [told.partition(":")[0] for told in figures.wrong] == [wrong] * bool(wrong)


def test_numbers_are_spelled_as_a_browser_spells_them() -> None:
    chance = random.Random(SEED)  # noqa: S311  # test data
    numbers = [struct.unpack("<d", chance.randbytes(8))[0] for _ in range(2000)]
    numbers += [
        float(f"{digits}e{power}") for power in range(-30, 30) for digits in ("1", "-1.5", "123456")
    ]
    numbers = [number for number in numbers if number == number and abs(number) != float("inf")] + [
        0.0,
        -0.0,
        5e-324,
    ]
    with Node(program("node")) as node:
        (answer,) = node.ask([{"verb": "stringify", "text": json.dumps(numbers)}])
    assert answer == "[" + ",".join(map(jsontext.ecmascript, numbers)) + "]"
