"""Who asked, at the access link: every submission opened in the browser, with a key that never
leaves it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from e2e.browser.asked import FORM, FRAGMENT, PROMPTS, SEED, ask
from e2e.browser.chrome import Browser
from sealpipe.wire import link
from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.hostile import NASTY
from support.job import Job

OPENED = "opened in this browser"


def submissions(browser: Browser) -> list[list[tuple[str, str]]]:
    """Every submission as it is to be seen: labels and values."""
    script = """return [...document.querySelectorAll('.submission')].map(each =>
      [...each.querySelectorAll('.field')].map(field =>
        [field.querySelector('.label')?.textContent ?? '',
         field.querySelector('.value').textContent]))"""
    return [[(label, value) for label, value in each] for each in browser.run(script)]


def reveal(browser: Browser) -> None:
    for button in [each for each in browser.all("button") if each.text.startswith("Show")]:
        button.click()


def test_submissions_open_newest_first_and_passwords_are_hidden(browser: Browser, job: Job) -> None:
    asked = ask(job)
    codes = [asked.answer(), asked.answer({"User name": "second", "Password": "zw\u00f6lf"})]
    browser.open(asked.access_link)
    text = browser.says("2 submissions, " + OPENED, "2 received", *codes)
    assert text.index("Submission 2") < text.index("Submission 1")
    assert "hünter2" not in browser.driver.page_source
    reveal(browser)
    assert submissions(browser) == [
        [("User name", "second"), ("Password", "zw\u00f6lf")],
        [("User name", "bob"), ("Password", "hünter2")],
    ]


def test_what_was_sealed_in_the_page_opens_in_the_page(browser: Browser, job: Job) -> None:
    asked = ask(job)
    browser.open(asked.collect_link)
    browser.press("Open the form")
    for name, text in FORM.items():
        browser.type(name, text)
    browser.press("Seal and send")
    browser.says("Sent")
    browser.open(asked.access_link)
    browser.says("1 submission, " + OPENED)
    reveal(browser)
    assert submissions(browser) == [list(FORM.items())]


def test_the_key_leaves_the_address_bar_and_is_never_sent(
    browser: Browser, job: Job, service: RunningService
) -> None:
    asked = ask(job)
    asked.answer()
    before = len(service.seen())
    browser.open(asked.access_link)
    browser.says(OPENED)
    assert browser.driver.current_url == f"{browser.origin}/s/r/{asked.code}"
    reveal(browser)
    browser.press("Look again")
    browser.says(OPENED)
    told = [browser.heard(), *(bytes(seen) for seen in service.seen()[before:])]
    assert f"GET /links/requests/{asked.code}/submissions".encode() in browser.heard()
    for word in (FRAGMENT, FRAGMENT[1:], SEED.hex(), *FORM.values()):
        assert not [data for data in told if word.encode() in data]


def test_what_does_not_open_is_counted_and_said(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    damaged = {
        asked.seal(b"[]", seed=bytes(31) + b"\x07"): "cannot-decrypt",
        asked.send("AAAA"): "too-short",
        asked.seal(b"no fields"): "not-fields",
        asked.seal(b"[1]"): "not-fields",
        asked.seal(b"[" * 100_000): "not-fields",
        asked.seal(b'[{"key":"\xff","value":"v","type":"text"}]'): "not-fields",
    }
    asked.send("bm90IHNlYWxlZA==", encryption_type="none")
    browser.open(asked.access_link)
    text = browser.says(
        "1 submission, " + OPENED, "6 submissions could not be opened", "8 received"
    )
    assert "1 submission without end-to-end encryption" in text
    lines = [each.text for each in browser.all("#unread li")]
    assert len(lines) == len(damaged)
    for code, reason in damaged.items():
        assert len([line for line in lines if code in line and f"({reason})" in line]) == 1
    assert len(submissions(browser)) == 1


def test_where_nothing_was_sent_yet_it_says_so_and_looks_again(browser: Browser, job: Job) -> None:
    asked = ask(job, max_submissions=3)
    browser.open(asked.access_link)
    browser.says("There is no submission to read here yet", "0 received of at most 3")
    assert submissions(browser) == []
    asked.answer()
    browser.press("Look again")
    browser.says("1 submission, " + OPENED, "1 received of at most 3")
    reveal(browser)
    assert submissions(browser) == [list(FORM.items())]


def test_an_expired_request_is_still_readable_and_a_removed_one_is_not(
    browser: Browser, job: Job
) -> None:
    asked = ask(job)
    asked.answer()
    asked.end()
    browser.open(asked.access_link)
    browser.says(OPENED, "the request has expired")
    reveal(browser)
    assert submissions(browser) == [list(FORM.items())]
    asked.remove()
    browser.press("Look again")
    browser.says("Request not found")
    assert submissions(browser) == []


def test_a_passcode_or_a_limit_of_accesses_is_for_who_answers(browser: Browser, job: Job) -> None:
    asked = ask(job, passcode="pc", views=1, requires_login=True)
    for _ in range(3):
        browser.open(asked.access_link)
        browser.says("There is no submission to read here yet")
    given = {"passcode": "pc", "signed_in_as": "a"}
    status, _ = send_request(
        job.service.origin, "POST", f"/links/requests/{asked.code}/open", given
    )
    assert status == 200, "the one access is left"


BAD = [
    "2" + FRAGMENT[1:],
    FRAGMENT[:-1],
    FRAGMENT + "A",
    "1",
    FRAGMENT[:-2] + "%3",
    FRAGMENT + "=",
    "k=" + FRAGMENT,
]


@pytest.mark.parametrize("fragment", BAD)
def test_a_damaged_key_is_reported(browser: Browser, job: Job, fragment: str) -> None:
    asked = ask(job)
    browser.open(f"{asked.collect_link}#{fragment}")
    browser.says("The key in the link is damaged", "malformed-key")
    assert "#" not in browser.driver.current_url
    assert not [url for url in browser.requests() if "/links/" in url]


def test_another_requests_key_is_reported(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    other = link.access_link(job.service.link_base_url, asked.code, bytes(31) + b"\x01")
    browser.open(other)
    browser.says("The key does not belong to this request", "wrong-key")
    assert submissions(browser) == []


def test_an_encoded_hash_is_reported_and_leaves_the_address_bar(
    browser: Browser, job: Job, service: RunningService
) -> None:
    asked = ask(job)
    browser.open(f"{asked.collect_link}%23{FRAGMENT}")
    browser.says("The link was changed on its way to you", "encoded-hash")
    assert FRAGMENT[1:] not in browser.driver.current_url
    # That key did reach the service, by somebody else's doing; its log keeps it from whoever reads
    # that.
    assert not [seen for seen in service.seen() if FRAGMENT[1:].encode() in bytes(seen)]
    assert not [url for url in browser.requests() if "/links/" in url]


def test_the_access_link_pasted_over_the_collect_link_opens(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    browser.open(asked.collect_link)
    browser.says("Open the form")
    browser.run("location.hash = arguments[0]", FRAGMENT)
    browser.says(OPENED)
    reveal(browser)
    assert submissions(browser) == [list(FORM.items())]


def test_hidden_submissions_are_gone_from_the_page(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    browser.open(asked.access_link)
    browser.press("Hide them now")
    browser.says("The submissions are hidden again")
    assert "bob" not in browser.driver.page_source
    browser.open(asked.access_link)
    browser.says(OPENED)
    assert len(submissions(browser)) == 1


def test_under_another_service_tag_too(browser: Browser, tmp_path: Any) -> None:
    with start(service_tag="acme") as other:
        asked = ask(Job(tmp_path, other), tag="acme")
        asked.answer()
        browser.origin = other.origin
        browser.open(asked.access_link)
        browser.says("1 submission, " + OPENED)
        reveal(browser)
        assert submissions(browser) == [list(FORM.items())]
        assert browser.trouble() == []
        browser.forgive()


def test_the_keyboard_is_enough(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    browser.open(asked.access_link)
    browser.says(OPENED)
    browser.tab_to("Show Password")
    browser.keys(Keys.ENTER)
    assert submissions(browser) == [list(FORM.items())]
    browser.tab_to("Hide them now")
    browser.keys(Keys.SPACE)
    browser.says("The submissions are hidden again")


def test_the_parts_have_headings_in_order(browser: Browser, job: Job) -> None:
    asked = ask(job)
    asked.answer()
    browser.open(asked.access_link)
    browser.says(OPENED)
    headings = browser.run(
        "return [...document.querySelectorAll('h1,h2,h3')].map(e => e.tagName + ' ' + "
        "e.textContent)"
    )
    assert headings == [
        "H1 Staging access",
        "H2 Submission 1",
        *(f"H3 {name}" for name, _ in PROMPTS),
    ]


# -- what is submitted is hostile ------------------------------------------------------------------

MARKUP = (
    "<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>", "javascript:window.pwned=1",
    "data:text/html,<script>window.pwned=1</script>", "JaVaScRiPt:window.pwned=1//http://",
    "</pre></li></ul><script src=https://elsewhere.example/x.js></script>",
    "<style>@import 'https://e.example'</style>",
    "<meta http-equiv=refresh content='0;url=https://elsewhere.example/'>",
    "<iframe srcdoc='<script>parent.pwned=1'>",
    "<a href=javascript:window.pwned=1 autofocus onfocus=window.pwned=1>x</a>",
    "//elsewhere.example/x", "http:/x", "https://user@elsewhere.example\u202e/", "vbscript:x",
    "blob:http://127.0.0.1/x", "&lt;script&gt;", "\u2028\u2029",
)  # fmt: skip
KINDS = (
    "text",
    "password",
    "date",
    "multiline",
    "markdown",
    "source_code",
    "url",
    "qr",
    "<b>",
    "__proto__",
)


def test_hostile_submissions_stay_text_and_send_nothing(browser: Browser, job: Job) -> None:
    asked = ask(job)
    sent = 0
    for at, text in enumerate((*MARKUP, *NASTY)):
        kind = KINDS[at % len(KINDS)]
        more = {
            "filename": f"../../{text}",
            "selectedProgrammingLanguage": text,
            "__proto__": {"x": text},
        }
        asked.seal_fields(
            {"key": text, "value": text, "type": kind, **more},
            {"key": text, "value": text, "type": "url"},
        )
        sent += 1
    for odd in (1, None, [["x"]], {"toString": 1}, True):
        asked.seal(json.dumps([{"key": odd, "value": odd, "type": odd, "filename": odd}]).encode())
        sent += 1
    browser.look(360, 740)
    browser.open(asked.access_link)
    browser.says(f"{sent} submissions, {OPENED}")
    assert browser.overflows() == []
    names = browser.run(
        "return [...document.querySelectorAll('[data-filename]')].map(e => e.dataset.filename)"
    )
    assert names
    assert not [name for name in names if "/" in name or "\\" in name or name.startswith(".")]
    reveal(browser)
    shown = {value for each in submissions(browser) for _, value in each}
    assert {text for text in MARKUP if text} <= shown
    addresses = browser.run(
        "return [...document.querySelectorAll('#stage a')].map(e => [e.href, e.textContent])"
    )
    assert all(href.startswith(("http://", "https://")) for href, _ in addresses)
    assert browser.overflows() == []


@pytest.mark.parametrize(
    ("key", "count", "first"), [("Account {}", 5_000, "Account 100"), ("", 200, "Field 101")]
)
def test_a_crowd_of_fields_comes_in_parts(
    browser: Browser, job: Job, key: str, count: int, first: str
) -> None:
    asked = ask(job)
    asked.seal_fields(
        *({"key": key.format(number), "value": "x", "type": "text"} for number in range(count))
    )
    browser.open(asked.access_link)
    browser.says(OPENED)
    assert len(submissions(browser)[0]) == 100
    browser.press(f"Show {count - 100} more fields")
    assert len(submissions(browser)[0]) == count
    assert browser.focused() == first


def test_a_large_submission_opens(browser: Browser, job: Job) -> None:
    asked = ask(job)
    value = "é" * 1_000_000
    asked.seal_fields({"key": "Large", "value": value, "type": "multiline"})
    browser.open(asked.access_link)
    browser.says(OPENED)
    assert submissions(browser) == [[("Large", value)]]
