"""A person with a share's link, in a real browser: what they see, press and are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from selenium.webdriver.common.keys import Keys

from e2e.browser.axe import violations
from e2e.browser.chrome import PHONE, Browser, Recorder
from e2e.browser.sending import as_json, field, post, send, spent
from sealpipe import Client, Field
from sealpipe.wire import envelope, link, tokens
from sealpipe_rehearsal.running_service import RunningService
from support.damage import exchanged
from support.job import Job

EVERY_TYPE = [
    field("deploy", "text", "User"),
    field('p@ss "quoted" \\ back', "password", "Password"),
    field("2026-12-31", "date", "Until"),
    field("line 1\nline 2\r\nline 3\ttab", "multiline", "Notes"),
    field("# Title\n\n- a\n- b", "markdown", "Read me", filename="README.md"),
    field(
        'print("hi")\n',
        "source_code",
        "Code",
        selectedProgrammingLanguage="python",
        filename="hi.py",
    ),
    field("https://admin.example.com/login", "url", "Where"),
    field("otpauth://totp/Example:alice?secret=JBSWY3DP", "qr", "Second factor"),
    field("whatever", "nonsense", "Unknown"),
]
TWELVE_DOTS = "•" * 12


def reason(browser: Browser) -> str:
    """The reason's name, once the page has refused."""
    browser.one("#reason")
    return str(browser.run("return document.getElementById('stage').dataset.reason"))


def state(browser: Browser) -> str:
    return str(browser.run("return document.getElementById('stage').dataset.state"))


def opened(browser: Browser, address: str) -> None:
    browser.open(address)
    browser.one("#open").click()
    browser.one("#hide")


def values(browser: Browser) -> list[str]:
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('.value')].map(e => e.textContent)"
    )
    return found


def time_passes(service: RunningService, _: str) -> None:
    service.advance(7200)


def somebody_opens(service: RunningService, address: str) -> None:
    service.recipient().open_link(address)


def the_sender_ends(service: RunningService, address: str) -> None:
    code = address.rpartition("/")[2].partition("#")[0]
    service.service.database.rows(
        "UPDATE shares SET ended_at = 1, ended_by = 'deleted' WHERE short_code = :code",
        {"code": code},
    )


# --- Opening --------------------------------------------------------------------------------------


def test_a_link_of_the_command_line_opens_when_the_button_is_pressed(
    browser: Browser, recorder: Recorder, job: Job
) -> None:
    address = job.share("--title", "Staging", "--views", "1").out.strip()
    browser.open(address)
    browser.says(
        "Something was shared with you", "This link opens once. Loading this page does not count."
    )
    assert spent(job.service, address) == (0, 0)
    browser.press("Open it")
    browser.says("Staging", "This was the last time: the link does not open again.")
    browser.press("Show DB_PASSWORD")
    assert values(browser) == [job.secret]
    assert spent(job.service, address) == (1, 0)
    assert job.secret.encode() not in recorder.heard


def test_a_link_of_the_library_opens(browser: Browser, service: RunningService) -> None:
    credential = service.create_key()
    with Client(
        api_key=credential, base_url=service.base_url, link_base_url=service.link_base_url
    ) as client:
        share = client.share(
            [Field("Greeting", "hello", type="text"), "Another=text:ž 🐎"],
            expires_in=timedelta(hours=1),
            views=2,
        )
    opened(browser, share.link.reveal())
    told = browser.says("Greeting", "hello", "Another", "ž 🐎", "The link opens once more.")
    assert told.index("hello") < told.index("ž 🐎")


def test_the_fragment_leaves_the_address_bar_and_reaches_no_log(
    browser: Browser, service: RunningService, recorder: Recorder
) -> None:
    address = send(service, [field("secret")])
    opened(browser, address)
    key = address.partition("#")[2]
    assert browser.run("return location.href") == address.partition("#")[0].replace(
        service.origin, browser.origin
    )
    assert browser.run("return document.documentElement.outerHTML").count(key[1:]) == 0
    assert key[1:].encode() not in recorder.heard
    assert b"referer" not in recorder.heard.lower()
    for seen in service.seen():
        assert key[1:] not in repr(seen)
    # Nor is it kept where a later page would find it.
    assert browser.run("return [localStorage.length, sessionStorage.length, document.cookie]") == [
        0,
        0,
        "",
    ]
    browser.driver.refresh()
    assert reason(browser) == "missing-key"


