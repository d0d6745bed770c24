"""Where a state of a page is brought about: the browser, somebody who shares and asks, and fields
of every type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from e2e.browser.asked import ask
from e2e.browser.chrome import Browser
from e2e.browser.sending import field, send
from sealpipe_rehearsal.running_service import RunningService
from support.job import Job

LONG = "a line that is long enough to be wider than any phone there is"
CODE = (
    f'import os\n\ndef main() -> None:\n    print(os.environ["HOME"])  # {LONG}, and than most '
    "of the other screens\n"
)
EVERY_TYPE = [
    field("deploy-bot", "text", "User name"),
    field("hünter2-correct-horse", "password", "Root password"),
    field("2026-12-24", "date", "Valid until"),
    field(
        "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\n",
        "multiline",
        "Private key",
    ),
    field(
        "# How to log in\n\n* open the VPN\n* use *both* factors",
        "markdown",
        "Notes",
        filename="notes.md",
    ),
    field(CODE, "source_code", "Script", selectedProgrammingLanguage="python", filename="main.py"),
    field("https://vault.example.com/ui?x=1#y", "url", "Login page"),
    field("javascript:alert(1)", "url", "No login page"),
    field("otpauth://totp/Acme:bob?secret=JBSWY3DPEHPK3PXP&issuer=Acme", "qr", "Second factor"),
    field("", "text", "Nothing"),
    field(
        "W" * 300 + "\u202etxt.exe",
        "unheard-of",
        "A label that is long enough for two lines on a phone, and " + "x" * 40,
    ),
]
PROMPTS = [(str(each["key"])[:200], str(each["type"])) for each in EVERY_TYPE[:7]] + [
    ("Second factor", "qr")
]
DESCRIPTION = "For the release of Friday. Ask Ann (ann@example.com) if anything is unclear."


@dataclass
class Stage:
    """Where a state is brought about: an extended service, which knows every type of field."""

    browser: Browser
    job: Job
    service: RunningService

    # -- the recipient --------------------------------------------------------------------------

    def share(self, passcode: str | None = None, **members: Any) -> str:
        whole = {"title": "Access to staging", "description": DESCRIPTION, **members}
        return send(self.service, EVERY_TYPE, passcode, **whole)

    def opens(self, share_link: str, passcode: str | None = None) -> None:
        self.browser.open(share_link)
        if passcode is not None:
            self.browser.type("Passcode", passcode)
        self.browser.press("Open it")

    # -- the submitter and the owner --------------------------------------------------------------

    def form(self, **options: Any) -> None:
        asked = ask(self.job, **{"fields": PROMPTS, "description": DESCRIPTION, **options})
        self.browser.open(asked.collect_link)
        self.browser.press("Open the form")
        self.browser.says("Seal and send")

    def gone(self, what: str) -> str:
        """A collect link that takes nothing any more."""
        asked = ask(self.job, max_submissions=1)
        if what == "full":
            asked.answer()
        else:
            asked.end()
        return asked.collect_link
