"""The figures of the house stay where they are, or get better: whoever makes one worse changes the
table of `figures.py`, and says why in the commit.

No figure limits how long a module is, how many there are, or how many frames a call has: such
limits bred modules just below them, and imports inside functions. What a start costs is measured
itself (`tests/benchmarks`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable

import pytest

from unit.house.figures import (
    FIGURES,
    find_circles,
    find_edited_errors,
    find_generators,
    find_inner_imports,
    find_texts,
    find_type_only_blocks,
    main,
)

HELD = [name for name, figure in FIGURES.items() if figure.at_most is not None]


@pytest.mark.parametrize("name", HELD)
def test_the_house_gets_no_worse(name: str) -> None:
    figure = FIGURES[name]
    assert figure.at_most is not None
    found = len(figure.find())
    assert found <= figure.at_most, (
        f"{name}: {found}, at most {figure.at_most} (python tests/unit/house/figures.py "
        f"{name}): {figure.remedy}"
    )


def test_the_table_shows_each_figure_with_its_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    circles = next(
        line.split()
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("import circles")
    )
    figure = FIGURES["import circles"]
    assert circles == [
        "import",
        "circles",
        str(len(figure.find())),
        str(figure.at_most),
        str(figure.target),
    ]


def test_the_places_of_a_figure_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    main(["long", "__init__.py"])
    shown = capsys.readouterr().out.splitlines()
    assert shown == list(FIGURES["long __init__.py"].find())


@pytest.mark.parametrize(
    ("imports", "circles"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, []),
        ({"a": ["a"]}, []),  # a package that imports its own module
        ({"a": ["b"], "b": ["a"]}, [["a", "b"]]),
        ({"a": ["b", "d"], "b": ["c"], "c": ["a"], "d": ["c"]}, [["a", "b", "c", "d"]]),
        ({"a": ["b"], "b": ["a", "c"], "c": ["d"], "d": ["c"]}, [["a", "b"], ["c", "d"]]),
        ({"a": ["outside"], "b": ["a"]}, []),
    ],
)
def test_circles_are_found(imports: dict[str, list[str]], circles: list[list[str]]) -> None:
    assert sorted(find_circles(imports)) == circles


@pytest.mark.parametrize(
    ("find", "source", "lines"),
    [
        (find_generators, "def f() -> Flow[int]:\n  x = yield Do(g)\n  return x", [1]),
        (find_generators, "class A:\n  def f(self):\n    yield from g()", [2]),
        (find_generators, "def f() -> Generator[Step, Any, None]: yield Wait(1)", [1]),
        (
            find_generators,
            "def f() -> Iterator[int]: yield 1\ndef g() -> int: return sum(x for x in f())",
            [],
        ),
        (
            find_generators,
            "def f() -> int:\n  def g() -> Iterable[int]: yield 1\n  return sum(g())",
            [],
        ),
        (
            find_inner_imports,
            "import a\ndef f():\n  if 1:\n    import b\n  from c import d",
            [4, 5],
        ),
        (find_inner_imports, "def f():\n  def g():\n    import b", [3]),
        (
            find_inner_imports,
            "if TYPE_CHECKING:\n  import a\ntry:\n  import b\nexcept ImportError: pass",
            [],
        ),
        (
            find_type_only_blocks,
            "if TYPE_CHECKING:\n  import a\nif typing.TYPE_CHECKING:\n  import b",
            [1, 3],
        ),
        (find_type_only_blocks, "if not TYPE_CHECKING:\n  def __getattr__(name): ...", []),
        (
            find_edited_errors,
            "e.remedy = x\ne.message += y\na, e.inner.remedy = z\ne.args = (x,)",
            [1, 2, 3],
        ),
        (find_edited_errors, "self.remedy: str = x\nfound[e.message] = e.copy_with(remedy=x)", []),
        (find_texts(r"Flow\["), "a: Flow[Flow[b]]\n\nc: Flow", [1, 1]),
        (find_texts("^.{101,}"), f"{'a' * 100}\n{'b' * 101}", [2]),
    ],
)
def test_a_planted_one_is_found(
    find: Callable[[str], Iterable[int]], source: str, lines: list[int]
) -> None:
    assert sorted(find(textwrap.dedent(source))) == lines