def test_every_type_is_shown_as_what_it_is(browser: Browser, extended: RunningService) -> None:
    opened(browser, send(extended, EVERY_TYPE))
    seen = browser.says(
        "User", "deploy", "Password", TWELVE_DOTS, "2026-12-31", "Thursday, 31 December 2026",
        "# Title", "Markdown", "Source code: python", 'print("hi")',
        "Opens admin.example.com in a new tab.", "otpauth://totp/", "whatever",
    )  # fmt: skip
    assert "quoted" not in seen
    browser.press("Show Password")
    assert values(browser) == [each["value"] for each in EVERY_TYPE]
    browser.press("Hide Password")
    assert values(browser)[1].startswith(TWELVE_DOTS)
    assert [button.text for button in browser.all(".download")] == [
        "Download README.md",
        "Download hi.py",
    ]
    where = browser.one(".field a")
    assert (where.get_attribute("rel"), where.get_attribute("target")) == (
        "noopener noreferrer",
        "_blank",
    )


def test_a_type_that_the_service_does_not_know_is_shown_as_text(
    browser: Browser, service: RunningService
) -> None:
    """Further types are the extended service's (gaps); elsewhere an unrecognised type renders as
    text (fields).
    """
    opened(
        browser,
        send(service, [each for each in EVERY_TYPE if each["type"] in ("url", "qr", "nonsense")]),
    )
    assert [kind.text for kind in browser.all(".kind")] == ["Text"] * 3
    assert browser.all(".field a, .qr, .qr-place, .field .hint") == []
    assert values(browser) == [each["value"] for each in EVERY_TYPE[-3:]]


def test_a_field_without_a_key_has_no_label_but_a_name_to_the_ear(
    browser: Browser, service: RunningService
) -> None:
    """A wrong name of the member renders a blank label with no error (specification: fields)."""
    fields = [
        {"label": "Misnamed", "value": "one", "type": "text"},
        field("two", "password", " "),
        field("three"),
    ]
    opened(browser, send(service, fields))
    assert [label.text for label in browser.all(".label")] == ["Label"]
    assert [head.text.split("\n") for head in browser.all(".head")] == [
        ["Text"],
        ["Password"],
        ["Label", "Text"],
    ]
    browser.press("Show Field 2")
    assert values(browser) == ["one", "two", "three"]
    assert [box.accessible_name for box in browser.all(".value")] == ["Field 1", "Field 2", "Label"]
    browser.press("Copy Field 1")
    browser.wait(
        lambda: (
            browser.run("return document.getElementById('status').textContent")
            == "Field 1 is copied"
        )
    )
    assert violations(browser) == []


PRIVATE_KEYS = {
    "PEM": "-----BEGIN PRIVATE KEY-----\nMIGHAgEA\n-----END PRIVATE KEY-----\n",
    "behind attributes": (
        "Bag Attributes\n    friendlyName: ann\n-----BEGIN RSA PRIVATE KEY-----\nMIGHAgEA\n"
    ),
    "OpenSSH": "\r\n-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3BlbnNzaA\r\n",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQWGBF\n",
    "PuTTY": "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n",
    "age": "# created: 2026-11-26\nAGE-SECRET-KEY-1QQQ\n",
}
NO_PRIVATE_KEYS = {
    "a certificate": "-----BEGIN CERTIFICATE-----\nMIGHAgEA\n-----END CERTIFICATE-----\n",
    "a public key": "-----BEGIN PUBLIC KEY-----\nMIGHAgEA\n-----END PUBLIC KEY-----\n",
    "prose": "a line begins with -----BEGIN PRIVATE KEY-----, and ours does not",
}


