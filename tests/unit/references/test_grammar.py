"""What each form of a reference means, and how it is printed."""

from __future__ import annotations

import pytest

from sealpipe.errors import ReferenceSyntaxError
from sealpipe.reference import (
    Everything,
    FieldSpec,
    Key,
    Pointer,
    Reference,
    parse,
    parse_field,
    parse_target,
)


def _typed(label: str, name: str, body: str, kind: str) -> FieldSpec:
    return FieldSpec(label, Reference(name, body, (("type", kind),)))


# text, its exact value, its canonical text (None: the text itself)
DESIGN = [
    ("env:DB_PASSWORD", FieldSpec(None, Reference("env", "DB_PASSWORD")), None),
    (
        "Root password=vault:secret/app/db?version=3#password",
        FieldSpec(
            "Root password",
            Reference("vault", "secret/app/db", (("version", "3"),), (Key("password"),)),
        ),
        None,
    ),
    (
        "k8s:prod/tls#cert.pem=tls.crt,tls.key",
        FieldSpec(
            None, Reference("k8s", "prod/tls", (), (Key("tls.crt", "cert.pem"), Key("tls.key")))
        ),
        None,
    ),
    (
        "file:deploy.pem?type=multiline",
        FieldSpec(None, Reference("file", "deploy.pem", (("type", "multiline"),))),
        None,
    ),
    (
        "aws-sm:arn:aws:secretsmanager:eu-west-1:1:secret:db#/conn/0/pw",
        FieldSpec(
            None,
            Reference(
                "aws-sm",
                "arn:aws:secretsmanager:eu-west-1:1:secret:db",
                (),
                (Pointer(("conn", "0", "pw")),),
            ),
        ),
        None,
    ),
    (
        "op://Vault/Item/field",
        FieldSpec(None, Reference("op", "Vault/Item/field")),
        "op:Vault/Item/field",
    ),
    (
        "gen:password?length=24",
        FieldSpec(None, Reference("gen", "password", (("length", "24"),))),
        None,
    ),
    ("stdin:", FieldSpec(None, Reference("stdin")), None),
    ("text:deploy-bot", FieldSpec(None, Reference("text", "deploy-bot")), None),
    (
        "vault:secret/vendor/acme#password=Staging password",
        FieldSpec(
            None,
            Reference("vault", "secret/vendor/acme", (), (Key("Staging password", "password"),)),
        ),
        None,
    ),
]

