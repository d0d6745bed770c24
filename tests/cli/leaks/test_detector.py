"""The detector is proven on leaks that we plant: in every place, in every encoding, whole and in
part.

A plant is a real process, watched as `sealpipe` is. It has a secret for each encoding, and lets
each out in that encoding only: the detector must name them all, and where.
"""

from __future__ import annotations

import secrets
import sys

import pytest

from sealpipe_rehearsal.running_service import RunningService
from support.leaks import Detector
from support.strace import Watched, watch
from support.terminal import Terminal

# Written without the detector's own functions: a fault in those must not hide itself.
ENCODE = r"""
import base64, binascii, html, json, os, pathlib, socket, subprocess, sys, tempfile
import urllib.parse, urllib.request

encode = {
    "raw": lambda v: v,
    "reversed": lambda v: bytes(reversed(v)),
    "base64": lambda v: base64.b64encode(v),
    "base64 after one byte": lambda v: base64.standard_b64encode(b"u" + v),
    "base64 after two bytes": lambda v: base64.standard_b64encode(b"me" + v + b"!"),
    "base64url": lambda v: base64.urlsafe_b64encode(v),
    "base64url without padding": lambda v: base64.urlsafe_b64encode(b":" + v).rstrip(b"="),
    "base64 in lines": lambda v: base64.encodebytes(b"user:" + v * 3),
    "hex": binascii.hexlify,
    "HEX": lambda v: binascii.hexlify(v).upper(),
    "a hex dump": lambda v: v.hex(" ").encode(),
    "JSON": lambda v: json.dumps({"password": v.decode()}).encode(),
    "JSON in JSON": lambda v: json.dumps({"body": json.dumps({"password": v.decode()})}).encode(),
    "JSON, not ASCII": lambda v: json.dumps([v.decode()], ensure_ascii=False).encode(),
    "URL": lambda v: urllib.parse.quote(v.decode(), safe="").encode(),
    "form": lambda v: urllib.parse.urlencode({"q": v.decode()}).encode(),
    "every byte percent-encoded": lambda v: b"".join(b"%%%02x" % byte for byte in v),
    "repr": lambda v: repr({"value": v.decode()}).encode(),
    "repr of bytes": lambda v: repr([v]).encode(),
    "escaped bytes": lambda v: "".join(f"\\x{byte:02x}" for byte in v).encode(),
    "a core dump": lambda v: b"\x7fELF\x00\x01" + os.urandom(400) + v + os.urandom(400),
    "UTF-16": lambda v: v.decode().encode("utf-16"),
    "a list of numbers": lambda v: str(list(v)).encode(),
    "HTML": lambda v: html.escape(v.decode()).encode(),
    "the first third": lambda v: v[: len(v) // 3],
    "the last eight bytes": lambda v: v[-8:],
    "every line cut": lambda v: b"\n".join(v[n : n + 10] for n in range(0, len(v), 10)),
}
values = {name: os.environ["PLANT_" + name.replace(" ", "_")].encode() for name in encode}
out = {name: encode[name](value) for name, value in values.items()}
# Argv, names and URLs hold no NUL, so no UTF-16 either.
safe = {name: value.replace(b"\0", b".") for name, value in out.items() if name != "UTF-16"}
service = os.environ["SERVICE"]
child = [sys.executable, "-c", "pass"]
for name in values:
    del os.environ["PLANT_" + name.replace(" ", "_")]

def post(path="/v1/shares", body=b"", header=b"x"):
    host, port = service.split("//")[1].split("/")[0].split(":")
    with socket.create_connection((host, int(port))) as connection:
        head = [f"POST {path} HTTP/1.1\r\nHost: x\r\nX-Note: ".encode("latin-1"), header]
        head += [b"\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body), body]
        connection.sendall(b"".join(head))
        while connection.recv(65536):
            pass
"""

