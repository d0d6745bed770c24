"""What one would write instead of `sealpipe run`: replace each value, and some of its encodings, in
each chunk.

    running.py FILE COMMAND ...

FILE has NAME=env:VARIABLE lines. A value that is cut across two chunks is missed.
"""

import base64
import json
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

environ = dict(os.environ)
forms = []
for line in Path(sys.argv[1]).read_text().splitlines():
    name, _, ref = line.partition("=env:")
    environ[name] = value = environ[ref]
    raw = value.encode()
    encoded = [
        base64.b64encode(raw),
        base64.urlsafe_b64encode(raw),
        raw.hex().encode(),
        raw.hex().upper().encode(),
    ]
    forms += [
        raw,
        json.dumps(value)[1:-1].encode(),
        urllib.parse.quote(value, safe="").encode(),
        *encoded,
    ]
forms = list(dict.fromkeys(forms))
with subprocess.Popen(sys.argv[2:], env=environ, stdout=subprocess.PIPE) as process:
    while chunk := process.stdout.read1(65_536):
        for form in forms:
            chunk = chunk.replace(form, b"***")
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
sys.exit(process.returncode)
