"""The people who get the links: recipient and submitter.

They have only a link, and use it over real HTTP.

Their exceptions have no traceback frames: frames hold links and passcodes, which a failing test
would print.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sealpipe.errors import SealpipeError
from sealpipe.secret import Secret, strips_frames
from sealpipe.wire import encoding, envelope, fields, link, sealed_box, tokens
from sealpipe.wire.fields import Field

from .control_client import send_request


class LinkRefusedError(SealpipeError):
    """The link was refused.

    For a share's link, `reason` is one of `not-found`, `time`, `views`, `attempts`, `deleted`,
    `passcode-required`, `passcode-wrong`; for a collect link, `not-found`, `expired`, `full`,
    `accesses`, `passcode`, `login`, `mfa`, `domain`, `address`, `invalid`. `attempts_left` is the
    number of passcode attempts left after a wrong one.
    """

    exit_code = 6

    def __init__(self, reason: str, message: str, attempts_left: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.attempts_left = attempts_left


@dataclass(frozen=True)
class Recipient:
    """Opens share links of a rehearsal.

    `origin` is the service's address if it differs from the link's.
    """

    origin: str | None = None

    @strips_frames
    def look(self, share_link: str | Secret) -> dict[str, Any]:
        """Return what the page shows before opening: `passcode_required`, `expired_at`.

        Uses no view.
        """
        origin, path, _ = _split_link(share_link, self.origin, "shares")
        return _check_response(*send_request(origin, "GET", path))

    @strips_frames
    def open_link(
        self, share_link: str | Secret, passcode: str | Secret | None = None
    ) -> list[Field]:
        """Open a link, which uses a view.

        Raises LinkRefusedError, or WireError if decryption fails.

        A missing passcode uses neither a view nor an attempt.
        """
        origin, path, fragment = _split_link(share_link, self.origin, "shares")
        content_key = link.decode_fragment(fragment)
        given_passcode = passcode.reveal() if isinstance(passcode, Secret) else passcode
        proof = {"access_token": tokens.access_token(content_key)}
        if _check_response(*send_request(origin, "GET", path))["passcode_required"]:
            if given_passcode is None:
                raise LinkRefusedError("passcode-required", "this share needs a passcode")
            proof["passcode_verifier"] = tokens.passcode_verifier(given_passcode)
        else:
            given_passcode = None  # without a passcode, the content key alone decrypts
        content = _check_response(*send_request(origin, "POST", f"{path}/open", proof))
        return fields.load(
            envelope.open(content_key, content["data"], given_passcode), blank_labels=True
        )


@dataclass(frozen=True)
class Submitter:
    """Fills in collect links of a rehearsal.

    `origin` is the service's address if it differs from the link's.
    """

    origin: str | None = None

    @strips_frames
    def look(self, collect_link: str | Secret) -> dict[str, Any]:
        """Return what the page shows before the form: `title`, `passcode_required`, `expired_at`.

        Uses no access.
        """
        origin, path, _ = _split_link(collect_link, self.origin, "requests")
        return _check_response(*send_request(origin, "GET", path))

    @strips_frames
    def tag(self, collect_link: str | Secret) -> str:
        """Return the service tag for a link, as its page has it."""
        origin, path, _ = _split_link(collect_link, self.origin, "requests")
        _, page = send_request(origin, "GET", f"/s/r/{path.rpartition('/')[2]}")
        found = re.search(r'data-service-tag="([a-z0-9]+)"', page if isinstance(page, str) else "")
        if found is None:
            raise LinkRefusedError("not-found", "no service responds there")
        return found[1]

    @strips_frames
    def open_form(self, collect_link: str | Secret, **identity: Any) -> dict[str, Any]:
        """Return the form: `title`, `description`, `fields` of `item` and `type`, `public_key`.

        Uses an access.

        `identity` has what the request's conditions ask for: `passcode`, `signed_in_as` (email
        address), `mfa`, `from_ip`.
        """
        origin, path, _ = _split_link(collect_link, self.origin, "requests")
        return _check_response(*send_request(origin, "POST", f"{path}/open", _reveal(identity)))

    @strips_frames
    def submit(
        self,
        collect_link: str | Secret,
        values: Mapping[str, str],
        *,
        tag: str = "svc",
        **identity: Any,
    ) -> str:
        """Fill in the form, seal and send it; return the submission's short code.

        Raises LinkRefusedError.

        `values` maps prompts to values; other prompts stay empty. `tag` is the service tag.
        """
        return self.fill_in(
            collect_link, self.open_form(collect_link, **identity), values, tag=tag, **identity
        )

    @strips_frames
    def fill_in(
        self,
        collect_link: str | Secret,
        form: Mapping[str, Any],
        values: Mapping[str, str],
        *,
        tag: str,
        **identity: Any,
    ) -> str:
        """Like `submit`, with a form that `open_form` returned, so that no other access is used."""
        filled = [
            Field(field["item"], values.get(field["item"], ""), field["type"])
            for field in form["fields"]
        ]
        public_key = encoding.decode_base64url(form["public_key"])
        return self.send(
            collect_link, sealed_box.seal(public_key, fields.dump(filled), tag=tag), **identity
        )

    @strips_frames
    def send(self, collect_link: str | Secret, data: str, **identity: Any) -> str:
        """Send `data` (standard base64) unchanged, sealed or not.

        Return the submission's short code.
        """
        origin, path, _ = _split_link(collect_link, self.origin, "requests")
        code: str = _check_response(
            *send_request(origin, "POST", f"{path}/submit", {**_reveal(identity), "data": data}),
            expected=201,
        )["short_code"]
        return code


def _reveal(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.reveal() if isinstance(value, Secret) else value
        for name, value in identity.items()
    }


def _split_link(
    any_link: str | Secret, known_origin: str | None, what: str
) -> tuple[str, str, str]:
    text = any_link.reveal() if isinstance(any_link, Secret) else any_link
    address = urlsplit(text)
    code = address.path.rsplit("/", 1)[-1]  # stays percent-encoded: one path segment in both URLs
    return (
        known_origin or f"{address.scheme}://{address.netloc}",
        f"/links/{what}/{code}",
        address.fragment,
    )


def _check_response(status: int, value: Any, *, expected: int = 200) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise LinkRefusedError("not-found", f"no rehearsal responds there (HTTP {status})")
    if status != expected:
        message = value.get("message", f"HTTP {status}")
        raise LinkRefusedError(
            value.get("reason", "not-found"), message, value.get("attempts_left")
        )
    return value
