"""What real programs print of values: `python tests/unit/spellings/programs.py` prints how many
stay readable in it.

Each value is printed between BEGIN and END, but where it is encoded. Where a program cannot be a
part of the tests, what its documentation says stands for it: `escape_as`.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import string
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax import saxutils

import yaml

from sealpipe.run.redaction import Redactor
from sealpipe.spellings import Finder

SEAM: Final = "\n@@@\n"
NUMBER: Final = 40


def make_passwords(number: int = NUMBER) -> list[str]:
    """Random passwords of letters, digits and signs, a few with a blank or a letter that is not
    ASCII.
    """
    chance = random.Random(33)  # noqa: S311 - the same each time
    signs = string.ascii_letters + string.digits + string.punctuation
    passwords = [
        "".join(chance.choices(signs, k=chance.randint(12, 32))) for _ in range(number - 4)
    ]
    return [
        *passwords,
        "pass word & <more> words/42",
        'it\'s "quoted" \\ twice',
        "Zürich & größe+漢字",
        "a=b;c%41&amp;d\\n",
    ]


class Printed(NamedTuple):
    """What a program printed of each value, and whether BEGIN and END can be read in it."""

    records: list[bytes]
    is_plain: bool = True


def run(argv: Sequence[str], values: Iterable[str], environ: Mapping[str, str] = {}) -> list[bytes]:
    """What a program prints for a JSON array on stdin, record by record."""
    with tempfile.TemporaryDirectory() as home:
        variables = {"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8", **environ}
        text = json.dumps(list(values))
        done = subprocess.run(
            argv, input=text.encode(), capture_output=True, check=True, env=variables, timeout=300
        )
    return done.stdout.split(SEAM.encode())[:-1]


NODE: Final = {
    "JSON.stringify": "JSON.stringify(v)",
    "JSON.stringify twice": "JSON.stringify(JSON.stringify(v))",
    "encodeURIComponent": "encodeURIComponent(v)",
    "encodeURI": "encodeURI(v)",
    "URLSearchParams": "new URLSearchParams({q: v}).toString()",
    "URL.href, query": (
        "(u => { u.search = '?q=' + v.replace(/#/g, '%23'); return u.href })(new URL('http://h/'))"
    ),
    "util.inspect": "require('util').inspect(v)",
}
NODE_ENCODED: Final = {
    "base64 of JSON": "Buffer.from(JSON.stringify({a: [v]})).toString('base64')",
    "base64url": "Buffer.from(v).toString('base64url')",
    "hex": "Buffer.from(v).toString('hex')",
}
RUBY: Final = {
    "inspect": "v.inspect",
    "dump": "v.dump",
    "to_json": "JSON.generate([v])",
    "CGI.escape": "CGI.escape(v)",
    "CGI.escapeHTML": "CGI.escapeHTML(v)",
    "ERB::Util.url_encode": "ERB::Util.url_encode(v)",
    "Shellwords.escape": "Shellwords.escape(v)",
    "YAML": "YAML.dump([v])",
    "Regexp.escape": "Regexp.escape(v)",
}
PERL: Final = {
    "Data::Dumper": "do { local $Data::Dumper::Useqq = 1; Data::Dumper->Dump([$v]) }",
    "Data::Dumper, not Useqq": "Data::Dumper->Dump([$v])",
    "JSON::PP": "JSON::PP->new->ascii->encode([$v])",
    "quotemeta": "quotemeta($v)",
}
GO: Final = {
    "encoding/json": "func() string { b, _ := json.Marshal(v); return string(b) }()",
    "template.HTMLEscapeString": "template.HTMLEscapeString(v)",
    "template.JSEscapeString": "template.JSEscapeString(v)",
    "template.URLQueryEscaper": "template.URLQueryEscaper(v)",
    "strconv.Quote": "strconv.Quote(v)",
    "strconv.QuoteToASCII": "strconv.QuoteToASCII(v)",
    "url.PathEscape": "url.PathEscape(v)",
    "xml.EscapeText": (
        "func() string { var b bytes.Buffer; xml.EscapeText(&b, []byte(v)); return b.String() }()"
    ),
    "encoding/csv": (
        "func() string { var b bytes.Buffer; w := csv.NewWriter(&b); w.Write([]string{v, v}); "
        "w.Flush(); return b.String() }()"
    ),
}
JQ: Final = {
    "@json": "@json",
    "@json twice": "@json|@json",
    "@html": "@html",
    "@uri": "@uri",
    "@csv": "[.]|@csv",
    "@sh": "@sh",
    "@text": "@text",
}


def between(values: Iterable[str]) -> list[str]:
    return [f"BEGIN{value}END" for value in values]


def print_node(expression: str, values: Iterable[str]) -> list[bytes]:
    print_one = f"process.stdout.write(({expression}) + {json.dumps(SEAM)})"
    script = f"for (const v of JSON.parse(require('fs').readFileSync(0))) {print_one}"
    return run(["node", "-e", script], values)


def print_ruby(expression: str, values: Iterable[str]) -> list[bytes]:
    script = f"JSON.parse($stdin.read).each {{ |v| print(({expression}), {json.dumps(SEAM)}) }}"
    needs = [f"-r{each}" for each in ("json", "cgi", "erb", "shellwords", "yaml")]
    return run(["ruby", *needs, "-e", script], values)


def print_perl(expression: str, values: Iterable[str]) -> list[bytes]:
    needs = ["-MJSON::PP", "-MData::Dumper", "-CO"]
    script = (
        f"for my $v (@{{decode_json(join '', <STDIN>)}}) {{ print {expression}, "
        f"qq(\\n\\@\\@\\@\\n) }}"
    )
    return run(["perl", *needs, "-e", script], values)


def print_go(expression: str, values: Iterable[str]) -> list[bytes]:
    values = tuple(values)
    number = list(GO.values()).index(expression)
    return _run_go(values)[number * len(values) : (number + 1) * len(values)]


@cache
def _run_go(values: tuple[str, ...]) -> list[bytes]:
    """What all expressions print, one after the other: compiled once."""
    packages = (
        "bytes",
        "encoding/csv",
        "encoding/json",
        "encoding/xml",
        "fmt",
        "html/template",
        "io",
        "net/url",
        "os",
        "strconv",
    )
    loops = "".join(
        f"for _, v := range values {{ fmt.Print({each}, {json.dumps(SEAM)}) }}\n"
        for each in GO.values()
    )
    program = (
        f"package main\nimport ({'; '.join(map(json.dumps, packages))})\nfunc main() {{\n"
        "var values []string\n"
        f"data, _ := io.ReadAll(os.Stdin)\njson.Unmarshal(data, &values)\n{loops}}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "main.go")
        source.write_text(program)
        return run(
            ["go", "run", str(source)],
            values,
            {"GOPROXY": "off", "GOCACHE": folder, "GOPATH": folder},
        )


def print_jq(filter_: str, values: Iterable[str]) -> list[bytes]:
    return run(["jq", "-j", f".[] | (({filter_}), {json.dumps(SEAM)})"], values)


def print_kubectl(form: str, values: Iterable[str]) -> list[bytes]:
    """A ConfigMap of each value, as `kubectl get` would print it."""
    printed = []
    for value in values:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "value").write_text(value)
            argv = [
                "kubectl",
                "create",
                "configmap",
                "x",
                f"--from-file={folder}/value",
                "--dry-run=client",
                "-o",
                form,
            ]
            printed.append(
                subprocess.run(
                    argv,
                    capture_output=True,
                    check=True,
                    env={"PATH": os.environ["PATH"], "HOME": folder},
                ).stdout
            )
    return printed


def print_openssl(before: str, values: Iterable[str]) -> list[bytes]:
    return [
        subprocess.run(
            ["openssl", "base64"],
            input=f"{before}{value}".encode(),
            capture_output=True,
            check=True,
        ).stdout
        for value in values
    ]


def print_csv(value: str) -> str:
    lines = io.StringIO()
    csv.writer(lines).writerow([value, "x"])
    return lines.getvalue()


def escape_as(signs: str, form: str, *, ascii_only: bool) -> Callable[[str], str]:
    """JSON with these signs in hex, too."""

    def escape(value: str) -> str:
        text = json.dumps(value, ensure_ascii=ascii_only)[1:-1].replace(
            '\\"', '"' if '"' in signs else '\\"'
        )
        return f'"{"".join(form % ord(each) if each in signs else each for each in text)}"'

    return escape


PYTHON: Final[Mapping[str, Callable[[str], str]]] = {
    "python csv": print_csv,
    "python XML text": saxutils.escape,
    "python XML attribute": saxutils.quoteattr,
    "python YAML, folded": lambda value: yaml.safe_dump(
        [f"some words before it {value} and after"], width=20
    ),
    "python YAML, quoted and folded": lambda value: yaml.safe_dump(
        [f"\t some words {value} after"], width=20
    ),
    "python repr": repr,
    # https://developer.hashicorp.com/terraform/cli/commands/output and
    # /language/functions/jsonencode
    "as terraform output -json": escape_as("<>&\u2028\u2029", "\\u%04x", ascii_only=False),
    # https://learn.microsoft.com/dotnet/standard/serialization/system-text-json/character-encoding
    "as System.Text.Json of .NET": escape_as("<>&'\"+`", "\\u%04X", ascii_only=True),
    # https://github.com/google/gson/blob/main/UserGuide.md and GsonBuilder.disableHtmlEscaping
    "as Gson": escape_as("<>&='", "\\u%04x", ascii_only=False),
}


def list_programs() -> dict[str, tuple[str, Callable[[list[str]], Printed]]]:
    """For each way to print: the program that it needs, and what it prints."""
    found: dict[str, tuple[str, Callable[[list[str]], Printed]]] = {}
    tables = (("node", NODE, print_node), ("ruby", RUBY, print_ruby), ("perl", PERL, print_perl))
    for program, table, way in (*tables, ("go", GO, print_go), ("jq", JQ, print_jq)):
        for name, expression in table.items():
            found[f"{program} {name}"] = (
                program,
                lambda values, e=expression, w=way: Printed(w(e, between(values))),
            )  # type: ignore[misc]
    for name, expression in NODE_ENCODED.items():
        found[f"node {name}"] = (
            "node",
            lambda values, e=expression: Printed(print_node(e, values), is_plain=False),
        )  # type: ignore[misc]
    found["jq @base64"] = (
        "jq",
        lambda values: Printed(print_jq("@base64", values), is_plain=False),
    )
    for form in ("json", "yaml"):
        found[f"kubectl -o {form}"] = (
            "kubectl",
            lambda values, f=form: Printed(print_kubectl(f, between(values))),
        )  # type: ignore[misc]
    for before in ("", "user:", "https://user:"):
        found[f"openssl base64, after {len(before)} bytes"] = (
            "openssl",
            lambda values, b=before: Printed(  # type: ignore[misc]
                print_openssl(b, values), is_plain=False
            ),
        )
    for name, write in PYTHON.items():
        found[name] = (
            "",
            lambda values, w=write: Printed([w(each).encode() for each in between(values)]),
        )  # type: ignore[misc]
    return found


def count_readable(
    printed: Printed, values: Sequence[str], redact: Callable[[str, bytes], bytes]
) -> int:
    """How many values stay readable once what was printed is redacted."""
    shown = [redact(value, record) for value, record in zip(values, printed.records, strict=True)]
    if printed.is_plain:
        return sum(b"BEGIN***END" not in each for each in shown)
    return sum(b"***" not in each for each in shown)


def redact(value: str, record: bytes) -> bytes:
    """What `run` shows of it."""
    redactor = Redactor(Finder([value.encode()]))
    return redactor.feed(record) + redactor.finish()


if __name__ == "__main__":
    values = make_passwords()
    total = 0
    for name, (_, way) in list_programs().items():
        readable = count_readable(way(values), values, redact)
        total += readable
        print(f"{name:40} {readable:3} of {len(values)}", flush=True)
    print(f"{total} of {len(values) * len(list_programs())}")
