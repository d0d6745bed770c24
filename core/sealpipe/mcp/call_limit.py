"""How often each tool was used in the last hour, by every server of this machine's state directory.

A 0600 file of one JSON object: for each tool, the times of its calls in seconds since 1970. It is
replaced only if it is still the one that was read, so that two servers never count one call for
both. A call is counted before it does anything: a kill between the two counts one too many, never
one too few.
"""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from sealpipe.errors import PolicyError, StateError
from sealpipe.hourly_limit import HourlyLimit
from sealpipe.parsing import format_time
from sealpipe.permissions import read_file
from sealpipe.state.files import create_file, make_private_directory, refuse_newer, replace_file

HOUR: Final = 3600
_NAME: Final = "hourly.json"
_MAX_SIZE: Final = 1024 * 1024
_ATTEMPTS: Final = 100
"""How often to count again because another server counted first."""

Times = dict[str, list[float]]


def take(folder: Path, tool: str, most: int | None) -> None:
    """Count one call of a tool.

    `most` is how many an hour there may be, None for any number. Blocks.

    Raises PolicyError, with nothing counted, if there were as many, and StateError if the file
    cannot be used.
    """
    if most is None:
        return
    path = make_private_directory(folder) / _NAME
    for _ in range(_ATTEMPTS):
        now = time.time()
        content, times = _read(path, now)
        calls, limit = times.get(tool, []), HourlyLimit(most, HOUR)
        if not limit.count_left(calls):
            if _encode(times) != content and not _write(path, content, times):
                continue
            _refuse(tool, most, limit.find_time(calls))
        if _write(path, content, {**times, tool: [*calls, now]}):
            return
    raise StateError(
        f"{path} cannot be replaced: it is a link, or others keep changing it", remedy="remove it"
    )


def count_left(folder: Path, tool: str, most: int | None) -> int | None:
    """Return how many calls of a tool are left in this hour; None for any number.

    Raises StateError.
    """
    if most is None:
        return None
    _, times = _read(folder / _NAME, time.time())
    return HourlyLimit(most, HOUR).count_left(times.get(tool, []))


def _refuse(tool: str, most: int, until: float) -> NoReturn:
    at = format_time(datetime.fromtimestamp(int(until) + 1, UTC))
    calls = "1 call" if most == 1 else f"{most} calls"
    raise PolicyError(
        f"{tool}: the policy allows {calls} an hour, and there were as many",
        remedy=f"call it again after {at}, or ask the policy's owner to raise per_hour",
    )


def _read(path: Path, now: float) -> tuple[bytes | None, Times]:
    """Return the file's content (None: there is none), and the calls of the last hour.

    Raises StateError.
    """
    try:
        content = read_file(path, _MAX_SIZE)
    except FileNotFoundError:
        return None, {}
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror}") from None
    times = _parse(path, content)
    if times is None:
        raise StateError(
            f"{path} is damaged, so the calls of this hour are unknown",
            remedy="remove it after an hour",
        )
    limit = HourlyLimit(0, HOUR)
    recent = {
        tool: [*limit.select_counted(dict(enumerate(calls)), now).values()]
        for tool, calls in times.items()
    }
    return content, {tool: calls for tool, calls in recent.items() if calls}


def _parse(path: Path, content: bytes) -> Times | None:
    """Return the calls of each tool; None if the file is damaged. Raises StateError."""
    try:
        members = json.loads(content)
        refuse_newer(members, str(path))
        times = {tool: [float(each) for each in calls] for tool, calls in members["calls"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return (
        times
        if members.get("schema") == 1
        and all(each > 0 for calls in times.values() for each in calls)
        else None
    )


def _encode(times: Times) -> bytes:
    return json.dumps({"schema": 1, "calls": times}, separators=(",", ":")).encode() + b"\n"


def _write(path: Path, expected: bytes | None, times: Times) -> bool:
    """Write the file, if it is still the expected one. Raises StateError."""
    content = _encode(times)
    try:
        if expected is not None:
            return replace_file(path, content, expected)
        create_file(path, lambda: [content])
    except FileExistsError:
        return False
    except OSError as error:
        raise StateError(f"{path} cannot be written: {error.strerror}") from None
    return True
