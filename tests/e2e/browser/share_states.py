"""What the recipient can see at a share's link, and the way to each."""

from __future__ import annotations

from collections.abc import Callable

from e2e.browser.asked import FRAGMENT
from e2e.browser.sending import post, send
from e2e.browser.stage import Stage
from sealpipe.wire import link, tokens


def _share_passcode(stage: Stage) -> str:
    stage.browser.open(stage.share("pc"))
    return "You have 5 tries left"


def _share_wrong(stage: Stage) -> str:
    stage.opens(stage.share("pc"), "wrong")
    return "Wrong passcode"


def _share_no_tries(stage: Stage) -> str:
    stage.opens(stage.share("pc"), "0")
    for number in range(1, 5):
        stage.browser.says(f"{5 - number} tr")
        stage.browser.type("Passcode", str(number))
        stage.browser.press("Open it")
    return "No tries are left"


def _origin(stage: Stage) -> str:
    stage.browser.open(stage.service.origin + "/")
    return "Open a link that sealpipe printed"


def _share_ready(stage: Stage) -> str:
    stage.browser.open(stage.share(expired_at="2099-01-01T00:00:00Z", timed_view=60))
    return "Open it when you are ready"


def _share_open(stage: Stage) -> str:
    stage.opens(stage.share())
    return "Access to staging"


def _share_shown(stage: Stage) -> str:
    stage.opens(stage.share(access_counts_left=1))
    stage.browser.press("Show Root password")
    return "hünter2"


def _share_timed(stage: Stage) -> str:
    stage.opens(stage.share(timed_view=60))
    return "Hidden again in"


def _share_hidden(stage: Stage) -> str:
    stage.opens(stage.share(access_counts_left=3))
    stage.browser.press("Hide it now")
    return "It is hidden again"


def _share_bare(stage: Stage) -> str:
    stage.opens(send(stage.service, b"a text that is no list of fields"))
    return "not-fields"


def _share_used_up(stage: Stage) -> str:
    share_link = stage.share(access_counts_left=1)
    stage.service.recipient().open_link(share_link)
    stage.browser.open(share_link)
    return "The share is used up"


def _share_expired(stage: Stage) -> str:
    share_link = stage.share(expired_at="2026-12-01T00:00:00Z")
    stage.service.service.database.rows("UPDATE shares SET expires = 1", {})
    stage.browser.open(share_link)
    return "The share has expired"


def _share_damaged(stage: Stage) -> str:
    key = bytes(32)
    body = {"data": "A" * 80, "access_token": tokens.access_token(key)}
    stage.opens(link.share_link(stage.service.link_base_url, post(stage.service, body), key))
    return "The content cannot be decrypted"


def _share_wrong_key(stage: Stage) -> str:
    stage.opens(stage.share().partition("#")[0] + "#" + FRAGMENT)
    return "The key does not belong"


def _share_link(end: Callable[[str], str], told: str) -> Callable[[Stage], str]:
    def bring(stage: Stage) -> str:
        stage.browser.open(end(stage.share()))
        return told

    return bring


SHARE: dict[str, Callable[[Stage], str]] = {
    "origin": _origin,
    "share-ready": _share_ready,
    "share-passcode": _share_passcode,
    "share-passcode-wrong": _share_wrong,
    "share-no-tries-left": _share_no_tries,
    "share-open": _share_open,
    "share-open-shown": _share_shown,
    "share-open-timed": _share_timed,
    "share-hidden": _share_hidden,
    "share-not-fields": _share_bare,
    "share-used-up": _share_used_up,
    "share-expired": _share_expired,
    "share-cannot-decrypt": _share_damaged,
    "share-wrong-key": _share_wrong_key,
    "share-missing-key": _share_link(lambda full: full.partition("#")[0], "The link has no key"),
    "share-malformed-key": _share_link(lambda full: full[:-3], "The key in the link is damaged"),
    "share-encoded-hash": _share_link(
        lambda full: full.replace("#", "%23"), "The link was changed on its way"
    ),
    "share-not-found": _share_link(lambda full: full.replace("#", "x#"), "Share not found"),
}
