"""What goes into the image's build, and that its recipe is one."""

from __future__ import annotations

import re
import subprocess
import tomllib

from support.parts import ROOT, library, program

DOCKERFILE = (ROOT / "containers/Dockerfile").read_text(encoding="utf-8")


def test_hadolint_finds_nothing() -> None:
    command = [program("hadolint"), ROOT / "containers/Dockerfile"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_the_build_is_sent_what_it_copies_and_nothing_else() -> None:
    exclude_paths = library("docker.utils.build", "docker").exclude_paths
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    sent = {path for path in exclude_paths(str(ROOT), patterns) if (ROOT / path).is_file()}
    allowed = ("core/", "plugins/", "actions/_setup/locks/")
    alone = {"LICENSE", "pyproject.toml"}
    assert {path for path in sent if not path.startswith(allowed)} <= {*alone, ".dockerignore"}
    assert sent >= {*alone, "core/sealpipe/__main__.py", "actions/_setup/locks/base.txt"}
    assert not [path for path in sent if path.endswith(".pyc")]
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
    assert {word.rstrip("/") for words in copied for word in words.split()} == {
        *alone,
        "core",
        "plugins",
        "actions/_setup/locks",
    }


def test_every_installation_is_locked_and_every_extra_has_a_lock() -> None:
    installs = re.findall(r"pip(?: --python \S+)? (?:install|wheel) ([^\\\n]+)", DOCKERFILE)
    assert len(installs) == 4
    for words in installs:
        assert "--require-hashes --only-binary=:all:" in words or "--no-index" in words, words
    (extras,) = re.findall(r'^ARG EXTRAS="(.+)"$', DOCKERFILE, re.MULTILINE)
    for name in ("build", "base", *extras.split()):
        assert "--hash=sha256:" in (ROOT / f"actions/_setup/locks/{name}.txt").read_text(), name


def test_it_has_no_entrypoint_and_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "version"
    ]
    assert f"\nARG VERSION={version}\n" in DOCKERFILE
    assert "ENTRYPOINT [" not in DOCKERFILE
    assert not re.search(r"^(ENV|ARG) .*(TOKEN|PASSWORD|SECRET|API_KEY)", DOCKERFILE, re.MULTILINE)
