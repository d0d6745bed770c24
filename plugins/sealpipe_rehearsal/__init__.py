"""The rehearsal: the service of `sealpipe_service` on this machine, and people who open its links.

    rehearsed.py         the service with a clock that moves, a log, and calls that fail
    application.py       its application: the control API, the log and faults before the service
    server.py            start() runs a service in a thread, serve() runs it as a command
    running_service.py   what start() returns
    uvicorn_server.py    uvicorn on a loopback socket
    uvicorn_connection.py  lets faults write past HTTP
    control.py           the control API
    account_control.py, webhook_control.py   its parts for keys, accounts and webhooks
    control_client.py    client of the control API: keys, accounts, webhooks, clock, faults
    faults.py            ONE table of faults
    fault_*.py           inject them (connections, responses), read a plan (parser), choose (plan),
                         and are the faulty call (exchange)
    log.py, log_redaction.py, clock.py   the log, without custody secrets; the clock
    people.py            recipient and submitter: they have a link and nothing else
    commands/            `sealpipe rehearse` and `sealpipe rehearsal ...`
    pytest_plugin.py     the fixture `sealpipe_rehearsal`

Importing this package loads nothing else; `Rehearsal`, `Recipient`, `Submitter` and
`LinkRefusedError` are loaded on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the same form as in typing
if TYPE_CHECKING:
    from sealpipe_rehearsal.people import LinkRefusedError as LinkRefusedError
    from sealpipe_rehearsal.people import Recipient as Recipient
    from sealpipe_rehearsal.people import Submitter as Submitter
    from sealpipe_rehearsal.pytest_plugin import Rehearsal as Rehearsal

_MODULES = {
    "LinkRefusedError": "sealpipe_rehearsal.people",
    "Recipient": "sealpipe_rehearsal.people",
    "Submitter": "sealpipe_rehearsal.people",
    "Rehearsal": "sealpipe_rehearsal.pytest_plugin",
}

__all__ = ["LinkRefusedError", "Recipient", "Rehearsal", "Submitter"]


if not TYPE_CHECKING:  # hidden from type checkers, which would take every misspelled name for Any

    def __getattr__(name):
        from importlib import import_module

        if name in _MODULES:
            return getattr(import_module(_MODULES[name]), name)
        raise AttributeError(f"module 'sealpipe_rehearsal' has no attribute {name!r}")
