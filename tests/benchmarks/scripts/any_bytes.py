"""What files of any bytes cost, at the limit of a share: any_bytes.py RUNS, in
`sealpipe rehearse --`.

The CPU time and the peak of memory of whole commands; the service is another process.
"""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

THIS = Path(__file__).resolve()
MIB = 1024 * 1024
BYTES = 12 * MIB - 48
"""As many as a share holds in base64, beside its label and its type."""
COMMANDS = {
    "`share`, 4 bytes": "share file:tiny",
    "`share`, 16 MiB of base64": "share file:text",
    "`share`, 12 MiB with `encode=base64`": "share file:bytes?encode=base64",
    "`collect` of 4 bytes into a file": "collect {tiny} --to file:tiny-{run}",
    "`collect` of 16 MiB of base64 into a file": "collect {code} --to file:text-{run}",
    "the same with `decode=base64`": "collect {code} --to file:bytes-{run}?decode=base64",
    "`copy` of 12 MiB from file to file": "copy file:bytes --to file:copied-{run}",
    "`copy` with `encode=base64`, and `decode=base64`": (
        "copy file:bytes?encode=base64 --to file:both-{run}?decode=base64"
    ),
}


def prepare():
    """Write the files, and print the codes of two requests that have a submission each.

    In a process of its own: the peak of a child counts that of its parent at the start.
    """
    from sealpipe import Client
    from sealpipe_rehearsal.people import Submitter

    data = os.urandom(BYTES)
    texts = {"tiny": "tiny", "text": base64.b64encode(data).decode()}
    Path("bytes").write_bytes(data)
    names = ("api_key", "base_url", "link_base_url")
    with Client(**{name: os.environ[f"SEALPIPE_{name.upper()}"] for name in names}) as client:
        for name, text in texts.items():
            Path(name).write_text(text)
            made = client.request(["Keystore:multiline"])
            Submitter().submit(made.collect_link, {"Keystore": text})
            print(made.short_code)


def run(words):
    """Run a command; its CPU time in seconds and its peak of memory in MiB."""
    program = shutil.which("sealpipe")
    null = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
    pid = os.posix_spawn(program, [program, *words], os.environ, file_actions=null)
    _, status, used = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, words
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main(runs):
    """Print the medians of some runs of each command."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepared = subprocess.run(
            [sys.executable, str(THIS), "prepare"], check=True, capture_output=True, text=True
        )
        tiny, code = prepared.stdout.split()
        for what, words in COMMANDS.items():
            costs = [
                run(words.format(run=number, tiny=tiny, code=code).split())
                for number in range(runs)
            ]
            cpu, peak = (median(column) for column in zip(*costs, strict=True))
            print(f"| {what} | {cpu * 1000:.0f} ms | {peak:.0f} MiB |", flush=True)
        same = subprocess.run(["cmp", "bytes", "bytes-0"], check=False).returncode
        assert same == 0


if sys.argv[1] == "prepare":
    prepare()
else:
    main(int(sys.argv[1]))
