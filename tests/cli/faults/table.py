"""The table of faults: what happens to the requests of one share, and how that share must end.

`test_share_command.py` runs it through the command line, `test_clients.py` through both clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from sealpipe import errors
from support import faults
from support.faults import envelope, raw, replaces, rewrites, says
from support.faulty import Fault, passes

LASTING = 60.0
"""The deadline, in seconds, of what ends by itself: far more than all tries take."""
SILENT = 10.0
"""The deadline where no answer comes to its end: it has to pass, with time to send even on a busy
machine.
"""
LATE = 30.0
"""Seconds over its deadline that a call may take on a busy machine: what never ended would take far
more.
"""

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}
PAGE = "<!DOCTYPE html><title>Bad Gateway</title>"
LIMIT = 1024 * 1024

ELSEWHERE = "http://localhost:1/v1/shares"
"""Where redirects point.

That nothing goes where somebody does listen is in `test_share_command.py`.
"""


@dataclass(frozen=True)
class Row:
    """`faults` happen to one request each, `then` to all that follow.

    `ends`: the exception (None: it succeeds). `kept`: the outbox entry stays. `shares`: how many
    there are afterwards. `sent`: how many requests arrive, least and most.
    """

    name: str
    faults: tuple[Fault, ...]
    then: Fault
    ends: type[errors.SealpipeError] | None
    kept: bool
    shares: int
    sent: tuple[int, int]
    deadline: float = LASTING
    listens: bool = True

    def __str__(self) -> str:
        return self.name

    @property
    def code(self) -> int:
        """The exit code that the design promises."""
        return 0 if self.ends is None else self.ends.exit_code

    @property
    def waits(self) -> bool:
        """Whether it takes seconds: for a deadline, or between requests that are rate-limited."""
        return self.deadline == SILENT or "429" in self.name


def recovers(name: str, *faults: Fault) -> Row:
    """It passes, and the share is made as if nothing had been."""
    return Row(name, faults, passes, None, kept=False, shares=1, sent=(len(faults) + 1,) * 2)


def lasts(
    name: str, fault: Fault, ends: type[errors.SealpipeError], *, shares: int, kept: bool = True
) -> Row:
    """It happens again and again until the tries are spent."""
    return Row(name, (), fault, ends, kept, shares, sent=(5, 5))


def final(
    name: str,
    fault: Fault,
    ends: type[errors.SealpipeError],
    *,
    shares: int = 0,
    kept: bool = False,
    after: int = 0,
) -> Row:
    """One such answer ends it: nothing is sent after that."""
    return Row(name, (), fault, ends, kept, shares, sent=(after + 1,) * 2)


def story(
    name: str,
    *faults: Fault,
    then: Fault = passes,
    ends: type[errors.SealpipeError] | None,
    kept: bool,
    shares: int,
    sent: tuple[int, int],
) -> Row:
    """Several faults after one another."""
    return Row(name, faults, then, ends, kept, shares, sent)


Transient = tuple[str, Fault, int, type[errors.SealpipeError]]
"""Name, fault, shares that exist while it lasts, how it ends if it does last."""

LOST: tuple[Transient, ...] = (
    ("a reset before the commit", faults.reset_before, 0, errors.OutcomeUnknownError),
    ("a reset after the commit", faults.reset_after, 1, errors.OutcomeUnknownError),
    ("a connection closed without an answer", faults.closes, 0, errors.OutcomeUnknownError),
    ("half a body", faults.half_body, 1, errors.OutcomeUnknownError),
    ("an answer that is not HTTP", raw(b"SSH-2.0-OpenSSH_9.2\r\n"), 0, errors.OutcomeUnknownError),
)

FAILED: tuple[Transient, ...] = (
    ("HTML 502", says(502, PAGE, HTML), 0, errors.OutcomeUnknownError),
    ("500 with nothing in it", says(500), 0, errors.OutcomeUnknownError),
    ("503", says(503, PAGE, HTML), 0, errors.OutcomeUnknownError),
    ("409/106", envelope(409, 106), 0, errors.OutcomeUnknownError),
    ("409/106 after the commit", envelope(409, 106, commits=True), 1, errors.OutcomeUnknownError),
)

UNCLEAR_FINER: tuple[Transient, ...] = (
    ("a connection closed after the commit", faults.closes_after, 1, errors.OutcomeUnknownError),
    ("half a head", faults.half_head, 1, errors.OutcomeUnknownError),
    (
        "a TLS alert where plain text is spoken",
        raw(b"\x15\x03\x01\x00\x02\x02\x46"),
        0,
        errors.OutcomeUnknownError,
    ),
    (
        "HTML 502 after the commit",
        says(502, PAGE, HTML, commits=True),
        1,
        errors.OutcomeUnknownError,
    ),
    ("500 after the commit", envelope(500, 999, commits=True), 1, errors.OutcomeUnknownError),
    (
        "503 with Retry-After",
        says(503, "", {"Retry-After": "99999999"}),
        0,
        errors.OutcomeUnknownError,
    ),
    ("504 after the commit", says(504, PAGE, HTML, commits=True), 1, errors.OutcomeUnknownError),
    ("408", says(408), 0, errors.OutcomeUnknownError),
)

BROKEN: tuple[Transient, ...] = tuple(
    (name, fault, 1, errors.ProtocolError)
    for name, fault in (
        ("bad JSON", replaces('{"short_code":"abc"')),
        ("an empty body", replaces("")),
        ("a gzip answer", faults.gzipped),
        ("more than 1 MiB", replaces(b'{"short_code":"' + b"a" * LIMIT + b'"}')),
        ("a body without an end", faults.endless),
        ("no short code", rewrites(short_code=...)),
        ("a short code that is a number", rewrites(short_code=12)),
        ("the short code ..", rewrites(short_code="..")),
        ("an expiry that is a number", rewrites(expired_at=1_900_000_000)),
        ("status 204", says(204, commits=True)),
    )
)

BROKEN_FINER: tuple[Transient, ...] = tuple(
    (name, fault, 1, errors.ProtocolError)
    for name, fault in (
        ("HTML with status 200", says(200, PAGE, HTML, commits=True)),
        ("status 202", says(202, '{"short_code":"abc"}', JSON, commits=True)),
        ("an empty short code", rewrites(short_code="")),
        ("JSON that is not an object", replaces('["short_code"]')),
        ("JSON null", replaces("null")),
        ("NaN in the JSON", replaces('{"short_code":"abc","n":NaN}')),
        ("a member that stands twice", replaces('{"short_code":"abc","short_code":"abd"}')),
        ("endless nesting", replaces("[" * 200_000)),
        ("a body that is not UTF-8", replaces(b'{"short_code":"\xff\xfe"}')),
        ("a short code that is null", rewrites(short_code=None)),
        ("the short code .", rewrites(short_code=".")),
        ("a short code with a control character", rewrites(short_code="ab\x1b[2J")),
        ("a short code with half a character", rewrites(short_code="ab\ud800")),
        ("an expiry that is not a time", rewrites(expired_at="tomorrow")),
        ("an expiry that is an array", rewrites(expired_at=[])),
        ("custody that is a number", rewrites(custody=1)),
        ("status 206", says(206, '{"short_code":"abc"}', JSON, commits=True)),
    )
)


def _limited(headers: Mapping[str, Mapping[str, str]]) -> tuple[Transient, ...]:
    return tuple(
        (name, envelope(429, 107, header), 0, errors.RateLimitError)
        for name, header in headers.items()
    )


LIMITED = _limited(
    {
        "429 with Retry-After": {"Retry-After": "1"},
        "429 without Retry-After": {},
        "429 with Retry-After: soon": {"Retry-After": "soon"},
        "429 with a negative Retry-After": {"Retry-After": "-5"},
        "429 with Retry-After: 1e400": {"Retry-After": "1e400"},
        "429 with a date long past": {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"},
    }
)

LIMITED_FINER = _limited(
    {
        "429 with Retry-After: 1_0": {"Retry-After": "1_0"},
        "429 with five thousand digits": {"Retry-After": "9" * 5_000},
        "429 with an empty Retry-After": {"Retry-After": ""},
        "429 with a superscript digit": {"Retry-After": "\xb2"},
        "429 with a date that is none": {"Retry-After": "Thu, 99 Jan 1970 00:00:00 GMT"},
        "429 with a date out of any calendar": {"Retry-After": "Thu, 01 Jan 99999999 00:00:00 GMT"},
    }
)

TRANSIENT = LOST + FAILED + BROKEN + LIMITED


def in_a_year() -> str:
    return format_datetime(datetime.now(UTC) + timedelta(days=365), usegmt=True)


def redirects(status: int, to: str = ELSEWHERE) -> Fault:
    """Carried out here, and the client is sent elsewhere."""
    return says(status, "", {"Location": to}, commits=True)


def _refusals() -> Iterable[Row]:
    for name, fault, ends in (
        ("401 from the gateway", faults.unauthorized, errors.AuthenticationError),
        (
            "403 from the gateway",
            says(403, '{"Message":"explicit deny"}', JSON),
            errors.AuthenticationError,
        ),
        ("401 in HTML", says(401, PAGE, HTML), errors.AuthenticationError),
        ("407", says(407, PAGE, HTML), errors.ConnectError),
        ("413", says(413, PAGE, HTML), errors.InvalidRequestError),
        ("400/19", envelope(400, 19, data={"title": "is too long"}), errors.InvalidRequestError),
        ("400/44", envelope(400, 44), errors.InvalidRequestError),
        ("400/104", envelope(400, 104), errors.InvalidRequestError),
        ("403/53", envelope(403, 53), errors.ViewProtectionError),
        ("403/61", envelope(403, 61), errors.QuotaExceededError),
        ("403/78", envelope(403, 78), errors.MissingScopeError),
        ("403/98", envelope(403, 98), errors.ApiAccessError),
        ("403/100", envelope(403, 100), errors.KeyAllowanceError),
        ("403 with an unknown code", envelope(403, 4_711), errors.PermissionDeniedError),
        ("409/105", envelope(409, 105), errors.IdempotencyConflictError),
        # It would have to wait for longer than there is time: every answer was 429, so nothing
        # changed.
        (
            "429 for three years",
            envelope(429, 107, {"Retry-After": "99999999"}),
            errors.RateLimitError,
        ),
        (
            "429 until next year",
            envelope(429, 107, {"Retry-After": in_a_year()}),
            errors.RateLimitError,
        ),
    ):
        yield final(name, fault, ends)
    # What answered was not the service: what it did is not known, so the entry stays.
    for status in (301, 302, 303, 307, 308):
        yield final(
            f"a redirect ({status})", redirects(status), errors.ProtocolError, shares=1, kept=True
        )
    for name, fault in (
        ("404 in HTML", says(404, PAGE, HTML)),
        ("400 in HTML", says(400, PAGE, HTML)),
        ("418", says(418, commits=True)),
    ):
        yield final(name, fault, errors.ProtocolError, shares=int("418" in name), kept=True)


def _slow() -> Iterable[Row]:
    for name, fault in (
        ("a drip-fed head", faults.drips_head),
        ("a drip-fed body", faults.drips_body),
        ("an answer that never comes", faults.holds),
    ):
        yield Row(
            name,
            (),
            fault,
            errors.OutcomeUnknownError,
            kept=True,
            shares=1,
            sent=(1, 1),
            deadline=SILENT,
        )


def _stories() -> Iterable[Row]:
    yield recovers(
        "409/106 twice, then the replay", envelope(409, 106, commits=True), envelope(409, 106)
    )
    yield recovers(
        "429, a reset, 106 and half a body, then the replay",
        envelope(429, 107, {"Retry-After": "0"}),
        faults.reset_after,
        envelope(409, 106),
        faults.half_body,
    )
    # Once an answer was lost, only an answer that proves the opposite ends the uncertainty.
    lost: dict[str, tuple[Fault, tuple[int, int]]] = {
        "401": (faults.unauthorized, (2, 2)),
        "403/78": (envelope(403, 78), (2, 2)),
        "429": (envelope(429, 107), (5, 5)),
        "429 for three years": (envelope(429, 107, {"Retry-After": "99999999"}), (2, 2)),
        "407": (says(407), (2, 2)),
        "413 from a proxy": (says(413, PAGE, HTML), (2, 2)),
        "400/104, which stands before the replay": (envelope(400, 104), (2, 2)),
    }
    for name, (fault, sent) in lost.items():
        yield story(
            f"an answer lost, then {name}",
            faults.reset_after,
            then=fault,
            ends=errors.OutcomeUnknownError,
            kept=True,
            shares=1,
            sent=sent,
        )
    yield story(
        "an answer lost, then nobody listens",
        faults.refuses_on,
        ends=errors.OutcomeUnknownError,
        kept=True,
        shares=1,
        sent=(1, 1),
    )
    yield story(
        "an answer lost, then a redirect",
        faults.reset_after,
        then=redirects(302),
        ends=errors.ProtocolError,
        kept=True,
        shares=1,
        sent=(2, 2),
    )
    # Validation and plan are looked at after the replay: they prove that the lost one was not
    # carried out.
    proofs: dict[str, tuple[Fault, type[errors.SealpipeError]]] = {
        "400/19": (envelope(400, 19, data={"title": "is too long"}), errors.InvalidRequestError),
        "403/61": (envelope(403, 61), errors.QuotaExceededError),
        "409/105": (envelope(409, 105), errors.IdempotencyConflictError),
    }
    for name, (fault, ends) in proofs.items():
        yield story(
            f"a request lost, then {name}",
            faults.reset_before,
            then=fault,
            ends=ends,
            kept=False,
            shares=0,
            sent=(2, 2),
        )


def _both(transients: Iterable[Transient]) -> Iterable[Row]:
    """Each fault once, and again without end."""
    for name, fault, shares, ends in transients:
        yield recovers(f"{name}, once", fault)
        yield lasts(
            f"{name}, for ever", fault, ends, shares=shares, kept=ends is not errors.RateLimitError
        )


ROWS: tuple[Row, ...] = (
    recovers("no fault at all"),
    Row(
        "an interim answer before the real one",
        (),
        faults.interim,
        None,
        kept=False,
        shares=1,
        sent=(1, 1),
    ),
    *_both(TRANSIENT),
    *_refusals(),
    *_slow(),
    *_stories(),
    Row(
        "a refused connection",
        (),
        passes,
        errors.ConnectError,
        kept=False,
        shares=0,
        sent=(0, 0),
        listens=False,
    ),
)
"""For the command line and for both clients."""

FINER: tuple[Row, ...] = tuple(_both(UNCLEAR_FINER + BROKEN_FINER + LIMITED_FINER))
"""For both clients, which cost no process each."""