def test_several_lines_that_hold_a_private_key_are_hidden(
    browser: Browser, service: RunningService
) -> None:
    texts = {**PRIVATE_KEYS, **NO_PRIVATE_KEYS}
    opened(browser, send(service, [field(text, "multiline", name) for name, text in texts.items()]))
    source = browser.run("return document.documentElement.textContent")
    assert [name for name, text in texts.items() if text not in source] == list(PRIVATE_KEYS)
    for name in PRIVATE_KEYS:
        browser.press(f"Show {name}")
    assert values(browser) == list(texts.values())
    browser.press("Hide PEM")
    assert values(browser)[0].startswith(TWELVE_DOTS)


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Asia/Kathmandu", "Thursday 1 January 2099 at 17:45 GMT+5:45"),
        ("America/New_York", "Thursday 1 January 2099 at 07:00 GMT-5"),
        ("UTC", "Thursday 1 January 2099 at 12:00 UTC"),
    ],
)
def test_a_time_is_the_recipients_own_and_names_its_zone(
    browser: Browser, service: RunningService, zone: str, told: str
) -> None:
    address = send(service, [field("secret")], expired_at="2099-01-01T12:00:00Z")
    browser.cdp("Emulation.setTimezoneOverride", timezoneId=zone)
    try:
        opened(browser, address)
        moment = browser.one("time")
        assert moment.text.replace(",", "") == told
        assert moment.get_attribute("datetime") == "2099-01-01T12:00:00.000Z"
    finally:
        browser.cdp("Emulation.setTimezoneOverride", timezoneId="")


@pytest.mark.parametrize(
    ("views", "told"), [(None, "as often as you like"), (1, "once"), (3, "3 more times")]
)
def test_the_page_says_how_often_the_link_opens(
    browser: Browser, service: RunningService, views: int | None, told: str
) -> None:
    browser.open(send(service, [field("secret")], access_counts_left=views))
    browser.says(f"This link opens {told}. Loading this page does not count.")


def test_a_masked_password_stands_nowhere_in_the_document(
    browser: Browser, service: RunningService
) -> None:
    opened(browser, send(service, [field("hunter2", "password")]))
    assert "hunter2" not in browser.run("return document.documentElement.outerHTML")
    browser.press("Show Label")
    assert "hunter2" in browser.run("return document.documentElement.outerHTML")


def test_a_value_is_copied_exactly_and_the_page_says_so(
    browser: Browser, service: RunningService
) -> None:
    secret = 'p@ss "quoted" \\ žluťoučký 🐎  two  blanks '
    opened(browser, send(service, [field("other"), field(secret, "password", "Password")]))
    browser.press("Copy Password")
    browser.wait(
        lambda: (
            browser.run("return document.getElementById('status').textContent")
            == "Password is copied"
        )
    )
    browser.run(
        "document.body.append(document.createElement('textarea')); "
        "document.querySelector('textarea').focus()"
    )
    browser.keys(Keys.CONTROL + "v")
    browser.wait(
        lambda: browser.run("return document.querySelector('textarea').value") == secret, "the copy"
    )
    assert values(browser)[1].startswith(TWELVE_DOTS)


def test_a_title_and_a_description_are_shown_once_it_is_open(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("x")], title=" <i>T</i> ", description="D\u202ed")
    browser.open(address)
    browser.one("#open")
    assert "<i>" not in browser.text()
    browser.press("Open it")
    browser.says("<i>T</i>", "D⟨U+202E⟩d")
    assert "<i>T</i>" in browser.driver.title


def test_an_empty_share_says_that_it_is_empty(browser: Browser, service: RunningService) -> None:
    opened(browser, send(service, []))
    browser.says("The sender shared an empty list")
    assert values(browser) == []


@pytest.mark.parametrize("text", [b"plain text", b'{"key": "k"}', b'["a"]', b"\xff\xfe", b""])
def test_a_content_that_is_no_list_is_shown_as_it_came(
    browser: Browser, service: RunningService, text: bytes
) -> None:
    opened(browser, send(service, text))
    browser.says("is shown unchanged", "not-fields")
    assert values(browser) == [text.decode(errors="replace")]


# --- Passcodes ------------------------------------------------------------------------------------


