"""What the submitter can see at a collect link, and whoever asked at the access link, and the way
to each.
"""

from __future__ import annotations

from collections.abc import Callable

from e2e.browser.asked import ask
from e2e.browser.sending import as_json
from e2e.browser.stage import DESCRIPTION, EVERY_TYPE, Stage
from support.damage import exchanged


def _request_ready(stage: Stage) -> str:
    stage.browser.open(ask(stage.job, passcode="pc", description=DESCRIPTION).collect_link)
    return "Open the form"


def _request_wrong(stage: Stage) -> str:
    _request_ready(stage)
    stage.browser.type("Passcode", "wrong")
    stage.browser.press("Open the form")
    return "Wrong passcode"


def _request_sign_in(stage: Stage) -> str:
    stage.browser.open(ask(stage.job, requires_login=True).collect_link)
    stage.browser.press("Open the form")
    return "Only people who are signed in"


def _request_address(stage: Stage) -> str:
    stage.browser.open(ask(stage.job, ip_whitelist=["192.0.2.1"]).collect_link)
    stage.browser.press("Open the form")
    return "not open to this network"


def _request_form(stage: Stage) -> str:
    stage.form()
    return "Seal and send"


def _request_empty(stage: Stage) -> str:
    stage.form()
    stage.browser.press("Seal and send")
    return "Nothing is filled in yet"


def _request_filled(stage: Stage) -> str:
    stage.form()
    stage.browser.type("User name", "deploy-bot")
    stage.browser.type("Root password", "hünter2")
    stage.browser.press("Show Root password")
    return "Seal and send"


def _request_late(stage: Stage) -> str:
    asked = ask(stage.job)
    stage.browser.open(asked.collect_link)
    stage.browser.press("Open the form")
    stage.browser.type("Password", "x")
    asked.end()
    stage.browser.press("Seal and send")
    return "expired in the meantime"


def _request_sent(stage: Stage) -> str:
    stage.form()
    stage.browser.type("User name", "deploy-bot")
    stage.browser.press("Seal and send")
    return "Sent, and only they can read it"


def _request_no_prompts(stage: Stage) -> str:
    asked = ask(stage.job)
    stage.service.service.database.rows("UPDATE requests SET fields = '[]'", {})
    stage.browser.open(asked.collect_link)
    stage.browser.press("Open the form")
    return "The request asks for nothing"


def _request_ended(what: str, told: str) -> Callable[[Stage], str]:
    def bring(stage: Stage) -> str:
        stage.browser.open(
            f"{stage.service.link_base_url}/r/none" if what == "none" else stage.gone(what)
        )
        return told

    return bring


def _owner_empty(stage: Stage) -> str:
    stage.browser.open(ask(stage.job, max_submissions=2).access_link)
    return "There is no submission to read here yet"


def _owner_opened(stage: Stage) -> str:
    asked = ask(stage.job)
    asked.answer()
    asked.seal(as_json(EVERY_TYPE))
    stage.browser.open(asked.access_link)
    stage.browser.press("Show Root password")
    return "2 submissions, opened in this browser"


def _owner_unread(stage: Stage) -> str:
    asked = ask(stage.job)
    asked.answer()
    asked.send("AAAA")
    asked.seal(b"no fields")
    asked.send("AAAA", encryption_type="none")
    asked.end()
    stage.browser.open(asked.access_link)
    return "2 submissions could not be opened"


def _owner_hidden(stage: Stage) -> str:
    asked = ask(stage.job)
    asked.answer()
    stage.browser.open(asked.access_link)
    stage.browser.press("Hide them now")
    return "The submissions are hidden again"


def _owner_link(end: Callable[[str], str], told: str) -> Callable[[Stage], str]:
    def bring(stage: Stage) -> str:
        stage.browser.open(end(ask(stage.job).access_link))
        return told

    return bring


REQUEST: dict[str, Callable[[Stage], str]] = {
    "request-ready": _request_ready,
    "request-passcode-wrong": _request_wrong,
    "request-sign-in": _request_sign_in,
    "request-address": _request_address,
    "request-form": _request_form,
    "request-form-empty": _request_empty,
    "request-form-filled": _request_filled,
    "request-form-late": _request_late,
    "request-sent": _request_sent,
    "request-no-prompts": _request_no_prompts,
    "request-full": _request_ended("full", "The request has all its submissions"),
    "request-expired": _request_ended("expired", "The request has expired"),
    "request-not-found": _request_ended("none", "Request not found"),
    "owner-empty": _owner_empty,
    "owner-opened": _owner_opened,
    "owner-unread": _owner_unread,
    "owner-hidden": _owner_hidden,
    "owner-malformed-key": _owner_link(lambda full: full[:-3], "The key in the link is damaged"),
    "owner-encoded-hash": _owner_link(
        lambda full: full.replace("#", "%23"), "The link was changed on its way"
    ),
    "owner-wrong-key": _owner_link(exchanged, "The key does not belong to this request"),
}
