"""Each tutorial of docs/tutorial, followed word for word on a machine of its reader's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from e2e.tutorials.machine import Machine, own_network
from e2e.tutorials.page import PAGES, Page
from e2e.tutorials.reader import Reader

DEMANDED = {"github-actions.md": ["git"], "gitlab.md": ["git", "gitlab-ci-local", "node", "rsync"]}
"""Programs that pages demand of the machine, in words."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with own_network():
        yield Machine(tmp_path_factory.mktemp("tutorials"))


@pytest.mark.parametrize("name", PAGES)
def test_a_reader_can_follow_it_word_for_word(name: str, machine: Machine) -> None:
    page = Page.load(name)
    for program in DEMANDED.get(name, ()):
        machine.add(program)
    with Reader(machine, machine.begin()) as reader:
        reader.follow(page)
