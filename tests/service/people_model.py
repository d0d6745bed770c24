"""The people at the other end, for `model`: what a holder of a link is told, outside /v1."""

from __future__ import annotations

from typing import Any

from service.model import Model
from service.things import Request, Share, Told


def look(model: Model, what: str, code: str) -> Told:
    """Asking spends nothing."""
    thing = model.find(what, code)
    if thing is None:
        return 404, "not-found"
    if closed := _closed(model, thing):
        return closed
    if isinstance(thing, Share):
        wanted = thing.verifier is not None
        told: dict[str, Any] = {
            "passcode_required": wanted,
            "timed_view": None,
            "views_left": thing.views,
        }
        told["attempts_left"] = thing.attempts if wanted else None
    else:
        told = {
            "passcode_required": thing.passcode is not None,
            "title": "T",
            "accesses_left": thing.forms,
        }
        told["account"] = thing.owner.account
    return 200, {"short_code": code, "expired_at": model.text(thing.expires), **told}


def open_share(model: Model, code: str, token: str | None, verifier: str | None) -> Told:
    """Whoever cannot prove the token learns nothing; a wrong verifier spends an attempt, success a
    view.
    """
    share = model.find("shares", code)
    if share is None or token != share.token:
        return 404, "not-found"
    if closed := _closed(model, share):
        return closed
    if share.verifier is not None and verifier != share.verifier:
        share.attempts -= 1
        if not share.attempts:
            share.ended, share.ended_at = "attempts", model.now
        return 403, ("passcode-wrong" if verifier else "passcode-required", share.attempts)
    if share.views is not None:
        share.views -= 1
        if not share.views:
            share.ended, share.ended_at = "views", model.now
    model.count_view(share)
    return 200, {
        "short_code": code,
        "encryption_type": "e2ee-aes256-gcm",
        "data": share.data,
        "title": None,
        "description": None,
        "expired_at": model.text(share.expires),
        "timed_view": None,
        "views_left": share.views,
    }


def open_form(model: Model, code: str, passcode: str | None) -> Told:
    """Seeing the form spends an access."""
    request = model.find("requests", code)
    if refused := _kept_out(model, request, passcode):
        return refused
    if request.forms is not None:
        if not request.forms:
            return 410, "accesses"
        request.forms -= 1
    return 200, {
        "short_code": code,
        "title": "T",
        "description": None,
        "public_key": request.public_key,
        "expired_at": model.text(request.expires),
        "fields": [],
    }


def submit(model: Model, code: str, passcode: str | None, sent: dict[str, Any], told: Any) -> Told:
    """An answer; its own code is taken from `told`."""
    request = model.find("requests", code)
    if refused := _kept_out(model, request, passcode):
        return refused
    request.answers.append(
        {"short_code": told.get("short_code"), "created_at": model.text(model.now), **sent}
    )
    return 201, {"short_code": told.get("short_code")}


def _kept_out(model: Model, request: Request | None, passcode: str | None) -> Told | None:
    if request is None:
        return 404, "not-found"
    if closed := _closed(model, request):
        return closed
    return (
        (403, "passcode") if request.passcode is not None and passcode != request.passcode else None
    )


def _closed(model: Model, thing: Any) -> Told | None:
    over = thing.over(model.now)
    if isinstance(thing, Share):
        return (410, over) if over else None
    if over:
        return 410, "expired"
    return (410, "full") if thing.most is not None and len(thing.answers) >= thing.most else None