def test_a_passcode_is_asked_for_and_the_page_counts_the_tries(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret")], " p|ä 4711 ", access_counts_left=1)
    browser.open(address)
    browser.says("Passcode", "You have 5 tries left.")
    browser.press("Open it")
    browser.says("Please type the passcode. No try was used.")
    assert browser.focused() == "Passcode"
    for left in (4, 3):
        browser.type("Passcode", "wrong")
        browser.press("Open it")
        told = browser.says(f"Wrong passcode. You have {left} tries left.")
        assert told.count("tries left") == 1
        assert (
            browser.run("return document.getElementById('stage').dataset.reason")
            == "passcode-wrong"
        )
        assert browser.focused() == "Passcode"
    assert spent(service, address) == (0, 2)
    browser.named("Passcode").clear()
    browser.press("Open it")
    assert (
        browser.says("Please type the passcode. No try was used.").count("You have 3 tries left.")
        == 1
    )
    browser.open(address)
    browser.says("You have 3 tries left.")
    browser.press("Show passcode")
    assert browser.named("Passcode").get_attribute("type") == "text"
    browser.press("Hide passcode")
    assert browser.named("Passcode").get_attribute("type") == "password"
    browser.type("Passcode", " p|ä 4711 ")
    browser.keys(Keys.ENTER)
    browser.says("secret")
    assert spent(service, address) == (1, 2)


def test_the_passcode_is_in_no_byte_that_the_service_got(
    browser: Browser, service: RunningService, recorder: Recorder
) -> None:
    browser.open(send(service, [field("secret")], "unusual-passcode"))
    browser.type("Passcode", "unusual-passcode")
    browser.press("Open it")
    browser.says("secret")
    assert b"unusual" not in recorder.heard


def test_the_fifth_wrong_passcode_is_the_last(browser: Browser, service: RunningService) -> None:
    address = send(service, [field("secret")], "4711")
    browser.open(address)
    for left in (4, 3, 2, 1):
        browser.type("Passcode", "0")
        browser.press("Open it")
        browser.says(f"Wrong passcode. You have {left} {'try' if left == 1 else 'tries'} left.")
    browser.type("Passcode", "0")
    browser.press("Open it")
    assert reason(browser) == "no-tries-left"
    browser.open(address)
    assert reason(browser) == "no-tries-left"


# --- Why it does not open -------------------------------------------------------------------------


def _cut(address: str) -> str:
    return address[:-1]


def _of_another(address: str) -> str:
    return address.partition("#")[0] + "#" + link.encode_fragment(bytes(32))


@pytest.mark.parametrize(
    ("change", "expected", "told"),
    [
        (lambda address: address.partition("#")[0], "missing-key", "The link has no key"),
        (lambda address: address.partition("#")[0] + "#", "missing-key", "The link has no key"),
        (_cut, "malformed-key", "The key in the link is damaged"),
        (lambda address: address + ".", "malformed-key", "The key in the link is damaged"),
        (
            lambda address: address.replace("#1", "#2"),
            "malformed-key",
            "The key in the link is damaged",
        ),
        (
            lambda address: address.replace("#1", "#k=1"),
            "malformed-key",
            "The key in the link is damaged",
        ),
        (
            lambda address: address.replace("#", "%23"),
            "encoded-hash",
            "The link was changed on its way to you",
        ),
        (
            lambda address: address.replace("#", "%2523"),
            "encoded-hash",
            "The link was changed on its way to you",
        ),
        (lambda address: address.replace("/s/", "/s/no"), "not-found", "Share not found"),
    ],
)
def test_a_link_that_was_changed_says_how_and_spends_nothing(
    browser: Browser,
    service: RunningService,
    change: Callable[[str], str],
    expected: str,
    told: str,
) -> None:
    address = send(service, [field("secret")], access_counts_left=1)
    browser.open(change(address))
    assert reason(browser) == expected
    assert browser.one("h1").text == told
    assert browser.one("#reason").text == expected
    assert spent(service, address) == (0, 0)


def test_a_key_of_another_share_is_reported_and_uses_no_view(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret")], access_counts_left=1)
    browser.open(_of_another(address))
    browser.press("Open it")
    assert reason(browser) == "wrong-key"
    assert spent(service, address) == (0, 0)


@pytest.mark.parametrize("encoded", ["%23", "%2523", "%252523"])
def test_an_encoded_hash_leaves_no_key_in_the_log_or_the_address_bar(
    browser: Browser, service: RunningService, encoded: str
) -> None:
    address = send(service, [field("secret")])
    browser.open(address.replace("#", encoded))
    assert reason(browser) == "encoded-hash"
    key = address.partition("#")[2][1:]
    assert key not in browser.run("return location.href")
    assert [seen.target for seen in service.seen() if key in repr(seen)] == []
    assert any(seen.target.endswith(f"{encoded}...") for seen in service.seen())


def test_a_short_code_with_a_hash_of_its_own_is_no_damage(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret")])
    code = address.rpartition("/")[2].partition("#")[0]
    odd = "a#b/c?%20 ž"
    service.service.database.rows(
        "UPDATE shares SET short_code = :odd WHERE short_code = :code", {"odd": odd, "code": code}
    )
    opened(browser, address.replace(code, quote(odd, safe="")))
    browser.says("secret")
    assert values(browser) == ["secret"]


@pytest.mark.parametrize(
    ("end", "expected", "told"),
    [
        (time_passes, "expired", "The share has expired"),
        (somebody_opens, "used-up", "The share is used up"),
        (the_sender_ends, "deleted", "The share was withdrawn"),
    ],
)
def test_a_share_that_has_ended_says_why_before_and_after_the_button(
    browser: Browser,
    service: RunningService,
    end: Callable[[RunningService, str], object],
    expected: str,
    told: str,
) -> None:
    now = service.service.clock.now()
    soon = (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    address = send(service, [field("secret")], access_counts_left=1, expired_at=soon)
    browser.open(address)
    browser.one("#open")
    end(service, address)
    browser.press("Open it")
    assert reason(browser) == expected
    browser.open(address)
    assert reason(browser) == expected
    assert browser.one("h1").text == told


def test_damaged_ciphertext_is_reported(browser: Browser, service: RunningService) -> None:
    key = bytes(range(32))
    whole = envelope.seal(key, as_json([field("secret")]))
    for data in ("QUJD", exchanged(whole, -5), envelope.seal(bytes(32), b"[]")):
        code = post(service, {"data": data, "access_token": tokens.access_token(key)})
        browser.open(link.share_link(service.link_base_url, code, key))
        browser.press("Open it")
        assert reason(browser) in ("cannot-decrypt", "too-short", "not-base64")
        assert browser.one("h1").text == "The content cannot be decrypted"


def test_a_missing_service_is_reported_and_can_be_retried(
    browser: Browser, service: RunningService
) -> None:
    browser.open(send(service, [field("secret")], access_counts_left=1))
    browser.one("#open")
    browser.cdp("Network.enable")
    conditions = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.cdp("Network.emulateNetworkConditions", offline=True, **conditions)
    try:
        browser.press("Open it")
        browser.says("No response.")
    finally:
        browser.cdp("Network.emulateNetworkConditions", offline=False, **conditions)
    browser.press("Open it")
    browser.says("secret")
    assert values(browser) == ["secret"]


@pytest.mark.parametrize("path", ["s/some", "s/r/some"])
def test_a_browser_without_webcrypto_fails_before_any_call(
    browser: Browser, service: RunningService, path: str
) -> None:
    without = "Object.defineProperty(crypto, 'subtle', {value: undefined})"
    script = browser.cdp("Page.addScriptToEvaluateOnNewDocument", source=without)
    try:
        browser.open(f"{service.origin}/{path}#{link.encode_fragment(bytes(32))}")
        assert reason(browser) == "no-webcrypto"
    finally:
        browser.cdp("Page.removeScriptToEvaluateOnNewDocument", **script)
    assert [seen.target for seen in service.seen() if seen.target.startswith("/links")] == []


def test_an_unresponsive_service_is_reported_and_retried(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret")])
    browser.cdp("Network.enable")
    browser.cdp("Network.setBlockedURLs", urls=["*/links/*"])
    try:
        browser.open(address)
        assert reason(browser) == "no-answer"
    finally:
        browser.cdp("Network.setBlockedURLs", urls=[])
    browser.press("Try again")
    browser.press("Open it")
    browser.says("secret")


def test_the_whole_link_pasted_over_the_page_opens_it(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret")])
    browser.open(address.partition("#")[0])
    assert reason(browser) == "missing-key"
    browser.run("location.hash = arguments[0]", address.partition("#")[2])
    browser.one("#open").click()
    browser.says("secret")


# --- Time, keyboard, ears -------------------------------------------------------------------------


def test_a_timed_view_is_hidden_after_its_seconds(
    browser: Browser, extended: RunningService
) -> None:
    browser.open(send(extended, [field("secret-value")], access_counts_left=2, timed_view=2))
    browser.says("2 seconds once it is open")
    browser.press("Open it")
    browser.says("secret-value", "Hidden again in")
    browser.says("It is hidden again", "limits each view to 2 seconds")
    assert "secret-value" not in browser.run("return document.documentElement.outerHTML")
    browser.press("Back to the link")
    browser.press("Open it")
    browser.says("secret-value", "This was the last time")
    browser.says("It is hidden again", "the link does not open again")
    assert browser.all("button") == []


def test_an_opened_share_can_be_hidden_at_once(browser: Browser, service: RunningService) -> None:
    opened(browser, send(service, [field("secret-value")]))
    browser.press("Hide it now")
    browser.says("The content is gone from this page.")
    assert "secret-value" not in browser.run("return document.documentElement.outerHTML")


def test_a_page_that_the_browser_keeps_is_kept_empty_and_begins_anew(
    browser: Browser, service: RunningService
) -> None:
    opened(browser, send(service, [field("secret-value")]))
    browser.run("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: false}))")
    browser.says("secret-value")
    browser.run("dispatchEvent(new PageTransitionEvent('pagehide', {persisted: true}))")
    assert "secret-value" not in browser.run("return document.documentElement.outerHTML")
    browser.run("dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    assert reason(browser) == "missing-key"


def test_impatience_and_going_back_spend_one_view(
    browser: Browser, service: RunningService
) -> None:
    address = send(service, [field("secret-value")], access_counts_left=5)
    browser.open(address)
    browser.one("#open")
    browser.run(
        "const it = document.getElementById('open'); for (let n = 0; n < 5; n++) "
        "it.form.requestSubmit(it)"
    )
    browser.says("secret-value", "The link opens 4 more times.")
    browser.driver.get(f"{browser.origin}/s/none")
    browser.driver.back()
    assert reason(browser) == "missing-key"
    assert "secret-value" not in browser.run("return document.documentElement.outerHTML")
    assert [seen.target for seen in service.seen() if seen.target.endswith("/open")] == [
        f"/links/shares/{address.rpartition('/')[2].partition('#')[0]}/open"
    ]


def test_a_timed_view_of_a_hundred_years_is_not_over_at_once(
    browser: Browser, extended: RunningService
) -> None:
    opened(browser, send(extended, [field("secret-value")], timed_view=3_155_760_000))
    browser.says("secret-value", "Hidden again in 876599:59:5")
    assert state(browser) == "open"


def test_all_of_it_works_from_the_keyboard_and_is_said(
    browser: Browser, service: RunningService
) -> None:
    browser.open(send(service, EVERY_TYPE, "4711"))
    browser.one("#passcode")
    assert browser.focused() == "Something was shared with you"
    browser.tab_to("Passcode")
    browser.keys("4711", Keys.ENTER)
    browser.one("#hide")
    assert browser.focused() == "It is open"
    browser.wait(
        lambda: (
            browser.run("return document.getElementById('status').textContent")
            == "It is open: 9 fields."
        )
    )
    browser.tab_to("Show Password")
    browser.keys(Keys.SPACE)
    assert browser.focused() == "Hide Password"  # its name is its state: it has no other
    assert browser.driver.switch_to.active_element.get_attribute("aria-pressed") is None
    browser.wait(
        lambda: (
            browser.run("return document.getElementById('status').textContent")
            == "Password is shown"
        )
    )
    browser.tab_to("Hide it now")
    browser.keys(Keys.ENTER)
    browser.one("#again")
    assert browser.focused() == "It is hidden again"


def test_without_a_key_the_reason_has_the_focus(browser: Browser, service: RunningService) -> None:
    browser.open(send(service, []).partition("#")[0])
    browser.one("#reason")
    assert browser.focused() == "The link has no key"
    assert browser.driver.title == "The link has no key"


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_every_state_without_scrolling_sideways(
    browser: Browser,
    extended: RunningService,
    dark: bool,  # noqa: FBT001
) -> None:
    browser.look(*PHONE, dark=dark)
    browser.open(send(extended, EVERY_TYPE, "4711", title="T", timed_view=60))
    browser.type("Passcode", "0")
    browser.press("Open it")
    browser.says("Wrong passcode")
    assert browser.overflows() == []
    browser.one("#passcode").clear()
    browser.type("Passcode", "4711")
    browser.press("Open it")
    browser.one("#hide")
    assert browser.overflows() == []
    assert all(button.size["height"] >= 40 for button in browser.all("button"))


def test_the_page_of_another_tag_knows_its_tag(browser: Browser, service: RunningService) -> None:
    browser.open(send(service, []))
    assert browser.run("return document.documentElement.dataset.serviceTag") == service.service_tag
