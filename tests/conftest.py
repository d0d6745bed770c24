"""For all tests: print the measured figures at the end of the run, and make hypothesis draw the
same cases every time.

A test reports a figure with `record_property("figure", text)`. Only endurance runs and
`--hypothesis-seed` draw new cases, so a failing run of the suite has found a change, not a new
random case.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from environment import own_environment
from rewriting import collect_in_turn, sort_key
from support.forked import retry_at_once
from support.parts import Postgres, SkipWithoutPart
from tiers import is_first, is_in_rest, is_left_out

# A shell starts a background job, and nohup a command, with signals that it ignores; and so would
# all that tests start.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGQUIT, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)
# hypothesis would import trio and what else brings it strategies, half a second for each worker: no
# test draws them.
os.environ["HYPOTHESIS_NO_PLUGINS"] = "1"
# jsonschema would compile 38 grammars for a format that no schema here has, two seconds for each.
sys.modules["rfc3987_syntax"] = None
# What one worker has compiled and rewritten serves the others (rewriting.py): without it each takes
# a quarter of a minute more, also where the user wants none.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# So that a contract that fails says what differs. Where sealpipe is installed from a wheel, its
# entry point for pytest does the same.
pytest.register_assert_rewrite("sealpipe.testing")
retry_at_once()
sys.meta_path.append(SkipWithoutPart)


REST_SECONDS = 600
"""Time limit of a test of the second tier with its fixtures: a loaded machine builds an image or
starts an engine.
"""


@pytest.fixture(scope="session", autouse=True)
def nobody_in_particular(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No variable, home or umask of the user's, or of the CI system that the suite runs in, reaches
    a test.
    """
    with own_environment(tmp_path_factory.mktemp("home of the tests")):
        yield


@pytest.fixture(scope="session", autouse=True)
def one_initdb(tmp_path_factory: pytest.TempPathFactory) -> None:
    """All workers share what PostgreSQL begins with."""
    folder = tmp_path_factory.getbasetemp()
    Postgres.made = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "initdb"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The tiers: a bare run leaves out what tests/tiers.py names."""
    group = parser.getgroup("sealpipe")
    group.addoption(
        "--all", action="store_true", help="every test: browsers, engines, runners and sweeps, too"
    )
    group.addoption("--rest", action="store_true", help="only what a bare run leaves out")
    group.addoption(
        "--store",
        choices=["sqlite", "postgresql", "four"],
        default="sqlite",
        help="what the service of tests/service stores in; four: a server's four processes",
    )
    group.addoption(
        "--update",
        action="store_true",
        help="write scenarios, pictures and states, in place of comparing",
    )


@pytest.fixture
def is_update(request: pytest.FixtureRequest) -> bool:
    """Whether files are written in place of compared."""
    return bool(request.config.getoption("--update"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file that is in the other tier whole: to import all of them takes each worker ten
    seconds.
    """
    if config.getoption("--all") or not collection_path.is_relative_to(config.rootpath / "tests"):
        return None
    path = collection_path.relative_to(config.rootpath).as_posix() + "/" * collection_path.is_dir()
    return is_left_out(path, rest=config.getoption("--rest")) or None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Workers of a whole tier share what each would do.

    A run that names files needs too few of them.

    What is collected stays to the end: to look through it for garbage, again and again, takes a
    fifth of collecting; and to look each 700 objects takes a tenth of all tests.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is not None and not session.config.getoption("--all"):
        number = int(worker["workerid"].removeprefix("gw"))
        collect_in_turn(session.config, Path(__file__).parent, number, worker["workercount"])
    SkipWithoutPart.is_collecting = True
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 100)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes long.

    Leave the other tier out, unless `--all` is given or what to run is named.
    """
    items.sort(key=lambda item: (not is_first(item.nodeid), sort_key(item)))
    for item in items:
        if is_in_rest(item.nodeid) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(REST_SECONDS))
    rest = config.getoption("--rest")
    if config.getoption("--all"):
        return
    tiers: dict[bool, list[pytest.Item]] = {True: [], False: []}
    for item in items:
        tiers[is_in_rest(item.nodeid)].append(item)
    config.hook.pytest_deselected(items=tiers[not rest])
    items[:] = tiers[rest]


def pytest_configure(config: pytest.Config) -> None:
    """What is named is run whole. Cases have no deadline: a busy machine would miss it."""
    if config.args_source == config.ArgsSource.ARGS and not config.getoption("--rest"):
        config.option.all = (
            True  # and so it is for the workers, whose arguments are never the user's own
        )
    from hypothesis import settings  # here, where it is told to load no plugins
    from hypothesis.internal.conjecture import providers

    if config.getoption("--hypothesis-seed", None) is None:
        settings.load_profile("ci")
        # It also draws the texts and numbers that stand in whichever modules of ours are loaded:
        # other cases after any change of the code, and for any choice of tests.
        providers._get_local_constants = lambda: providers._local_constants
    else:
        settings.register_profile("other cases", deadline=None)
        settings.load_profile("other cases")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Twice as many as there are cores: most tests wait, for a deadline, a process, a browser or an
    engine.
    """
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return 2 * cores


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures. A worker's own output is seen by nobody."""
    figures = [
        str(value)
        for report in terminalreporter.getreports("passed")
        for name, value in report.user_properties
        if name == "figure"
    ]
    if figures:
        terminalreporter.section("figures")
    for figure in figures:
        terminalreporter.line(figure)
