"""`sealpipe run -e 'PREFIX_*=REF#*'`: a variable for each key of a document.

Who can write to the document chooses the keys: they are hostile.
"""

from __future__ import annotations

import json

import pytest

from support.terminal import Terminal

SECRET = "canary-of-a-key"
DOCUMENT = json.dumps({"user": "ada", "db-password": SECRET, "tls.crt": "x\ny", "Port": 5432})
EVERY = ("-e", "APP_*=env:DOCUMENT?format=json#*")
PRINT = ("--", "sh", "-c", "env | grep ^APP_ | sort")


def test_each_key_becomes_a_variable_in_upper_case(bare: Terminal) -> None:
    done = bare.sealpipe("run", *EVERY, "--no-redact", *PRINT, DOCUMENT=DOCUMENT)
    assert done.code == 0, done
    assert done.out.splitlines() == [
        f"APP_DB_PASSWORD={SECRET}",
        "APP_PORT=5432",
        "APP_TLS_CRT=x",
        "APP_USER=ada",
    ]


def test_each_value_is_redacted(bare: Terminal) -> None:
    done = bare.sealpipe("run", *EVERY, *PRINT, DOCUMENT=DOCUMENT)
    assert "APP_DB_PASSWORD=***" in done.out.splitlines()
    assert SECRET not in done.out + done.err


def test_keys_can_be_chosen_and_renamed_and_stand_in_a_file(bare: Terminal) -> None:
    bare.file("refs.env", "# of the team\nAPP_*=env:DOCUMENT?format=json#login=user,Port\n")
    words = ("run", "--env-file", "refs.env")
    done = bare.sealpipe(*words, "--no-redact", *PRINT, DOCUMENT=DOCUMENT)
    assert done.out.splitlines() == ["APP_LOGIN=ada", "APP_PORT=5432"]
    done = bare.sealpipe(*words, "--check", DOCUMENT=DOCUMENT)
    assert done.out.splitlines() == [
        "APP_LOGIN\tthere\tof the team",
        "APP_PORT\tthere\tof the team",
    ]


@pytest.mark.parametrize(
    ("document", "words", "says"),
    [
        ({"PRELOAD": SECRET}, ("-e", "LD_*=env:DOCUMENT?format=json#*"), "LD_* may not come from"),
        (
            {"external-diff": SECRET},
            ("-e", "GIT_*=env:DOCUMENT?format=json#*"),
            "GIT_EXTERNAL_DIFF may not come from a store: git would obey it",
        ),
        (
            {"config_file": SECRET},
            ("-e", "AWS_*=env:DOCUMENT?format=json#*"),
            "AWS_CONFIG_FILE may not be a key of a document",
        ),
        ({"a-b": SECRET, "A_B": SECRET}, EVERY, "APP_A_B is given twice"),
        ({"a": SECRET}, (*EVERY, "-e", "APP_A=env:DOCUMENT"), "APP_A is given twice"),
        ({"a": SECRET}, ("-e", "APP_A=env:DOCUMENT", *EVERY), "APP_A is given twice"),
        ({"a": SECRET}, ("-e", "*=env:DOCUMENT?format=json#*"), "* has no prefix"),
        ({"a": SECRET}, ("-e", "A_*=env:DOCUMENT?format=json"), "A_*: the reference selects"),
        ({"a": SECRET}, ("--file", "A_*=env:DOCUMENT?format=json#*"), "not NAME=REF"),
        ({"a": SECRET}, ("-e", "A*_=env:DOCUMENT?format=json#*"), "not NAME=REF"),
        ({"a": {"b": SECRET}}, EVERY, "is a map, not a value"),
        ({}, EVERY, "is a map without any key"),
        ({"a": ""}, EVERY, "is empty"),
    ],
)  # fmt: skip
def test_a_name_that_may_not_be_starts_nothing(
    bare: Terminal, document: object, words: tuple[str, ...], says: str
) -> None:
    done = bare.sealpipe("run", *words, "--", "touch", "ran", DOCUMENT=json.dumps(document))
    assert done.code in (2, 14), done
    assert says in done.err
    assert SECRET not in done.out + done.err
    assert not (bare.here / "ran").exists()


def test_the_check_has_a_row_for_each_key_and_one_for_what_cannot_be_read(bare: Terminal) -> None:
    words = ("run", "--check", *EVERY, "-e", "B_*=env:NOT_SET?format=json#*")
    left_out = ("-e", "C_*=env:NOT_SET?format=json&optional=1#*")
    done = bare.sealpipe(*words, *left_out, DOCUMENT=DOCUMENT)
    assert [line.split("\t")[:2] for line in done.out.splitlines()] == [
        ["APP_USER", "there"],
        ["APP_DB_PASSWORD", "there"],
        ["APP_TLS_CRT", "there"],
        ["APP_PORT", "there"],
        ["B_*", "unreadable"],
        ["C_*", "left out"],
    ]
    assert done.code == 14
