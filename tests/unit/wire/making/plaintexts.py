"""Arrays of fields, read and written."""

from __future__ import annotations

import json
from collections.abc import Iterator

from unit.wire.making.primitives import PLAINTEXT, Vector, vector

REST = '"value":"v","type":"text"'
DEEP = "[" * 98 + "]" * 98
BOTTOMLESS = "[" * 20_000 + "]" * 20_000
READ = [
    ("no fields", "[]", "success"),
    ("one field", PLAINTEXT, "success"),
    ("an unknown type", '[{"key":"k","value":"v","type":"hologram"}]', "success"),
    ("empty texts", '[{"key":"","value":"","type":""}]', "success"),
    ("members in another order", '[{"type":"text","x":1,"value":"v","key":"k"}]', "success"),
    (
        "numbers of any spelling",
        '[{"key":"k",<rest>,"x":[1.0,1e3,-0,1E400,12345678901234567890,0.10]}]',
        "success",
    ),
    ("a file name of null is no file name", '[{"filename":null,"key":"k",<rest>}]', "success"),
    ("a label beside the key", '[{"label":"l","key":"k",<rest>}]', "success"),
    (
        "controls as a browser writes them",
        r'[{"key":"k","value":"\u0000\b\t\n\u000b\f\r\u001f\"\\","type":"t"}]',
        "success",
    ),
    (
        "U+2028, DEL and slashes as they are",
        '[{"key":"k","value":"\u2028\u2029\x7f/","type":"t"}]',
        "success",
    ),
    ("a hundred levels", f'[{{"key":"k",<rest>,"x":{DEEP}}}]', "success"),
    ("a hundred and one levels", f'[{{"key":"k",<rest>,"x":[{DEEP}]}}]', "too-deep"),
    (
        "a hundred and one levels of objects",
        '[{"key":"k",<rest>,"x":' + '{"a":' * 99 + "1" + "}" * 99 + "}]",
        "too-deep",
    ),
    ("twenty thousand levels", f'[{{"key":"k",<rest>,"x":{BOTTOMLESS}}}]', "too-deep"),
    ("label for key", '[{"label":"k",<rest>}]', "label-not-key"),
    ("name for key", '[{"name":"k",<rest>}]', "label-not-key"),
    ("title for key", '[{"title":"k",<rest>}]', "label-not-key"),
    ("no key", "[{<rest>}]", "missing-key"),
    ("key with a capital", '[{"Key":"k",<rest>}]', "missing-key"),
    ("no key in the second field", '[{"key":"k",<rest>},{<rest>}]', "missing-key"),
    ("no value", '[{"key":"k","type":"text"}]', "missing-value"),
    ("no type", '[{"key":"k","value":"v"}]', "missing-type"),
    ("a key of null", '[{"key":null,<rest>}]', "bad-key"),
    ("a key that is a number", '[{"key":1,<rest>}]', "bad-key"),
    ("a value that is a number", '[{"key":"k","value":1,"type":"text"}]', "bad-value"),
    ("a value of null", '[{"key":"k","value":null,"type":"text"}]', "bad-value"),
    ("a value that is an array", '[{"key":"k","value":["v"],"type":"text"}]', "bad-value"),
    ("a type of false", '[{"key":"k","value":"v","type":false}]', "bad-type"),
    ("a type of null", '[{"key":"k","value":"v","type":null}]', "bad-type"),
    ("an object", '{"key":"k",<rest>}', "not-an-array"),
    ("a text", '"[]"', "not-an-array"),
    ("null", "null", "not-an-array"),
    ("an array of text", '["key"]', "not-an-object"),
    ("an array of arrays", "[[]]", "not-an-object"),
    ("an array of null", "[null]", "not-an-object"),
    ("nothing", "", "not-json"),
    ("a space alone", " ", "not-json"),
    ("a comma behind the last field", '[{"key":"k",<rest>},]', "not-json"),
    ("a comma behind the last member", '[{"key":"k",<rest>,}]', "not-json"),
    ("a comma missing", '[{"key":"k" <rest>}]', "not-json"),
    ("the end missing", '[{"key":"k",<rest>}', "not-json"),
    ("text after the end", "[]]", "not-json"),
    ("two arrays", "[][]", "not-json"),
    ("single quotes", "[{'key':'k',<rest>}]", "not-json"),
    ("a name without quotes", '[{key:"k",<rest>}]', "not-json"),
    ("a comment", '[{"key":"k",<rest>}/* */]', "not-json"),
    ("a raw line break in a value", '[{"key":"k","value":"a\nb","type":"text"}]', "not-json"),
    ("a raw NUL in a value", '[{"key":"k","value":"a\0b","type":"text"}]', "not-json"),
    ("an escape that there is not", '[{"key":"k","value":"\\x41","type":"text"}]', "not-json"),
    ("an escape of three digits", '[{"key":"k","value":"\\u041","type":"text"}]', "not-json"),
    ("a byte-order mark", "\ufeff[]", "not-json"),
    ("a no-break space between", "[\u00a0]", "not-json"),
    ("a leading zero", '[{"key":"k",<rest>,"x":01}]', "not-json"),
    ("a leading plus", '[{"key":"k",<rest>,"x":+1}]', "not-json"),
    ("a point without digits behind", '[{"key":"k",<rest>,"x":1.}]', "not-json"),
    ("a hexadecimal number", '[{"key":"k",<rest>,"x":0x1}]', "not-json"),
    ("a number in full-width digits", '[{"key":"k",<rest>,"x":\uff11}]', "not-json"),
    ("True as Python writes it", '[{"key":"k",<rest>,"x":True}]', "not-json"),
    ("NaN", '[{"key":"k",<rest>,"x":NaN}]', "not-finite"),
    ("Infinity", '[{"key":"k",<rest>,"x":Infinity}]', "not-finite"),
    ("negative Infinity", '[{"key":"k",<rest>,"x":-Infinity}]', "not-finite"),
    ("a member twice", '[{"key":"k",<rest>,"key":"k"}]', "duplicate-member"),
    ("a member twice, one escaped", '[{"key":"k",<rest>,"\\u006bey":"k"}]', "duplicate-member"),
    ("a member twice, further in", '[{"key":"k",<rest>,"x":{"a":1,"a":1}}]', "duplicate-member"),
    ("a lone high surrogate", '[{"key":"k","value":"\\ud83d","type":"text"}]', "lone-surrogate"),
    (
        "a surrogate pair the wrong way round",
        '[{"key":"k","value":"\\udd11\\ud83d","type":"text"}]',
        "lone-surrogate",
    ),
    (
        "a lone high surrogate in capitals",
        '[{"key":"k","value":"\\uDBFF","type":"text"}]',
        "lone-surrogate",
    ),
    (
        "a lone surrogate in a key",
        '[{"key":"\\udfff","value":"v","type":"text"}]',
        "lone-surrogate",
    ),
    ("a lone low surrogate in a name", '[{"key":"k",<rest>,"\\udc00":1}]', "lone-surrogate"),
    ("a lone surrogate further in", '[{"key":"k",<rest>,"x":["\\uDBFFx"]}]', "lone-surrogate"),
]
NOT_UTF8 = [
    ("Latin-1", f'[{{"key":"ä",{REST}}}]'.encode("latin-1")),
    ("a byte-order mark of UTF-16", b"\xff\xfe" + "[]".encode("utf-16-le")),
    ("a surrogate as UTF-8", b'[{"key":"\xed\xa0\x80",' + REST.encode() + b"}]"),
    (
        "a pair of surrogates as UTF-8",
        b'[{"key":"\xed\xa0\xbd\xed\xb4\x91",' + REST.encode() + b"}]",
    ),
    ("an overlong NUL", b'[{"key":"\xc0\x80",' + REST.encode() + b"}]"),
    ("an overlong quote", b'[{"key":"\xc0\xa2",' + REST.encode() + b"}]"),
    ("a character beyond U+10FFFF", b'[{"key":"\xf4\x90\x80\x80",' + REST.encode() + b"}]"),
    ("a character cut off", b'[{"key":"\xe2\x82",' + REST.encode() + b"}]"),
]
FIELD = '"key":"k","value":"v","type":"text"'
WRITTEN = [
    ("no fields", "[]", "success"),
    (
        "in the order of the format",
        '[{"type":"text","filename":"f","value":"v","key":"k"}]',
        "success",
    ),
    (
        "controls, quotes and letters",
        '[{"key":"ä\\u2028","value":"\\u0000\\u001f\\"\\\\/\\b\\f\\n\\r\\t🔑\\u007f","type":"t"}]',
        "success",
    ),
    (
        "line breaks and tabs",
        '[{"key":"\\r\\n","value":"a\\r\\tb\\n","type":"multiline"}]',
        "success",
    ),
    ("a key that is a number", '[{"key":1,"value":"v","type":"text"}]', "bad-key"),
    ("a value that is a number", '[{"key":"k","value":1,"type":"text"}]', "bad-value"),
    ("a value of null", '[{"key":"k","value":null,"type":"text"}]', "bad-value"),
    ("a type that is an array", '[{"key":"k","value":"v","type":[]}]', "bad-type"),
    (
        "a language that is a number",
        f'[{{{FIELD},"selectedProgrammingLanguage":1}}]',
        "bad-language",
    ),
    (
        "a language that is an array",
        f'[{{{FIELD},"selectedProgrammingLanguage":["c"]}}]',
        "bad-language",
    ),
    ("a file name that is a number", f'[{{{FIELD},"filename":1}}]', "bad-filename"),
    ("a file name that is an object", f'[{{{FIELD},"filename":{{}}}}]', "bad-filename"),
    (
        "half a surrogate pair in a key",
        '[{"key":"\\ud800","value":"v","type":"text"}]',
        "lone-surrogate",
    ),
    (
        "half a surrogate pair in a value",
        '[{"key":"k","value":"\\udfff","type":"text"}]',
        "lone-surrogate",
    ),
    (
        "half a surrogate pair in a file name",
        f'[{{{FIELD},"filename":"\\ud800"}}]',
        "lone-surrogate",
    ),
    ("half a surrogate pair in a member's name", f'[{{{FIELD},"\\udc00":1}}]', "lone-surrogate"),
    ("a number that is infinite", f'[{{{FIELD},"x":1e400}}]', "not-finite"),
    ("a number that is infinite, further in", f'[{{{FIELD},"x":[{{"y":-1e400}}]}}]', "not-finite"),
    ("a hundred and one levels", f'[{{{FIELD},"x":[{DEEP}]}}]', "too-deep"),
]


def expected(reason: str) -> str:
    return reason if reason == "success" else f"field {reason}"


def read() -> Iterator[Vector]:
    for comment, template, reason in READ:
        text = template.replace("<rest>", REST)
        triples = (
            [[item[name] for name in ("key", "value", "type")] for item in json.loads(text)]
            if reason == "success"
            else []
        )
        yield vector("fields", comment, expected(reason), text, {}, {"fields": triples})
    for comment, data in NOT_UTF8:
        yield vector("fields", comment, "field not-utf8", data, {}, {})


def written() -> Iterator[Vector]:
    names = ["key", "value", "type", "selectedProgrammingLanguage", "filename"]
    for comment, text, reason in WRITTEN:
        given = json.loads(text)
        ordered = [{name: item[name] for name in names if name in item} for item in given]
        result = json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))
        yield vector("write fields", comment, expected(reason), text, {}, {"plaintext": result})
