"""What a test damages is changed for certain: 'x' written over a byte that is 'x' already changes
nothing.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.damage import exchanged, flipped

TESTS = Path(__file__).resolve().parents[2]


def test_a_damaged_byte_or_digit_is_another_one() -> None:
    for byte in range(256):
        assert (
            flipped(bytes([byte, byte]), 0) != bytes([byte, byte]) != flipped(bytes([byte, byte]))
        )
    for digit in "ABQxz019+/-_":
        assert exchanged(f"ab{digit}") != f"ab{digit}"
        assert exchanged(f"{digit}ab", 0)[1:] == "ab"


def written_over(source: str) -> list[int]:
    """The lines that put as many fixed characters in the place of those that a slice leaves out.

    Names in capitals are fixed themselves, and so is what is made of them.
    """
    found: list[int] = []
    if not re.search(r"\[:.*\]\s*\+", source):  # no need to parse it
        return found
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.BinOp(
                ast.BinOp(ast.Subscript(head, ast.Slice(None, begin)), ast.Add(), put),
                ast.Add(),
                ast.Subscript(tail, ast.Slice(end, None)),
            ) if begin is not None and end is not None and ast.dump(head) == ast.dump(tail):
                left_out = _number(end) - _number(begin)
            case ast.BinOp(ast.Subscript(head, ast.Slice(None, begin)), ast.Add(), put) if (
                begin is not None
            ):
                left_out = -_number(begin)
            case _:
                continue
        varies = not any(
            isinstance(name, ast.Name) and name.id.isupper() for name in ast.walk(head)
        )
        if varies and _is_put_over(put, left_out):
            found.append(node.lineno)
    return found


def _is_put_over(node: ast.expr, left_out: int) -> bool:
    """Whether it is a fixed text of that length, or one that is chosen there: choose it in
    `support.damage`.
    """
    if any(isinstance(each, ast.IfExp) for each in ast.walk(node)):
        return True
    match node:
        case ast.Constant(str() | bytes() as fixed):
            return len(fixed) == left_out
    return False


def _number(node: ast.expr) -> int:
    """The number that stands there; for anything else one that no slice has."""
    try:
        return int(ast.literal_eval(node))
    except ValueError:
        return 1 << 40


@pytest.mark.parametrize(
    ("source", "is_chance"),
    [
        ("content[:200] + b'x' + content[201:]", True),
        ("state[:-2] + 'AA'", True),
        ("b[:-3] + (b'AA' if b[-3:-1] != b'AA' else b'BB')[:1] + b[-2:]", True),
        ("seed[:-1] + ('A' if seed[-1] != 'A' else 'B')", True),
        ("content[:200] + b'x' + content[200:]", False),
        ("body[:-1] + b',more}'", False),
        ("CONTENT[:-1] + '9'", False),
        ("flipped(content, 200)", False),
    ],
)
def test_what_writes_over_a_random_byte_is_found(source: str, *, is_chance: bool) -> None:
    assert bool(written_over(source)) is is_chance


def test_no_test_writes_over_a_byte_that_may_be_the_same() -> None:
    found = [
        f"tests/{file.relative_to(TESTS)}:{line}: use support.damage"
        for file in sorted(TESTS.rglob("*.py"))
        for line in written_over(file.read_text(encoding="utf-8"))
    ]
    assert found == []