PLANTS = {
    "argv of a child": "for leak in safe.values(): subprocess.run([*child, leak])",
    "environment of a child": (
        "for leak in safe.values(): subprocess.run(child, env={b'NOTE': leak})"
    ),
    "stdout": "for leak in out.values(): os.write(1, leak + b'\\n')",
    "stderr": "for leak in out.values(): sys.stderr.buffer.write(leak); sys.stderr.flush()",
    "stderr of a child's child": """
for leak in safe.values(): subprocess.run(["sh", "-c", "cat >&2"], input=leak)""",
    "a log, one write a byte": """
for leak in out.values():
    file = os.open("log.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for start in range(len(leak)): os.write(file, leak[start : start + 1])
    os.write(file, b"\\n")""",
    "a temporary file that is gone": """
for leak in out.values():
    with tempfile.NamedTemporaryFile() as file: file.write(leak)""",
    "a file that stays": (
        "for number, leak in enumerate(out.values()): pathlib.Path(str(number)).write_bytes(leak)"
    ),
    "a file's name": """
for leak in safe.values():
    try: open(b"/tmp/not-there/" + leak.replace(b"/", b"."), "rb")
    except OSError: pass""",
    "a symbolic link": """
for number, leak in enumerate(safe.values()): os.symlink(leak[:3000], f"link-{number}".encode())""",
    "a body": "for leak in out.values(): post(body=leak)",
    "a header": "for leak in out.values(): post(header=leak.replace(b'\\n', b' '))",
    "a URL": "for leak in safe.values(): post('/v1/' + leak.decode('latin-1').replace('\\n', ''))",
    "another thread": """
import threading
for leak in out.values():
    thread = threading.Thread(target=os.write, args=(2, leak + b"\\n"))
    thread.start(); thread.join()""",
}

KINDS = [line.split('"')[1] for line in ENCODE.splitlines() if line.startswith('    "')]


def secret() -> str:
    """No eight bytes of it are without one that JSON, URLs, HTML or Python write in another way."""
    return "".join(f"\\&{secrets.token_urlsafe(3)}é" for _ in range(8))


def planted(user: Terminal, service: RunningService, plant: str) -> tuple[Watched, dict[str, str]]:
    values = {kind: secret() for kind in KINDS}
    environ = {"PLANT_" + kind.replace(" ", "_"): value for kind, value in values.items()}
    program = [sys.executable, "-c", f"{ENCODE}\n{plant}"]
    return watch(user, program, environ={**environ, "SERVICE": service.base_url}), values


@pytest.mark.parametrize("place", PLANTS)
def test_a_leak_is_found_in_every_encoding(
    bare: Terminal, service: RunningService, place: str
) -> None:
    watched, values = planted(bare, service, PLANTS[place])
    assert watched.done.code == 0, watched.done.err
    detector = Detector({kind: value.encode() for kind, value in values.items()})
    found = {hit.secret for name, data in watched.places() for hit in detector.find(data, name)}
    possible = set(KINDS) - ({"UTF-16"} if "safe" in PLANTS[place] else set())
    assert possible - found == set()


def test_a_leak_in_the_name_of_the_process_is_found(
    bare: Terminal, service: RunningService
) -> None:
    watched, values = planted(
        bare, service, "import ctypes; ctypes.CDLL(None).prctl(15, values['raw'][:15])"
    )
    detector = Detector({"raw": values["raw"].encode()})
    assert any(detector.find(data, name) for name, data in watched.places() if name == "prctl")


def test_nothing_is_found_where_nothing_leaks(bare: Terminal, service: RunningService) -> None:
    watched, values = planted(
        bare, service, "subprocess.run(child); post(body=b'nothing'); print('nothing')"
    )
    assert watched.done.code == 0, watched.done.err
    detector = Detector({kind: value.encode() for kind, value in values.items()})
    assert [hit for name, data in watched.places() for hit in detector.find(data, name)] == []


def test_what_the_service_received_is_searched_as_it_received_it(
    bare: Terminal, service: RunningService
) -> None:
    watched, values = planted(bare, service, PLANTS["a body"])
    detector = Detector({kind: value.encode() for kind, value in values.items()})
    received = b"".join(map(bytes, service.seen()))
    assert watched.done.code == 0
    assert {hit.secret for hit in detector.find(received)} == set(KINDS)


@pytest.mark.parametrize(
    "silent",
    [
        "import mmap; f = open('x', 'w+b'); f.truncate(9); mmap.mmap(f.fileno(), 9)",
        "f = open('x', 'w+b'); f.write(b'x'); f.flush(); os.sendfile(1, f.fileno(), 0, 1)",
    ],
)
def test_ways_that_show_no_bytes_are_refused(bare: Terminal, silent: str) -> None:
    with pytest.raises(AssertionError, match=r"nobody sees|written into a file"):
        watch(bare, [sys.executable, "-c", f"import os; {silent}"])


def test_random_bytes_are_seen_as_they_are_drawn(bare: Terminal) -> None:
    watched = watch(bare, [sys.executable, "-c", "import os; print(os.urandom(32).hex())"])
    assert bytes.fromhex(watched.done.out) in watched.drawn
