"""What GitLab is, as its documentation tells it, and that we hold to each: masks, dotenv reports,
the umask.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from e2e.gitlab.gitlab_ci import ReportError, read_dotenv
from sealpipe.errors import PluginError
from sealpipe.plugin import CI
from sealpipe.registry import Registry
from sealpipe_rehearsal.running_service import RunningService
from support.commands import SEALPIPE
from support.terminal import Terminal, opened

MASKABLE = re.compile(r"[a-zA-Z0-9_+=/@:.~-]{8,}")
"""A value that a masked variable may have on the older servers: one line, eight characters or
more.
"""


@pytest.fixture
def job(user: Terminal) -> Terminal:
    """A job of GitLab, which names a dotenv report."""
    user.environ |= {
        "CI": "true",
        "GITLAB_CI": "true",
        "CI_PROJECT_DIR": str(user.here),
        "CI_JOB_ID": "99",
        "SEALPIPE_PLUGIN_GITLAB__DOTENV": "sealpipe.env",
        "SEALPIPE_PLUGIN_GITLAB__DOTENV_PREFIX": "SHARE_",
    }
    return user


def gitlab(report: Path) -> CI:
    ci = Registry(environ={"GITLAB_CI": "true", "SEALPIPE_PLUGIN_GITLAB__DOTENV": str(report)}).ci()
    assert ci is not None
    return ci


def test_a_masked_variable_takes_the_credential_and_a_seed_and_no_link(job: Terminal) -> None:
    assert MASKABLE.fullmatch(job.environ["SEALPIPE_API_KEY"])
    made = job.sealpipe("share", "-f", "text:a", "--link-file", "link")
    assert made.code == 0, made
    assert not MASKABLE.fullmatch((job.here / "link").read_text().strip())
    asked = job.sealpipe("request", "-a", "Password", "--key", "new", "--seed-to", "file:seed")
    assert asked.code == 0, asked
    assert MASKABLE.fullmatch((job.here / "seed").read_text())


def test_the_report_has_short_code_and_expiry_and_nothing_else(job: Terminal) -> None:
    made = job.sealpipe("share", "-f", "text:a", "--seal-link", "--receipt", "receipt.json")
    assert made.code == 0, made
    report = read_dotenv(job.here / "sealpipe.env")
    assert list(report) == ["SHARE_SHORT_CODE", "SHARE_EXPIRES_AT"]
    assert re.fullmatch(r"[0-9T:-]+Z", report["SHARE_EXPIRES_AT"])
    assert report["SHARE_SHORT_CODE"] in made.err
    without_end = job.sealpipe(
        "share", "-f", "text:a", "--seal-link", "--no-expiry", SEALPIPE_SHARE_EXPIRES_IN=None
    )
    assert without_end.code == 0, without_end
    assert list(read_dotenv(job.here / "sealpipe.env")) == ["SHARE_SHORT_CODE"]


def test_the_report_is_there_even_where_the_link_could_not_be_delivered(
    job: Terminal, service: RunningService
) -> None:
    refused = job.sealpipe("share", "-f", "text:a", "--seal-link", "--receipt", "gone/receipt.json")
    assert refused.code == 2
    assert not (job.here / "sealpipe.env").exists()
    lost = job.run(
        [
            "sh",
            "-c",
            'exec "$@" >/dev/full',
            "sh",
            *SEALPIPE,
            "share",
            "-f",
            "text:a",
            "--seal-link",
        ]
    )
    assert lost.code == 11, lost
    assert read_dotenv(job.here / "sealpipe.env")["SHARE_SHORT_CODE"] in lost.err
    assert len([seen for seen in service.seen() if seen.method == "POST"]) == 1


def test_a_report_never_grows_beyond_what_gitlab_takes(tmp_path: Path) -> None:
    report = tmp_path / "sealpipe.env"
    ci = gitlab(report)
    for number in range(20):
        ci.set_output(f"short-code-{number}", "x")
    with pytest.raises(PluginError, match="no room"):
        ci.set_output("short-code-20", "x")
    ci.set_output("short-code-0", "changed")  # one that is there is no more
    assert len(read_dotenv(report)) == 20
    assert read_dotenv(report)["SHORT_CODE_0"] == "changed"
    with pytest.raises(PluginError, match="no room"):
        ci.set_output("short-code-1", "x" * 5 * 1024)
    assert len(read_dotenv(report)) == 20


def test_lines_of_others_stay_in_the_report_byte_for_byte(job: Terminal) -> None:
    """A branch's name, say, which anyone may choose: it must not keep the link of a share that
    exists.
    """
    others = "BRANCH=für\x0b\x1c".encode() + b"\xff\n"
    (job.here / "sealpipe.env").write_bytes(others)
    made = job.sealpipe("share", "-f", "text:a", "--link-file", "link")
    assert (made.code, (job.here / "link").exists()) == (0, True), made
    report = (job.here / "sealpipe.env").read_bytes()
    assert report.startswith(others)
    assert [line.partition(b"=")[0] for line in report.splitlines()[-2:]] == [
        b"SHARE_SHORT_CODE",
        b"SHARE_EXPIRES_AT",
    ]


@pytest.mark.parametrize(
    "command", [["share", "-f", "text:a", "--link-file", "x"], ["request", "-a", "P"], ["resume"]]
)
def test_an_invalid_ci_setting_fails_before_anything_is_sent(
    job: Terminal, service: RunningService, command: list[str]
) -> None:
    refused = job.sealpipe(*command, SEALPIPE_PLUGIN_GITLAB__NO_SUCH="1")
    assert (refused.code, refused.out) == (2, ""), refused
    assert "no setting no_such" in refused.err
    assert service.seen() == []


@pytest.mark.parametrize(
    "value", ['"quoted"', "it's", "two\nlines", "cut\r", "$PATH", "a b", "#", "é", "`x`", "\\"]
)
def test_a_value_that_would_need_quotes_is_no_value_of_a_report(tmp_path: Path, value: str) -> None:
    report = tmp_path / "sealpipe.env"
    ci = gitlab(report)
    with pytest.raises(PluginError, match="cannot be written to a dotenv report"):
        ci.set_output("short-code", value)
    with pytest.raises(PluginError, match="cannot be written to a dotenv report"):
        ci.set_output(value, "x")
    assert not report.exists()


def test_gitlab_refuses_what_a_report_of_ours_never_has(tmp_path: Path) -> None:
    """The reader that these tests trust is as strict as GitLab."""
    report = tmp_path / "a.env"
    for text in (
        "A=1\n\nB=2\n",
        "no sign\n",
        "".join(f"A{i}=1\n" for i in range(21)),
        "A=" + "x" * 5120,
    ):
        report.write_text(text)
        with pytest.raises(ReportError):
            read_dotenv(report)
    report.write_text("A=\"x\"\nB='y z'\n")
    assert read_dotenv(report) == {"A": '"x"', "B": "'y z'"}


def test_under_the_umask_of_a_job_every_secret_file_is_for_its_owner_alone(
    job: Terminal, service: RunningService
) -> None:
    script = 'umask 0000; exec "$@"'
    command = [
        *SEALPIPE,
        "share",
        "-f",
        "text:a",
        "--link-file",
        "link",
        "--receipt",
        "receipt.json",
    ]
    done = job.run(["sh", "-c", script, "sh", *command])
    assert done.code == 0, done
    assert opened(service, (job.here / "link").read_text())
    asked = job.run(
        [
            "sh",
            "-c",
            script,
            "sh",
            *SEALPIPE,
            "request",
            "-a",
            "P",
            "--key",
            "new",
            "--seed-to",
            "file:seed",
        ]
    )
    assert asked.code == 0, asked
    for name in ("link", "receipt.json", "seed"):
        assert stat.S_IMODE((job.here / name).stat().st_mode) == 0o600, name
    state = Path(f"{job.here}.tmp/sealpipe")
    folders = [state, *(path for path in state.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    files = [path for path in state.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} <= {0o600}


def test_lists_in_variables_may_have_empty_lines_as_a_block_of_yaml_has(
    job: Terminal, service: RunningService
) -> None:
    made = job.sealpipe(
        "share", "--link-file", "link", SEALPIPE_SHARE_FIELD="\nA=text:1\n\n  \nB=text:2\n"
    )
    assert made.code == 0, made
    assert opened(service, (job.here / "link").read_text()) == {"A": "1", "B": "2"}
