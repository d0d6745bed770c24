"""Commit messages that real git makes: what it keeps is searched, and what it cuts off is not."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.precommit.conftest import Hook, found_by
from support.parts import program

SCISSORS = "# ------------------------ >8 ------------------------\n"
LINK = found_by()["link-with-key"][0]
SAVED = f"""\
take the link out

{SCISSORS}# Do not modify or remove the line above.
# Everything below it will be ignored.
diff --git a/x b/x
--- a/x
+++ b/x
@@ -1 +1 @@
-{LINK}
+nothing
"""
"""A message as `git commit -v` leaves it in .git/COMMIT_EDITMSG."""

Commit = Callable[..., tuple[int, str]]


@pytest.fixture
def commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Commit:
    """Commit the removal of a link, in a repository with the hook: the exit code, and the message
    that is kept.
    """
    for name in ("GIT_EDITOR", "VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)

    def git(*words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        own = {
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_COUNT": "2",
            "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "t",
            "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "t@example.com",
        }  # fmt: skip
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("GIT_")
        }
        return subprocess.run(
            [program("git"), *words],
            cwd=tmp_path,
            env={**inherited, **own},
            capture_output=True,
            text=True,
            check=check,
        )

    git("init", "-q")
    (tmp_path / "x").write_text(f"{LINK}\n")
    git("add", "x")
    git("commit", "-qm", "first")
    (tmp_path / "x").write_text("nothing\n")
    git("add", "x")
    hook = tmp_path / ".git/hooks/commit-msg"
    hook.write_text(
        f"#!/bin/sh\nexec {shlex.quote(sys.executable)} -m sealpipe_plugins.precommit.main "
        'no-links -- "$1"\n'
    )
    hook.chmod(0o755)
    (tmp_path / "saved").write_text(SAVED)

    def run(*words: str, editor: str = "true", config: str = "") -> tuple[int, str]:
        settings = ["-c", f"core.editor={editor}", *(["-c", config] if config else [])]
        done = git(*settings, "commit", "-q", *words, check=False)
        return done.returncode, git("log", "-1", "--format=%B").stdout

    return run


EDIT = 'f() { printf \'take it out\\n\' > new; cat "$1" >> new; mv new "$1"; }; f'
"""An editor: it writes a line above what git has written."""


@pytest.mark.parametrize(
    "words",
    [
        ["-F", "saved"],
        ["-F", "saved", "--cleanup=whitespace"],
        ["-F", "saved", "--cleanup=scissors"],
        ["-m", SAVED],
        ["-e", "-F", "saved"],
        ["-t", "saved", "--cleanup=verbatim"],
    ],
    ids=lambda words: " ".join(words).partition("\n")[0],
)
def test_what_git_keeps_is_found_below_scissors(
    commit: Commit, tmp_path: Path, words: list[str]
) -> None:
    """Without the hook the link would be in the history: git cuts nothing off."""
    code, kept = commit(*words, editor=EDIT)
    assert (code, LINK in kept) == (1, False)
    (tmp_path / ".git/hooks/commit-msg").unlink()
    code, kept = commit(*words, editor=EDIT)
    assert (code, LINK in kept) == (0, True)


@pytest.mark.parametrize(
    ("words", "config"),
    [
        (["-v"], ""),
        (["-v", "-v"], ""),
        ([], "commit.verbose=true"),
        (["-v"], "core.commentChar=;"),
        (["-v", "--cleanup=scissors"], ""),
        (["-v", "--amend"], ""),
    ],
    ids=str,
)
def test_the_diff_that_git_shows_an_editor_stops_nothing(
    commit: Commit, words: list[str], config: str
) -> None:
    code, kept = commit(*words, editor=EDIT, config=config)
    assert (code, LINK in kept) == (0, False)
    assert kept.startswith("take it out\n")


def test_what_stands_above_the_scissors_is_found(hook: Hook, tmp_path: Path) -> None:
    message = tmp_path / ".git" / "COMMIT_EDITMSG"
    message.parent.mkdir()
    for name in (".git/COMMIT_EDITMSG", str(message)):
        message.write_text(f"take {LINK} out\n\n{SCISSORS}# On branch x\n#\t{LINK}\n")
        assert hook("no-links", name).stdout.startswith(f"{name}:1 ")
        message.write_text(f"take it out\n\n{SCISSORS}# On branch x\n#\t{LINK}\n")
        done = hook("no-links", name)
        assert (done.returncode, done.stdout) == (0, "")


def test_scissors_that_are_not_gits_cut_nothing_off(hook: Hook, tmp_path: Path) -> None:
    """Anybody may commit a file of that name."""
    (tmp_path / ".git").mkdir()
    for name in ("COMMIT_EDITMSG", "MERGE_MSG", "TAG_EDITMSG", ".git/COMMIT_EDITMSG"):
        (tmp_path / name).write_text(f"x\n{SCISSORS}{LINK}\n")
        assert hook("no-links", name).returncode == 1, name