FINER = [
    ('"a=\\"b\\\\"=env:X', FieldSpec('a="b\\', Reference("env", "X")), None),
    ('"A note: it"=env:X', FieldSpec("A note: it", Reference("env", "X")), None),
    ('"Note:it"=env:X', FieldSpec("Note:it", Reference("env", "X")), None),
    ("A note: it=env:X", FieldSpec("A note: it", Reference("env", "X")), '"A note: it"=env:X'),
    ('"Login page:url"=env:X', FieldSpec("Login page:url", Reference("env", "X")), None),
    (
        "Login page:url=text:https://x",
        _typed("Login page", "text", "https://x", "url"),
        "Login page=text:https://x?type=url",
    ),
    ("Login:text=env:X", _typed("Login", "env", "X", "text"), "Login=env:X?type=text"),
    ("a:b:text=env:X", _typed("a:b", "env", "X", "text"), '"a:b"=env:X?type=text'),
    (
        "Script:source_code=file:x?lang=sh#k",
        FieldSpec(
            "Script", Reference("file", "x", (("lang", "sh"), ("type", "source_code")), (Key("k"),))
        ),
        "Script=file:x?lang=sh&type=source_code#k",
    ),
    # A body that reads like a label's type is written with the // that a name may have.
    ("text://url=env:b", FieldSpec(None, Reference("text", "url=env:b")), None),
    ("text:url=b", FieldSpec(None, Reference("text", "url=b")), None),
    ("env:a=env:b", FieldSpec(None, Reference("env", "a=env:b")), None),
    ("C:\\x=env:X", FieldSpec("C:\\x", Reference("env", "X")), '"C:\\\\x"=env:X'),
    ("50%=env:X", FieldSpec("50%", Reference("env", "X")), None),
    (" =env:X", FieldSpec(" ", Reference("env", "X")), None),
    ("Пароль=env:X", FieldSpec("Пароль", Reference("env", "X")), None),
    ("file:///etc/x", FieldSpec(None, Reference("file", "/etc/x")), "file:/etc/x"),
    ("file:////x", FieldSpec(None, Reference("file", "//x")), None),
    ("file:a b&c=d,e:f", FieldSpec(None, Reference("file", "a b&c=d,e:f")), None),
    ("file:50%25%3f%23", FieldSpec(None, Reference("file", "50%?#")), "file:50%25%3F%23"),
    (
        "gen:x?a=b=c%26%3F%25%23&b=",
        FieldSpec(None, Reference("gen", "x", (("a", "b=c&?%#"), ("b", "")))),
        None,
    ),
    ("env:A#*", FieldSpec(None, Reference("env", "A", (), (Everything(),))), None),
    ("env:A#*,x", FieldSpec(None, Reference("env", "A", (), (Everything(), Key("x")))), None),
    (
        "env:A#%2Aa,%2Fb,a/*",
        FieldSpec(None, Reference("env", "A", (), (Key("*a"), Key("/b"), Key("a/*")))),
        None,
    ),
    ("env:A#a%2Cb=c%3Dd", FieldSpec(None, Reference("env", "A", (), (Key("c=d", "a,b"),))), None),
    (
        'env:A#"a,b"="c=d"',
        FieldSpec(None, Reference("env", "A", (), (Key("c=d", "a,b"),))),
        "env:A#a%2Cb=c%3Dd",
    ),
    ('env:A#"/x%"', FieldSpec(None, Reference("env", "A", (), (Key("/x%"),))), "env:A#%2Fx%25"),
    ('env:A#""', FieldSpec(None, Reference("env", "A", (), (Key(""),))), None),
    ("env:A#a.b#c?d", FieldSpec(None, Reference("env", "A", (), (Key("a.b#c?d"),))), None),
    ("env:A#/", FieldSpec(None, Reference("env", "A", (), (Pointer(("",)),))), None),
    (
        "env:A#/a~1b/m~0n//0",
        FieldSpec(None, Reference("env", "A", (), (Pointer(("a/b", "m~n", "", "0")),))),
        None,
    ),
    (
        "env:A#pw=/c/0",
        FieldSpec(None, Reference("env", "A", (), (Pointer(("c", "0"), "pw"),))),
        None,
    ),
    ("X=env:A#/c/a%2Cb", FieldSpec("X", Reference("env", "A", (), (Pointer(("c", "a,b")),))), None),
    ("prod-vault.eu_1:x", FieldSpec(None, Reference("prod-vault.eu_1", "x")), None),
]


@pytest.mark.parametrize(("text", "value", "canonical"), DESIGN + FINER)
def test_a_reference_means_exactly_this(text: str, value: FieldSpec, canonical: str | None) -> None:
    spec = parse_field(text)
    assert spec == value
    assert str(spec) == (canonical or text)
    assert parse_field(str(spec)) == spec


def test_a_reference_alone_has_no_label() -> None:
    assert parse("vault:a?x=1#b") == Reference("vault", "a", (("x", "1"),), (Key("b"),))
    with pytest.raises(ReferenceSyntaxError):
        parse("Label=vault:a")


def test_parameters_are_found_by_name() -> None:
    ref = parse("env:A?trim=1&optional=0")
    assert (ref.param("trim"), ref.flag("trim"), ref.flag("optional")) == ("1", True, False)
    assert ref.param("decode", "none") == "none"


@pytest.mark.parametrize("text", ["slack:#ops", "email:a@b.example?cc=x", "webhook://host/%zz"])
def test_everything_after_a_channels_colon_is_its_own(text: str) -> None:
    target = parse_target(text)
    assert str(target) == text
    assert target.to == text.partition(":")[2]


def test_a_channel_without_a_name_is_refused() -> None:
    with pytest.raises(ReferenceSyntaxError, match="the channel is not a reference"):
        parse_target("#ops")
