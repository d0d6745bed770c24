"""Envelopes and sealed boxes that sealpipe and WebCrypto pass to each other: sealed by one, opened
by both.
"""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from unit.wire.items import Box, Envelope, Item
from unit.wire.node import Node

BATCH = 250


@dataclass
class Figures:
    """What was done and what came of it; `wrong` are the disagreements."""

    done: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def run(program: str, count: int, seed: int) -> Figures:
    """`count` items, as many of each kind and sealed by each side as may be."""
    chance, figures = random.Random(seed), Figures()  # noqa: S311
    with Node(program) as node:
        before: tuple[list[Item], Future[list[Any]]] | None = None
        for start in range(0, count, BATCH):
            batch = [
                some_item(chance, number) for number in range(start, min(start + BATCH, count))
            ]
            sealed_by_both(node, batch)
            for item in batch:
                item.spoil(chance)
            sent = (batch, node.send([job for item in batch for job in item.jobs()]))
            if before:
                compare(*before, figures)
            before = sent
        if before:
            compare(*before, figures)
    return figures


def some_item(chance: random.Random, number: int) -> Item:
    made: Item = (Envelope, Box)[number % 2](chance)
    made.sealer = ("sealpipe", "webcrypto")[number // 2 % 2]
    return made


def sealed_by_both(node: Node, batch: list[Item]) -> None:
    theirs = [item for item in batch if item.sealer == "webcrypto"]
    answer = node.send([item.sealing() for item in theirs])
    for item in batch:
        if item.sealer == "sealpipe":
            item.data = item.sealed()
    for item, data in zip(theirs, answer.result(300), strict=True):
        item.data = data


def compare(batch: list[Item], answer: Future[list[Any]], figures: Figures) -> None:
    answers = iter(answer.result(300))
    for item in batch:
        opened, *derived = [next(answers) for _ in item.jobs()]
        ours = item.opened()
        figures.done[f"{item.name} sealed by {item.sealer}, {item.fault or 'whole'}"] += 1
        if item.fault and isinstance(ours, dict):
            figures.refused[ours["refused"]] += 1
        wrong = "opened" if item.fault and not isinstance(ours, dict) else ""
        wrong = wrong or (
            "not what was sealed" if not item.fault and ours != item.plaintext.hex() else ""
        )
        wrong = wrong or ("not opened alike" if opened != ours else "")
        wrong = wrong or ("not derived alike" if derived != item.derived() else "")
        if wrong:
            figures.wrong.append(f"{wrong}: {item} sealpipe {ours!s:.80} webcrypto {opened!s:.80}")


def show(figures: Figures, seconds: float) -> None:
    for what, number in sorted(figures.done.items()):
        print(f"{number:8} {what}")
    for reason, number in figures.refused.most_common():
        print(f"{number:8} refused by both: {reason}")
    for wrong in figures.wrong[:20]:
        print(wrong)
    count = sum(figures.done.values())
    print(
        f"{count} in {seconds:.0f} s, {sum(figures.refused.values())} refused, "
        f"{len(figures.wrong)} disagreements"
    )
