"""The only gate for links and values on stdout.

Also masks, step outputs and annotations of the CI system.

A command asks the gate before it sends or fetches anything, and writes the secret through the
returned `Disclosure`. In CI, everyone who can read the log can read stdout. So the caller must
confirm with --print that stdout is captured.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from sealpipe.ci_systems import CISystem, detect_ci_system
from sealpipe.cli import render
from sealpipe.client_base import registry as make_registry
from sealpipe.config import Config
from sealpipe.errors import DeliveryError, PluginError, SealpipeError, UnsupportedError, UsageError
from sealpipe.parsing import is_loopback
from sealpipe.plugin import CI
from sealpipe.registry import Registry
from sealpipe.registry.safe_calls import call_plugin
from sealpipe.secret import Secret
from sealpipe.sources.select import is_utf8

MASK_DELAY: Final = 0.25
"""Seconds between the masks and the value: a runner reads the two streams in two threads, in either
order.
"""


class Disclosure(NamedTuple):
    """Whether a secret may go to stdout. Only `plan_disclosure` makes one that allows it."""

    system: CISystem | None
    is_allowed: bool
    is_print_given: bool
    """Whether --print was given."""

    def write(
        self, registry: Callable[[], Registry], hidden: Iterable[Secret], write: Callable[[], None]
    ) -> None:
        """Mask `hidden`, wait until the runner has read the masks, then write.

        DeliveryError if masking fails.
        """
        if not self.is_allowed:
            raise DeliveryError(
                "no secret may go to stdout here", remedy="add --print if you capture stdout"
            )
        reason = mask_ahead(self.system, registry, hidden)
        if reason and self.is_print_given:
            raise DeliveryError(f"the value for stdout could not be masked: {reason}")
        write()

    def resume_command(self, entry_id: str | None) -> str:
        """Return the command line that finishes an entry under the same permission."""
        return f"sealpipe resume {entry_id}" + (
            " --print" if self.is_allowed and self.is_print_given and self.system else ""
        )


NO_DISCLOSURE: Final = Disclosure(None, is_allowed=False, is_print_given=False)
"""For commands whose result is not secret."""


def plan_disclosure(
    what: str,
    alternatives: str,
    *,
    printing: bool,
    elsewhere: bool = False,
    dry_run: bool = False,
    addresses: Sequence[str] = (),
    option: str = "--print",
) -> Disclosure:
    """Decide before anything is sent whether a secret may go to stdout.

    UsageError if `what` would be in a job's log.

    `alternatives` is the remedy that names other options; `elsewhere` means that the command uses
    one of them. A link whose addresses are all loopback needs no --print: it belongs to a
    rehearsal. A dry run only warns. `option` is the one whose use `printing` tells.
    """
    system = detect_ci_system(os.environ)
    if system is None or elsewhere:
        return Disclosure(system, is_allowed=not elsewhere, is_print_given=printing)
    try:
        _check(
            system,
            what,
            alternatives,
            option,
            allowed=printing or _all_loopback(addresses),
            printing=printing,
        )
    except UsageError as error:
        if not dry_run:
            raise
        render.print_note(
            f"sealpipe: {error.message}; without --dry-run this is an error: {error.remedy}"
        )
        return Disclosure(system, is_allowed=False, is_print_given=printing)
    return Disclosure(system, is_allowed=True, is_print_given=printing)


def mask(registry: Callable[[], Registry], values: Iterable[Secret]) -> bool:
    """Have the CI system mask values before they are written. Return False if that failed."""
    ci = get_ci(registry)
    if ci is not None:
        try:
            call_plugin("the CI", lambda: _mask(ci, values))
        except PluginError as error:
            render.print_note(f"sealpipe: {error.message}")
            return False
    return True


def mask_ahead(
    system: CISystem | None, registry: Callable[[], Registry], hidden: Iterable[Secret]
) -> str:
    """Mask values, and wait until the runner has read the masks.

    Return why they are not masked, where they could be.

    `system` is the CI system, None outside CI.
    """
    can_mask = system is not None and system.mask is not None
    is_read = can_mask and _is_stderr_readable()
    if not mask(registry, hidden):
        return "its CI's plugin failed" if is_read or not can_mask else "stderr has been closed"
    if is_read:
        time.sleep(MASK_DELAY)
    return "" if is_read or not can_mask else "stderr has been closed"


def list_masks(secrets: Mapping[str, Secret]) -> list[Secret]:
    """Return what a CI system can mask: its log is text."""

    binary = [name for name, secret in secrets.items() if not is_utf8(secret.reveal_bytes())]
    system = detect_ci_system(os.environ)
    if binary and system is not None and (system.mask is not None or system.job.mask_program):
        render.print_note(
            f"sealpipe: not UTF-8 text, so {system.title} cannot mask it: {', '.join(binary)}"
        )
    return [secret for name, secret in secrets.items() if name not in binary]


def list_link_parts(link: Secret) -> list[Secret]:
    """Return the parts of a link to mask.

    The link, its fragment, and the fragment without its leading `1`.
    """
    fragment = link.reveal().partition("#")[2]
    return [link, *(Secret(part) for part in (fragment, fragment[1:]) if part)]


def set_step_outputs(registry: Callable[[], Registry], outputs: Mapping[str, str]) -> None:
    """Set the step's outputs, if the CI system has any."""
    ci = get_ci(registry)
    if ci is None:
        return
    for name, value in outputs.items():
        try:
            ci.set_output(name, value)
        except UnsupportedError:
            return
        # Whatever a plugin raises: the link is not delivered yet.
        except Exception as error:  # noqa: BLE001
            render.print_note(f"sealpipe: could not set the output {name} ({type(error).__name__})")


def annotate_error(error: SealpipeError, config: Config | None) -> None:
    """Annotate the job with an error, if the CI system can.

    Failures are ignored: stderr has the error, too.

    Of a message with several lines, such as the mistakes of a batch file, the first stands for all.
    """
    with suppress(Exception):  # any exception of a plugin
        ci = get_ci(lambda: make_registry(config=(lambda: config.user) if config else None))
        if ci is not None:
            message = error.message.partition("\n")[0]
            text = f"{message} ({error.remedy})" if error.remedy else message
            ci.annotate("error", render.escape(render.redact(text)))


def _check(
    system: CISystem, what: str, alternatives: str, option: str, *, allowed: bool, printing: bool
) -> None:
    if not allowed:
        raise UsageError(
            f"this job runs in {system.title}: {what} would appear in its log",
            remedy=f"{alternatives}; or add {option} if you capture stdout",
        )
    if printing and system.mask is not None and not _is_stderr_readable():
        raise UsageError(
            (
                f"{option}: {what} cannot be masked, because stderr does not reach the runner "
                f"of {system.title}"
            ),
            remedy="do not close stderr, or redirect it to a file or the null device",
        )


def _is_stderr_readable() -> bool:
    from sealpipe.ci_commands import is_stderr_readable  # only in a system that can mask

    return is_stderr_readable()


def _all_loopback(addresses: Sequence[str]) -> bool:
    return bool(addresses) and all(is_loopback(urlsplit(each).hostname or "") for each in addresses)


def _mask(ci: CI, values: Iterable[Secret]) -> None:
    try:
        ci.mask(values)
        return
    except OSError:
        failure = PluginError("stderr cannot be written")
    raise failure


def get_ci(registry: Callable[[], Registry]) -> CI | None:
    """Return the CI system's plugin; None outside of CI.

    SettingError, PluginError if it cannot be used.
    """
    return registry().ci() if detect_ci_system(os.environ) is not None else None
