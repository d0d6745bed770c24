"""Whatever a stranger may submit, and what a service may say beside it: strategies of hypothesis.

A stranger knows the request's public key, so that any bytes can be sealed to it; a service that is
not to be trusted chooses codes and times. No strategy looks at the code under test: what is an
array of fields is known by construction.
"""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from sealpipe.wire import encoding, keys, sealed_box

MANY = settings(
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""Settings of long runs, to start from: `settings(MANY, max_examples=...)`.

Each case may take its time.
"""

SHRUNK = settings(MANY, phases=[Phase.generate, Phase.shrink])
"""The same, and a failing case is made small."""

PASSWORD, USER = "Staging password", "User name"
"""What is asked for; the ids are `staging_password` and `user`."""
CANARY, LABEL = "zQ.7v", "Lb.3x"
"""In most values and in most labels of the submitter's own: neither may be where values or labels
do not belong.

No base64 holds them by chance.
"""

NASTY = (
    "LD_PRELOAD", "PATH", "BASH_ENV", "__proto__", "constructor", "index.json", "field-1",
    "staging_password", "../../x", "..", ".", "/", "/etc/passwd", "a/b", "~root", "~/x", "C:\\x",
    "-rf", "--", "CON", "x\0y", "\0", "a\nb", "\n", "\r\n", "\r", "x\n::add-mask::y",
    "::add-mask::x", " ::error::x", "\t::x", "\u00a0::stop-commands::t", "::", "##[error]x",
    "##vso[task.setvariable variable=a]b", "x ##[group]y", "###[x", "##teamcity[x]", "##utp:x",
    "--- x", "+++ x", "section_start:1:a\r\x1b[0K", "travis_fold:end:a", "# comment", "x #y", "EOF",
    "a<<EOF\nx\nEOF\nB=1", "<<EOF", "PASSWORD=other", "x\nPASSWORD=other", "export X=1",
    "A=1\nLD_PRELOAD=/x.so", "$(touch pwned)", "`touch pwned`", "${IFS}", "$PATH", "$", "$$",
    "$'\\x41'", '"', "'", "\\", "\\n", "%0A", "%s%n", "; touch pwned", "| touch pwned",
    "&& touch pwned", "&", "> pwned", "*", "?", "[a", "{a,b}", "!!", "!", "(", ")",
    "=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "-1", "{{ x }}", "{{ssm:/x}}", "${{ secrets.X }}",
    "{submission}", "\x1b[31mred", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\link", "\x1b[2J",
    "\x9b31m", "\x9d0;t\x9c", "\x08\x08", "\x7f", "\x85", "\x07", "\u2028", "\u2029",
    "\u202e gpj.exe", "\u2066x\u2069", "\u200b", "\ufeff", "\ufffe", "é", "e\u0301", "ﬁ", "İ",
    "\U0001f511", "\U0010ffff", "日本", " ", "\t", " lead", "trail ", "\u3000", "null", "true",
    "NaN", "0", "1e999", "[]", "{}", '{"a":1}', '"}],"x":[{"', "<script>alert(1)</script>", "';--",
    "a=b", "a=b=c", "=", "==", "#", "#key", "x?y=z", "a,b", "a:b", "http://x/#1abc",
    "vault:secret/x#y",
)  # fmt: skip
_PLAIN = "ABCXYZabcxyz0189._-"
_JOINED = st.lists(st.sampled_from(NASTY), min_size=2, max_size=4).map("".join)
_LONG = st.builds(lambda text, size: (text * size)[:size],
    st.sampled_from(("a", "é", "\n", "A=", "../", "\x1b[m")),
                  st.sampled_from((254, 255, 256, 300, 4095, 4096, 5000)))  # fmt: skip
_HUGE = st.sampled_from(("a" * 70_000, "é" * 40_000, "x\n" * 40_000))
plain_texts = st.text(_PLAIN, min_size=8, max_size=30)
texts = st.one_of(
    st.sampled_from(NASTY),
    st.sampled_from(NASTY),
    _JOINED,
    st.text(max_size=12),
    plain_texts,
    _LONG,
)
"""Any text that JSON can hold, and mostly what somebody would choose."""


class Hostile(NamedTuple):
    """What is sealed, and the fields that it is: key, value, type; None where it is no array of
    fields.

    `spoilt` says what becomes of the sealed box: empty for nothing.
    """

    payload: bytes
    fields: tuple[tuple[str, str, str], ...] | None
    spoilt: str = ""

    def __repr__(self) -> str:
        shown, whole = repr(self.payload[:150]), len(self.payload)
        return (
            f"<{self.spoilt or 'sealed'} "
            f"{shown}{f' and more, {whole} bytes' if whole > 150 else ''}>"
        )


class Row(NamedTuple):
    """A submission as a service hands it out: any code, any time that is one."""

    sent: Hostile
    short_code: str | None
    created_at: str | None


# -- arrays of fields ---------------------------------------------------------------------------

_values = st.one_of(
    plain_texts,
    plain_texts.map(lambda text: f"{text}{CANARY}"),
    texts.map(lambda text: f"{text}{CANARY}"),
    texts.map(lambda text: f"{CANARY}{text}"),
    texts,
)
_COMMANDS = (
    "::add-mask::x",
    "::",
    ":",
    "::stop-commands::t",
    "##[group]",
    "##vso[x]y",
    "##teamcity[",
    "--- ",
    "section_end:1:x",
    "a\n::x",
    "\x1b[2J::x",
)
_labels = st.one_of(
    st.sampled_from(_COMMANDS).map(lambda text: f"{text}{LABEL}"),
    texts.map(lambda text: f"{text}{LABEL}"),
    texts,
    st.sampled_from(("password", "user", "")),
)
_types = st.one_of(st.sampled_from(("password", "text", "multiline", "qr")), st.sampled_from(NASTY))
_others = st.lists(st.tuples(_labels, _values, _types), max_size=3)
_given = st.one_of(_values, _values, _values, _values, _HUGE)


@st.composite
def _answers(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """Both prompts answered, somehow, with fields of the submitter's own before, between and
    after.
    """
    own = draw(_others)
    rows = [(PASSWORD, draw(_given), "password"), *own[:1], (USER, draw(_values), "text"), *own[1:]]
    return rows[::-1] if draw(st.booleans()) else rows


@st.composite
def _plain_answers(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """What every store of ours can hold."""
    return [
        (PASSWORD, draw(plain_texts), "password"),
        (USER, draw(plain_texts), "text"),
        *draw(_others),
    ]


@st.composite
def _odd_answers(draw: st.DrawFn) -> list[tuple[str, str, str]]:
    """A prompt answered twice, differently or alike, emptily, or by something that only looks like
    it.
    """
    value, near = (
        draw(_values),
        (PASSWORD.lower(), f"{PASSWORD} ", f"{PASSWORD}\0", PASSWORD, PASSWORD),
    )
    rows = [
        (PASSWORD, value, "password"),
        (draw(st.sampled_from(near)), draw(st.sampled_from((value, "", "x"))), "x"),
    ]
    rows += [(USER, draw(st.sampled_from(("", "bob", value))), "text")] * draw(
        st.sampled_from((0, 1, 1, 2))
    )
    return rows[draw(st.sampled_from((0, 0, 0, 1))) :]


def _crowd(count: int, label: str, value: str) -> list[tuple[str, str, str]]:
    rows = [(PASSWORD, "swordfish-9", "password"), (USER, "bob.builder", "text")]
    return rows + [
        (f"{label}{number % 7}{LABEL}", f"{value}{CANARY}", "text") for number in range(count - 2)
    ]


_crowds = st.builds(
    _crowd,
    st.sampled_from((999, 1000, 1001, 10_000)),
    st.sampled_from(NASTY),
    st.sampled_from(NASTY),
)
_any_fields = st.lists(st.tuples(_labels, _given, _types), max_size=6)


@st.composite
def _arrays(draw: st.DrawFn, rows: st.SearchStrategy[list[tuple[str, str, str]]]) -> Hostile:
    found = draw(rows)
    more: dict[str, Any] = draw(
        st.sampled_from(
            (
                {},
                {},
                {},
                {"filename": "../../x"},
                {"__proto__": {"a": [None, 1.5]}, "": "::x"},
                {"a\n": NASTY},
            )
        )
    )
    escaped, separators = (
        draw(st.booleans()),
        draw(st.sampled_from(((",", ":"), (" ,\r\n", " : ")))),
    )
    items = [{"key": key, "value": value, "type": kind, **more} for key, value, kind in found]
    return Hostile(
        json.dumps(items, ensure_ascii=escaped, separators=separators).encode(), tuple(found)
    )


# -- what is none -------------------------------------------------------------------------------


def _field(key: str = '"k"', value: str = '"v"', more: str = "") -> bytes:
    return f'[{{"key":{key},"value":{value},"type":"text"{more}}}]'.encode("utf-8", "surrogatepass")


_NO_TEXT = ("null", "true", "1", "1.5e3", "[]", '["a"]', "{}", '{"a":"b"}')
_NONE = (
    b"", b" ", b"null", b"true", b"0", b"-1e9", b'"text"', b"{}", b"[null]", b"[1]", b'["a"]',
    b"[[]]", b"[{}]",
    b"[[{}]]", b"NaN", b"[NaN]", b"[Infinity]", b"[-Infinity]", b"[1e999]", b"[1e-999999999]",
    b"[01]",
    b"[" + b"9" * 5000 + b"]",
    b"[" * 100_000, b'{"a":' * 50_000, b"[" * 101 + b"]" * 101, b"[" * 5000 + b"]" * 5000,
    b'[{"key":"k"}]',
    b'[{"label":"k","value":"v","type":"t"}]', b'{"key":"k","value":"v","type":"t"}',
    b'[{"key":"k","value":"v"}]',
    b"\xff\xfe[\0]\0", b"\xef\xbb\xbf[]", b"[]]", b"[],", b"[,]", b"[] x", b"[]\0", b"[{]", b"\x80",
    b"[\"\xed\xa0\x80\"]", b'[{"key":"k","value":"\xff","type":"t"}]',
    b'[{"key":"k","value":"a\nb","type":"t"}]',
    b"['a']", b"// x\n[]",
    *(_field(key=text) for text in _NO_TEXT), *(_field(value=text) for text in _NO_TEXT),
    _field(value='"\\ud800"'), _field(key='"\\udfff"'), _field(value='"\\ud800x\\udc00"'),
    _field(value='"\ud800"'),
    _field(more=',"\\udc00":1'), _field(more=',"x":["\\ud800"]'),
    _field(more=',"key":"again"'), _field(more=',"value":"again"'),
    _field(more=',"a":{"b":1,"b":2}'),
    _field(more=',"\\u006bey":"again"'), _field(more=',"a":NaN'),
    _field(more=f',"a":{"[" * 99}{"]" * 99}'),
    (
        f'[{{"key":"{PASSWORD}","value":1,"type":"password"}},'
        f'{{"key":"{USER}","value":"bob","type":"text"}}]'
    ).encode(),
)  # fmt: skip


@st.composite
def _cut(draw: st.DrawFn) -> Hostile:
    """An array that is cut, or has one byte that no UTF-8 has."""
    whole = draw(_arrays(_plain_answers())).payload
    at = draw(st.integers(1, len(whole) - 2))
    return Hostile(whole[:at] if draw(st.booleans()) else whole[:at] + b"\xff" + whole[at:], None)


_none = st.one_of(
    st.sampled_from(_NONE).map(lambda payload: Hostile(payload, None)),
    st.sampled_from(_NONE).map(lambda payload: Hostile(payload, None)),
    _cut(),
    # No JSON begins with these bytes.
    st.binary(max_size=60).map(lambda tail: Hostile(b"\xfe" + tail, None)),
)

SPOILT = (
    "no base64",
    "nothing",
    "null",
    "cut",
    "longer",
    "another key",
    "another version",
    "short",
    "off the curve",
)
_spoilt = st.builds(
    lambda sent, how: sent._replace(spoilt=how, fields=None),
    _arrays(_plain_answers()),
    st.sampled_from(SPOILT),
)

_KINDS: tuple[tuple[int, st.SearchStrategy[Hostile]], ...] = (
    (40, _arrays(_answers())),
    (16, _arrays(_plain_answers())),
    (10, _arrays(_odd_answers())),
    (10, _arrays(_any_fields)),
    (16, _none),
    (6, _spoilt),
    (1, _arrays(_crowds)),
)


def submissions(crowds: int = 8) -> st.SearchStrategy[Hostile]:
    """One of every kind; every so often (one of about 90 times `crowds`) one of 1,000 or 10,000
    fields.
    """
    table = [kind for weight, kind in _KINDS[:-1] for _ in range(weight * crowds)] + [_KINDS[-1][1]]
    random.Random(1).shuffle(table)  # noqa: S311  # hypothesis likes what comes first
    return st.sampled_from(range(len(table))).flatmap(table.__getitem__)


# -- what the service says beside it ------------------------------------------------------------

_CODES = (
    *NASTY,
    "",
    "\ud800",
    "\udfff::x",
    "x" * 300,
    "same",
    "same",
    "submission",
    "only",
    "newest",
)
codes = st.one_of(st.text(_PLAIN, min_size=1, max_size=12), st.sampled_from(_CODES), st.none())
TIMES = (
    None, "2026-11-21T10:00:00Z", "2026-11-21T10:00:00.123456789+14:00", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2026-11-21 10:00:00-23:59",
)  # fmt: skip
NO_TIMES: tuple[Any, ...] = (
    "yesterday", "::add-mask::x", "\x1b[31m2026-11-21T10:00:00Z", "2026-11-21T10:00:00",
    "2026-02-30T10:00:00Z", "", 0,
    1.5, [], {}, True, "0001-01-01T00:00:00+23:00", "\uff19999-12-31T23:59:59Z",
    "2026-11-21T10:00:00Z\n", "\ud800",
)  # fmt: skip
rows = st.builds(Row, submissions(), codes, st.sampled_from(TIMES))


# -- the box that it comes in --------------------------------------------------------------------

_OTHER = keys.from_seed(bytes(range(1, 33)))


def sealed(sent: Hostile, public_key: bytes) -> str | None:
    """The box, and what became of it."""
    to = _OTHER.public_key if sent.spoilt == "another key" else public_key
    data = sealed_box.seal(to, sent.payload)
    raw = encoding.decode_base64(data)
    spoilt: dict[str, str | None] = {
        "no base64": "::add-mask::\x1b[31m",
        "nothing": "",
        "null": None,
        "cut": data[: len(data) // 8 * 4],
        "longer": encoding.encode_base64(raw + b"x"),
        "another version": encoding.encode_base64(b"\2" + raw[1:]),
        "short": encoding.encode_base64(raw[:40]),
        "off the curve": encoding.encode_base64(raw[:20] + bytes(40) + raw[60:]),
    }
    return spoilt.get(sent.spoilt, data)
