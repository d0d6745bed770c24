"""What a sender wrote is text in the page, and nothing else: no markup, no script, no address of
theirs is asked.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from e2e.browser.chrome import PHONE, Browser, Recorder
from e2e.browser.hostile_arrays import ARRAYS
from e2e.browser.sending import field, send
from sealpipe_rehearsal.running_service import RunningService

pytestmark = pytest.mark.usefixtures("extended")

# Whatever the page is made of; nothing here loads, runs or leads anywhere but A, which is looked at
# apart.
_OURS = {
    "A", "BDI", "BODY", "BUTTON", "CODE", "DD", "DIV", "DL", "DT", "FOOTER", "H1", "H2", "HEADER",
    "IMG", "LI", "MAIN", "P", "PRE", "SECTION", "SPAN", "STRONG", "TIME", "UL", "path", "svg",
}  # fmt: skip
# As a JSON text: half a surrogate pair passes no other way.
_SHOWN = "return JSON.stringify([...document.querySelectorAll('.value')].map(e => e.textContent))"


def opened(browser: Browser, link: str) -> None:
    browser.open(link)
    browser.one("#open").click()
    browser.wait(
        lambda: browser.run("return document.getElementById('stage').dataset.state") == "open",
        "the content",
    )
    browser.run(
        "document.querySelectorAll('.field button.reveal').forEach((button) => button.click())"
    )


def shown(browser: Browser) -> list[str]:
    """Every value that stands in the page, exactly."""
    values: list[str] = json.loads(browser.run(_SHOWN))
    return values


def test_there_are_forty_of_them() -> None:
    assert len(ARRAYS) == 40


_ALONE = [name for name, array in ARRAYS.items() if len(str(array)) > 20_000]
_SHORT = [name for name in ARRAYS if name not in _ALONE]


# What is short comes five to a page: each value is one field, and nothing that it could do to the
# page is undone by the next.
@pytest.mark.parametrize(
    "names",
    [*((name,) for name in _ALONE), *(_SHORT[at : at + 5] for at in range(0, len(_SHORT), 5))],
    ids=", ".join,
)
def test_hostile_fields_stay_text(
    browser: Browser, service: RunningService, recorder: Recorder, names: Sequence[str]
) -> None:
    array = [each for name in names for each in ARRAYS[name]]
    title = f"<b>{', '.join(names)}</b>"
    link = send(service, array, title=title, description="<img src=x onerror=window.pwned=1>")
    opened(browser, link)
    for each, text in zip(array, shown(browser), strict=True):
        assert text == each.get("value") or not isinstance(each.get("value"), str)
    assert (
        set(
            browser.run("return [...document.querySelectorAll('body, body *')].map(e => e.tagName)")
        )
        <= _OURS
    )
    assert browser.run(
        "return [...document.querySelectorAll('img')].every(e => e.src.endsWith('/page/icon.svg'))"
    )
    for href, rel, target in browser.run(
        "return [...document.querySelectorAll('a')].map(e => [e.getAttribute('href'), "
        "e.rel, e.target])"
    ):
        assert href.startswith(("http://", "https://"))
        assert (rel, target) == ("noopener noreferrer", "_blank")
    assert browser.one("h1").text == title
    assert browser.overflows() == []
    fragment = link.partition("#")[2].encode()
    assert fragment[1:] not in recorder.heard
    assert b"198.51.100.7" not in recorder.heard


_FOLLOWED = {
    "https://example.com/a?b=1#c": "https://example.com/a?b=1#c",
    "HTTP://EXAMPLE.COM": "http://example.com/",
    "https://bank.example@evil.example/": "https://bank.example@evil.example/",
}
_NOT_FOLLOWED = [
    "javascript:alert(1)", "https:example.com", "https:///example.com", "//example.com",
    "example.com", "https://[", " https://example.com", "https://example.com/a b", "https://",
    "data:text/html,x", "https://example.com/\u202e", "https:\\\\example.com",
    "mailto:a@example.com", "ftp://example.com", "https://example.com:99999/", "",
]  # fmt: skip


def test_only_absolute_web_addresses_can_be_followed(
    browser: Browser, service: RunningService
) -> None:
    values = [*_FOLLOWED, *_NOT_FOLLOWED]
    opened(browser, send(service, [field(value, "url") for value in values]))
    links = (
        "return [...document.querySelectorAll('.value')].map(e => e.querySelector('a')?.href "
        "?? null)"
    )
    assert dict(zip(values, browser.run(links), strict=True)) == {
        **_FOLLOWED,
        **dict.fromkeys(_NOT_FOLLOWED),
    }
    assert shown(browser) == values


def test_an_address_says_whose_it_is(browser: Browser, service: RunningService) -> None:
    opened(browser, send(service, [field("https://bank.example@evil.example/", "url")]))
    assert "Opens evil.example in a new tab." in browser.says("Opens ")


_SAFE = {
    "hi.py": "hi.py",
    "../../../etc/cron.d/pwned": "pwned",
    "C:\\Windows\\cmd.exe": "cmd.exe",
    "/etc/": "shared.txt",
    "..": "shared.txt",
    ".bashrc": "bashrc",
    "~/.ssh/id": "id",
    "-rf": "rf",
    "CON.txt": "_CON.txt",
    "aux": "_aux",
    "con .txt": "_con .txt",
    "COM¹.txt": "_COM¹.txt",
    "%2e%2e%2fx": "2e2e2fx",
    "invoice\u202efdp.exe": "invoicefdp.exe",
    "a\u0000b\u001b[2J\n.txt": "ab[2J.txt",
    'a<b>|c?*:".txt. ': "abc.txt",
    "n" * 5000 + ".pem": "n" * 96 + ".pem",
    "\U0001f511" * 300: "\U0001f511" * 100,
    "žluťoučký kůň.md": "žluťoučký kůň.md",
}


def test_a_file_name_names_a_file_and_no_place(browser: Browser, service: RunningService) -> None:
    opened(browser, send(service, [field("x", "source_code", filename=name) for name in _SAFE]))
    offered = browser.run(
        "return [...document.querySelectorAll('.download')].map(e => e.dataset.filename)"
    )
    assert dict(zip(_SAFE, offered, strict=True)) == _SAFE


def test_what_is_saved_is_the_value_byte_for_byte_under_the_safe_name(
    browser: Browser, service: RunningService
) -> None:
    value = "line 1\r\nline 2\n\ttab \ufeff žluťoučký 🐎\n"
    opened(
        browser,
        send(service, [field(value, "source_code", "Key", filename="../../id_ed25519.pem")]),
    )
    browser.press("Download id_ed25519.pem")
    saved = browser.downloads / "id_ed25519.pem"
    browser.wait(saved.exists, "the file")
    assert saved.read_bytes() == value.encode()
    assert [file.name for file in browser.downloads.iterdir()] == ["id_ed25519.pem"]


def test_a_label_that_hides_something_shows_it(browser: Browser, service: RunningService) -> None:
    hidden = "".join(map(chr, (0xAD, 0x3164, 0xE0041, 0x206A)))
    opened(
        browser,
        send(service, [field(hidden, "text", f"a{hidden}b"), field("👩‍🔧 نص", "text", "👩‍🔧 نص")]),
    )
    browser.says("a⟨U+00AD⟩⟨U+3164⟩⟨U+E0041⟩⟨U+206A⟩b", "👩‍🔧 نص")
    assert browser.text().count("Contains invisible characters") == 1
    opened(browser, send(service, [field("v\u202ev", "text", "user\u202e\u001b[2Jname")]))
    browser.says(
        "user⟨U+202E⟩⟨U+001B⟩[2Jname",
        "Contains invisible characters or ones that change the text direction.",
    )


def test_a_phone_shows_hostile_lengths_without_scrolling_sideways(
    browser: Browser, service: RunningService
) -> None:
    browser.look(*PHONE)
    long = "x" * 3000
    fields = [
        field(long, kind, long, filename=long, selectedProgrammingLanguage=long)
        for kind in ("text", "url", "qr")
    ]
    more = [
        field(f"https://{long}.example/{long}", "url"),
        field(long, "source_code", long, filename=long),
    ]
    opened(browser, send(service, fields + more, title=long, description=long))
    assert browser.overflows() == []


def test_more_fields_than_a_page_holds_come_in_parts(
    browser: Browser, service: RunningService
) -> None:
    fields = b"[" + b",".join([b"{}"] * 150_000) + b"]"
    opened(browser, send(service, fields, access_counts_left=1))
    assert len(shown(browser)) == 5_000
    # Not by its accessible name: five thousand buttons would be asked for theirs.
    more = browser.one(".fields + .actions button")
    assert more.text == "Show 5000 more fields"
    more.click()
    assert len(shown(browser)) == 10_000
    assert (
        browser.run("return [...document.querySelectorAll('.value')].at(-1).ariaLabel")
        == "Field 10000"
    )
    assert more.text == "Show 5000 more fields"


def test_the_page_takes_no_markup_from_anywhere(browser: Browser) -> None:
    """Trusted types: even a script of ours that tried could not turn text into markup."""
    browser.open(f"{browser.origin}/s/none")
    browser.one("#reason")
    tried = (
        "try { document.body.innerHTML = '<i>x</i>'; return 'taken' } catch (error) { return "
        "error.name }"
    )
    assert browser.run(tried) == "TypeError"
    # That breach is said on the console: it was this test's own.
    browser.read()
    browser._console.clear()
