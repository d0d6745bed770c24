"""Runs one command and prints what it cost, in ms and bytes: python -I -S launching.py OUT ERR
COMMAND ...

A process of its own, and a small one: on Linux the peak memory of a child counts from what its
parent has.
"""

import json
import os
import sys
import time


def main() -> None:
    out, err, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = [
        (os.POSIX_SPAWN_OPEN, number, path, flags, 0o600) for number, path in ((1, out), (2, err))
    ]
    started = time.perf_counter()
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=streams)
    _, status, used = os.wait4(child, 0)
    told = {
        "code": os.waitstatus_to_exitcode(status),
        "wall": 1000 * (time.perf_counter() - started),
        "cpu": 1000 * (used.ru_utime + used.ru_stime),
        "peak": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
    }
    print(json.dumps(told))


main()
