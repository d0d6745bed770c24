"""`sealpipe shares expire` and `sealpipe requests expire`: options and help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from sealpipe.cli.codes import CodeCommand
from sealpipe.cli.command import COMMON, options


@click.command("expire", cls=CodeCommand)
@click.argument("codes", nargs=-1, metavar="[CODE|RECEIPT]...")
@options("expire", common=COMMON)
def expire_shares(codes: Sequence[str], **values: Any) -> None:
    """Expire shares now: their links stop working, for good.

    Not an error if a share is already expired.

    Give codes or receipts; --name and --created-by-run choose among them or, without any, among
    what this machine created. --all-active takes every active share of the account instead. All but
    a single code are listed first, and expired with --yes only (on a terminal you are asked).

    sealpipe shares expire --name 'staging-*' --yes
    """
    from sealpipe.cli import expire

    expire.expire_shares(codes, **values)


@click.command("expire", cls=CodeCommand)
@click.argument("codes", nargs=-1, metavar="[CODE|RECEIPT]...")
@options("expire", common=COMMON)
def expire_requests(codes: Sequence[str], **values: Any) -> None:
    """Expire requests now. Their submissions stay at the service. Safe to run again at any time.

    Also stores the ciphertext of every submission in the state directory. Give codes or receipts;
    --name and --created-by-run choose among them or, without any, among what this machine created.
    --all-active takes every active request of the account instead, whatever its key. All but a
    single code are listed first, and expired with --yes only (on a terminal you are asked).
    """
    from sealpipe.cli import expire

    expire.expire_requests(codes, **values)
