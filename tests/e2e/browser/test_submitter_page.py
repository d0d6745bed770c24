"""Who answers, at the collect link: what is typed there is sealed in the browser and opens in
Python.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from e2e.browser.asked import FORM, FRAGMENT, SEED, SENT, ask, fill, form
from e2e.browser.chrome import Browser
from sealpipe.wire.fields import TYPES
from sealpipe_rehearsal.control_client import send_request
from sealpipe_rehearsal.running_service import RunningService
from sealpipe_rehearsal.server import start
from support.hostile import NASTY
from support.job import Job, client_of

TYPED = {
    "text": "bôb",
    "password": "p\"\\'<b>&amp;é\u00a0 ",
    "date": "2026-12-24",
    "multiline": "-----BEGIN-----\n\tx  \n\n-----END-----\n",
    "markdown": "# A\n* [x](javascript:alert(1))",
    "source_code": "if (a < b) {\n    c();\n}",
    "url": "https://example.com/?a=b&c=d#e",
    "qr": "WIFI:T:WPA;S:x;P:y;;",
    "other": "of a type that nobody knows",
}


def answer(browser: Browser, link: str) -> None:
    form(browser, link)
    for name, text in FORM.items():
        browser.type(name, text)
    browser.press("Seal and send")
    browser.says(SENT)


def test_what_is_typed_into_every_type_opens_in_python(browser: Browser, job: Job) -> None:
    assert set(TYPES) < set(TYPED)
    asked = ask(job, fields=[(f"The {kind}", kind) for kind in TYPED])
    form(browser, asked.collect_link)
    for kind, text in TYPED.items():
        fill(browser, f"The {kind}", text)
    browser.press("Seal and send")
    browser.says(SENT)
    assert asked.typed() == [[(f"The {kind}", text, kind) for kind, text in TYPED.items()]]
    heard = browser.heard()
    assert not [text for text in TYPED.values() if text.encode() in heard]


def test_any_text_arrives_byte_for_byte(browser: Browser, job: Job) -> None:
    texts = sorted({text.replace("\r\n", "\n").replace("\r", "\n") for text in NASTY} - {""})
    prompts = [f"Prompt {number}" for number in range(len(texts))]
    asked = ask(job, fields=[(prompt, "multiline") for prompt in prompts])
    form(browser, asked.collect_link)
    script = (
        "[...document.querySelectorAll('textarea')].forEach((e, at) => { e.value = "
        "arguments[0][at]; })"
    )
    browser.run(script.replace("arguments[0]", json.dumps(texts)))
    browser.press("Seal and send")
    browser.says(SENT)
    assert [value for _, value, _ in asked.typed()[0]] == texts


def test_the_answer_is_collected_by_client_and_command(browser: Browser, job: Job) -> None:
    with client_of(job) as client:
        made = client.request(["user=User name:text", "pass=Password"], title="Staging access")
    answer(browser, made.collect_link)
    number = browser.one("#number").text
    with client_of(job) as client:
        collected = client.collect(made.receipt)
    assert [row.short_code for row in collected.submissions] == [number]
    done = job.run("collect", made.short_code, "--output", "json")
    assert done.code == 0, done.err
    (row,) = json.loads(done.out)["submissions"]
    assert row["short_code"] == number
    assert {each["key"]: each["value"] for each in row["fields"]} == FORM


def test_under_another_service_tag_too(browser: Browser, tmp_path: Any) -> None:
    with start(service_tag="acme") as other:
        asked = ask(Job(tmp_path, other), tag="acme")
        browser.origin = other.origin
        answer(browser, asked.collect_link)
        assert [value for _, value, _ in asked.typed()[0]] == list(FORM.values())
        assert browser.trouble() == []
        browser.forgive()


# -- before the form -------------------------------------------------------------------------------


def test_loading_the_page_uses_no_access_and_opening_the_form_one(
    browser: Browser, job: Job
) -> None:
    asked = ask(job, views=1)
    for _ in range(3):
        browser.open(asked.collect_link)
        browser.says("Staging access", "The form opens once. Loading this page does not count.")
    browser.press("Open the form")
    browser.type("Password", "x")
    browser.press("Seal and send")
    browser.says(SENT)
    browser.open(asked.collect_link)
    browser.press("Open the form")
    text = browser.says("The form cannot be opened again", "accesses")
    assert "Seal and send" not in text
    assert asked.typed() == [[("User name", "", "text"), ("Password", "x", "password")]]


@pytest.mark.parametrize(
    ("views", "told"), [(None, "as often as you like"), (1, "once"), (3, "3 more times")]
)
def test_the_page_says_how_often_the_form_opens(
    browser: Browser, job: Job, views: int | None, told: str
) -> None:
    browser.open(ask(job, views=views).collect_link)
    browser.says(f"The form opens {told}.")


def test_the_page_says_whose_account_asks(
    browser: Browser, job: Job, service: RunningService
) -> None:
    asked = ask(job)
    browser.open(asked.collect_link)
    row = service.service.database.row("SELECT owner FROM requests", {})
    assert row is not None
    browser.says(f"The account {row['owner']} asks you for information.")
    service.service.database.rows(
        "UPDATE requests SET owner = :owner", {"owner": "<b>acme\u202e</b>"}
    )
    browser.open(asked.collect_link)
    browser.says("The account <b>acme⟨U+202E⟩</b> asks you for information.")


def test_the_passcode_is_asked_for_until_it_is_right(browser: Browser, job: Job) -> None:
    asked = ask(job, passcode="pässcode")
    browser.open(asked.collect_link)
    browser.press("Open the form")
    browser.says("Please type the passcode")
    browser.type("Passcode", "other")
    browser.press("Open the form")
    browser.says("Wrong passcode")
    assert browser.focused() == "Passcode"
    browser.type("Passcode", "pässcode")  # what was wrong is selected, and typed over
    browser.press("Show passcode")
    assert browser.named("Passcode").get_property("value") == "pässcode"
    browser.press("Open the form")
    browser.type("Password", "x")
    browser.press("Seal and send")
    browser.says(SENT)
    assert len(asked.typed()) == 1


SIGNED_IN: dict[str, tuple[dict[str, Any], str, str, bool]] = {
    # the request's condition, what the page says, who may answer
    "login": ({"requires_login": True}, "Only people who are signed in", "a@example.org", False),
    "mfa": ({"requires_mfa": True}, "with a second factor", "a@example.org", True),
    "domain": (
        {"restricted_domains": ["example.org"]},
        "people of certain organisations",
        "b@EXAMPLE.org",
        False,
    ),
}


@pytest.mark.parametrize("reason", SIGNED_IN)
def test_a_refused_submitter_sees_why_and_can_identify(
    browser: Browser, job: Job, reason: str
) -> None:
    condition, told, email, mfa = SIGNED_IN[reason]
    asked = ask(job, **condition)
    browser.open(asked.collect_link)
    browser.press("Open the form")
    browser.says("request is restricted", told, reason)
    browser.press("Go on")
    browser.says("Please type an address")
    browser.type("Signed in as (email address)", email)
    if mfa:
        browser.named("with a second factor").click()
    browser.press("Go on")
    browser.type("Password", "x")
    browser.press("Seal and send")
    browser.says(SENT)
    assert len(asked.typed()) == 1


def test_an_excluded_network_sees_the_reason(browser: Browser, job: Job) -> None:
    asked = ask(job, ip_whitelist=["192.0.2.0/24"])
    browser.open(asked.collect_link)
    browser.press("Open the form")
    text = browser.says("not open to this network", "address")
    assert "Seal and send" not in text
    assert browser.all("input, textarea") == []


def test_a_request_that_takes_nothing_says_why(browser: Browser, job: Job) -> None:
    full, expired = ask(job, max_submissions=1), ask(job)
    full.answer()
    expired.end()
    for link, told in (
        (full.collect_link, "The request has all its submissions"),
        (expired.collect_link, "The request has expired"),
        (f"{full.collect_link}x", "Request not found"),
    ):
        browser.open(link)
        browser.says(told)
        assert "Open the form" not in [each.text for each in browser.all("button")]
    assert (len(full.typed()), expired.typed()) == (1, [])


def test_a_request_without_prompts_is_an_error_page(
    browser: Browser, job: Job, service: RunningService
) -> None:
    asked = ask(job)
    service.service.database.rows("UPDATE requests SET fields = '[]'", {})
    browser.open(asked.collect_link)
    browser.press("Open the form")
    browser.says("The request asks for nothing")
    assert "Seal and send" not in [each.text for each in browser.all("button")]
    assert not [url for url in browser.requests() if url.endswith("/submit")]


@pytest.mark.parametrize("key", ["", "%%%", "BAAA", "B" * 87])
def test_a_key_that_is_none_takes_no_answer(
    browser: Browser, job: Job, service: RunningService, key: str
) -> None:
    asked = ask(job)
    service.service.database.rows("UPDATE requests SET public_key = :key", {"key": key})
    form(browser, asked.collect_link)
    browser.type("Password", "x")
    browser.press("Seal and send")
    browser.says("The request cannot accept submissions", "Nothing was sent")
    assert not [url for url in browser.requests() if url.endswith("/submit")]


def test_the_page_says_when_it_closes_in_the_submitters_own_time(
    browser: Browser, job: Job
) -> None:
    asked = ask(job, expires_at=datetime(2099, 1, 1, 12, tzinfo=UTC))
    browser.cdp("Emulation.setTimezoneOverride", timezoneId="Asia/Kathmandu")
    try:
        browser.open(asked.collect_link)
        assert (
            browser.one("time").text.replace(",", "") == "Thursday 1 January 2099 at 17:45 GMT+5:45"
        )
    finally:
        browser.cdp("Emulation.setTimezoneOverride", timezoneId="")


# -- the form --------------------------------------------------------------------------------------


def test_an_empty_form_is_not_sent(browser: Browser, job: Job) -> None:
    asked = ask(job)
    form(browser, asked.collect_link)
    browser.press("Seal and send")
    browser.says("Nothing is filled in yet")
    assert browser.focused() == "User name"
    assert asked.opened() == []


def test_a_single_field_is_required_and_of_several_at_least_one(browser: Browser, job: Job) -> None:
    form(browser, ask(job, fields=[("Password", "password")]).collect_link)
    only = browser.named("Password")
    assert (only.get_attribute("required"), only.get_attribute("aria-required")) == (None, "true")
    (hint,) = browser.all(".entry .hint")
    assert hint.text == "Required."
    assert hint.get_attribute("id") in str(only.get_attribute("aria-describedby")).split()
    form(browser, ask(job).collect_link)
    assert "Required" not in browser.says("No single field is required, but fill in at least one.")
    assert browser.named("Password").get_attribute("aria-required") is None


def test_a_type_that_the_service_does_not_know_is_asked_for_as_text(
    browser: Browser, job: Job
) -> None:
    asked = ask(job, fields=[("Where", "url"), ("Code", "qr")])
    form(browser, asked.collect_link)
    assert [each.get_attribute("type") for each in browser.all("main input")] == ["text", "text"]
    fill(browser, "Code", "x" * 2301)
    browser.press("Seal and send")
    browser.says(SENT)
    assert asked.typed() == [[("Where", "", "url"), ("Code", "x" * 2301, "qr")]]


def test_what_was_typed_stays_where_it_could_not_be_sent(
    browser: Browser, job: Job, service: RunningService
) -> None:
    quick, late, gone = ask(job, max_submissions=1), ask(job), ask(job)
    for asked, happens, told in (
        (
            quick,
            lambda: quick.answer({"Password": "first"}),
            "reached its maximum number of submissions",
        ),
        (late, late.end, "expired in the meantime"),
        (
            gone,
            lambda: service.service.database.rows("DELETE FROM requests", {}),
            "removed in the meantime",
        ),
    ):
        form(browser, asked.collect_link)
        browser.type("Password", "mine")
        happens()
        browser.press("Seal and send")
        browser.says(told, "what you typed is still here")
        assert browser.named("Password").get_property("value") == "mine"


def test_where_no_answer_comes_it_can_be_sent_again(
    browser: Browser, job: Job, service: RunningService
) -> None:
    asked = ask(job)
    form(browser, asked.collect_link)
    browser.type("Password", "mine")
    with service.service.database.write():  # as long as this is held, nothing is committed
        browser.cdp("Network.enable")
        browser.cdp(
            "Network.emulateNetworkConditions",
            offline=True,
            latency=0,
            downloadThroughput=0,
            uploadThroughput=0,
        )
        browser.press("Seal and send")
        browser.says("No response", "You can send it again")
    browser.cdp(
        "Network.emulateNetworkConditions",
        offline=False,
        latency=0,
        downloadThroughput=-1,
        uploadThroughput=-1,
    )
    browser.press("Seal and send")
    browser.says(SENT)
    assert [value for _, value, _ in asked.typed()[0]] == ["", "mine"]


def test_leaving_with_something_unsent_is_asked_about_and_with_nothing_is_not(
    browser: Browser, job: Job
) -> None:
    asked = ask(job)

    def asked_about() -> list[dict[str, Any]]:
        return [each for each in browser.log() if each["method"] == "Page.javascriptDialogOpening"]

    form(browser, asked.collect_link)
    browser.type("Password", "x")
    browser.keys(Keys.BACKSPACE)
    browser.driver.get("about:blank")
    answer(browser, asked.collect_link)
    browser.driver.get("about:blank")
    assert asked_about() == []
    form(browser, asked.collect_link)
    browser.type("Password", "x")
    browser.driver.get("about:blank")
    assert [each["params"]["type"] for each in asked_about()] == ["beforeunload"]


def test_a_password_is_hidden_until_it_is_shown(browser: Browser, job: Job) -> None:
    form(browser, ask(job).collect_link)
    password = browser.named("Password")
    assert password.get_attribute("type") == "password"
    browser.press("Show Password")
    assert password.get_attribute("type") == "text"
    assert browser.named("Hide Password").get_attribute("aria-pressed") is None
    browser.press("Hide Password")
    assert password.get_attribute("type") == "password"


def test_several_lines_dropped_onto_an_entry_stay_several(browser: Browser, job: Job) -> None:
    asked = ask(job, fields=[("Key", "text")])
    form(browser, asked.collect_link)
    drop = """const dataTransfer = new DataTransfer();
      dataTransfer.setData("text/plain", arguments[1]);
      const event = new DragEvent("drop", {dataTransfer, bubbles: true, cancelable: true});
      return arguments[0].dispatchEvent(event)"""
    assert browser.run(drop, browser.named("Key"), "one line") is True, "left to the browser"
    assert browser.run(drop, browser.named("Key"), "two\nlines") is False
    browser.says("You pasted several lines")
    browser.press("Seal and send")
    browser.says(SENT)
    assert asked.typed()[0][0][1] == "two\nlines"


def test_several_lines_pasted_into_a_password_stay_several_and_hidden(
    browser: Browser, job: Job
) -> None:
    asked = ask(job, fields=[("Note", "multiline"), ("Password", "password")])
    form(browser, asked.collect_link)
    browser.type("Note", "-----BEGIN-----\nx\n-----END-----\n")
    browser.keys(Keys.CONTROL + "a", Keys.CONTROL + "c")
    browser.type("Password", "ab")
    browser.keys(Keys.ARROW_LEFT, Keys.CONTROL + "v")
    browser.says("You pasted several lines")
    assert browser.focused() == "Password"
    hidden = "return getComputedStyle(arguments[0]).webkitTextSecurity"
    assert browser.run(hidden, browser.named("Password")) == "disc"
    browser.press("Show Password")
    assert browser.run(hidden, browser.named("Password")) == "none"
    browser.press("Seal and send")
    browser.says(SENT)
    assert asked.typed()[0][1][1] == "a-----BEGIN-----\nx\n-----END-----\nb"


def test_the_keyboard_is_enough(browser: Browser, job: Job) -> None:
    asked = ask(job, passcode="pc")
    browser.open(asked.collect_link)
    browser.says("Open the form")
    browser.tab_to("Passcode")
    browser.keys("pc", Keys.ENTER)
    browser.says("Seal and send")
    browser.tab_to("User name")
    browser.keys("bob")
    browser.tab_to("Password")
    browser.keys("secret")
    browser.tab_to("Show Password")
    browser.keys(Keys.SPACE)
    browser.tab_to("Seal and send")
    browser.keys(Keys.ENTER)
    browser.says(SENT)
    assert browser.focused() == SENT  # the heading: a screen reader goes on from there
    assert [value for _, value, _ in asked.typed()[0]] == ["bob", "secret"]


HOSTILE = (
    "<script>window.pwned=1</script>", "<img src=x onerror=window.pwned=1>",
    "<svg/onload=window.pwned=1>", "javascript:window.pwned=1", "${window.pwned=1}",
    "{{constructor.constructor('window.pwned=1')()}}",
    "\"><iframe src='https://elsewhere.example/'>",
    "</title><script src=//elsewhere.example></script>",
    "<link rel=stylesheet href=https://elsewhere.example/x.css>",
    "<base href=https://elsewhere.example/>",
    "\u202egpj.exe", "\x1b[31mred\x1b[0m", "x\x00y", "{{service_tag}}", "W" * 500,
    "</textarea><form action=//elsewhere.example>",
)  # fmt: skip


def test_hostile_prompts_are_text(browser: Browser, job: Job, service: RunningService) -> None:
    asked = ask(job, passcode="p")
    prompts = [{"item": text, "type": kind} for text in HOSTILE for kind in ("text", text)]
    hostile = {
        "title": "".join(HOSTILE),
        "description": "".join(HOSTILE),
        "fields": json.dumps(prompts),
    }
    change = "UPDATE requests SET title = :title, description = :description, fields = :fields"
    service.service.database.rows(change, hostile)
    browser.look(360, 740)
    browser.open(asked.collect_link)
    browser.type("Passcode", "p")
    assert browser.overflows() == []
    browser.press("Open the form")
    text = browser.says("Seal and send", *HOSTILE[:10], "⟨U+202E⟩gpj.exe", "⟨U+001B⟩[31mred")
    assert "\u202e" not in text
    assert browser.overflows() == []
    assert len(browser.all("main input, main textarea")) == len(prompts)
    browser.all("main input")[0].send_keys("x")
    browser.press("Seal and send")
    browser.says(SENT)
    assert [key for key, _, _ in asked.typed()[0]] == [each["item"] for each in prompts]


# -- what the service is told ----------------------------------------------------------------------


def test_the_service_receives_no_word_of_the_submission(browser: Browser, job: Job) -> None:
    asked = ask(job)
    answer(browser, asked.collect_link)
    heard = browser.heard()
    assert b"POST /links/requests/" in heard
    for word in (*FORM.values(), FRAGMENT, SEED.hex()):
        assert word.encode() not in heard
    status, _ = send_request(job.service.origin, "GET", f"/links/requests/{asked.code}")
    assert status == 200


@pytest.mark.usefixtures("extended")
def test_an_invalid_entry_shows_its_error_beside_it(browser: Browser, job: Job) -> None:
    asked = ask(job, fields=[("Note", "text"), ("Code", "qr"), ("Day", "date")])
    form(browser, asked.collect_link)
    fill(browser, "Code", "x" * 2301)
    browser.press("Seal and send")
    browser.says("This is more than 2,300 characters")
    assert browser.focused() == "Code"
    fill(browser, "Code", "\U0001f511" * 2300)
    half = r"arguments[0].value = 'half a pair: \ud83d'"
    browser.run(half, browser.named("Note"))
    browser.press("Seal and send")
    text = browser.says("This is not valid text")
    assert "more than 2,300 characters" not in text
    fill(browser, "Note", "whole")
    browser.named("Day").send_keys("12")
    browser.press("Seal and send")
    browser.says("This date is incomplete")
    assert asked.opened() == []
    fill(browser, "Day", "2026-12-24")
    browser.press("Seal and send")
    browser.says(SENT)
    assert [value for _, value, _ in asked.typed()[0]] == [
        "whole",
        "\U0001f511" * 2300,
        "2026-12-24",
    ]
