"""The contract of channels notices what is wrong with one, and lets one through that is right."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

import pytest

TESTS = Path(__file__).resolve().parents[1]
NOTICED = {
    "careful": set[str](),
    "repeating": {"test_a_message_that_may_be_out_is_not_sent_again"},
    "insisting": {"test_a_message_that_may_be_out_is_not_sent_again"},
    "raw": {
        "test_a_message_that_was_not_accepted_may_be_sent_again",
        "test_a_message_that_may_be_out_is_not_sent_again",
    },
    "trusting": {
        "test_no_title_becomes_more_than_text",
        "test_a_passcode_arrives_exactly_and_is_no_link",
    },
    "following": {"test_a_redirect_is_not_followed"},
    "asking": {"test_a_redirect_is_not_followed"},
    "citing": {
        "test_a_redirect_is_not_followed",
        "test_a_refusal_is_an_error_that_quotes_nothing",
    },
    "quoting": {
        "test_a_redirect_is_not_followed",
        "test_a_refusal_is_an_error_that_quotes_nothing",
    },
    "chatty": {"test_the_link_shows_in_no_repr_log_or_output"},
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, bool]]:
    """For each channel, the tests of the contract that ran, and whether one passed."""
    report = tmp_path_factory.mktemp("outcomes") / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "--tb=no", f"--junitxml={report}"]
    command += ["-p", "no:cacheprovider", "-k", "not imports_no_sdk", "contracts/chats/contract.py"]
    done = subprocess.run(command, cwd=TESTS, check=False, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        assert case.find("error") is None, case.get("name")
        channel = case.get("classname", "").rpartition(".Test")[2].lower()
        name = case.get("name", "").partition("[")[0]
        found[channel][name] = found[channel].get(name, True) and case.find("failure") is None
    return found


@pytest.mark.parametrize("channel", NOTICED)
def test_a_test_of_the_contract_notices_each_mistake(
    outcomes: dict[str, dict[str, bool]], channel: str
) -> None:
    failed = {name for name, passed in outcomes[channel].items() if not passed}
    assert failed == NOTICED[channel]
    assert len(outcomes[channel]) > 10
