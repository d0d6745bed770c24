"""`sealpipe server init` and `sealpipe server run`."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from sealpipe.addresses import describe_other_port
from sealpipe.cli import render
from sealpipe.cli.server.accounts import add_account, check_name
from sealpipe.cli.server.keys import ALL_SCOPES, add_key, check_scopes
from sealpipe.cli.server.opening import (
    open_store_at,
    plan_printing,
    print_secrets,
    read_database,
    read_mail_server,
    read_webhook_key,
    told_in_our_words,
)
from sealpipe.errors import SettingError, StateError, UsageError
from sealpipe.parsing import is_loopback
from sealpipe.plugin.context import drop_own_variables
from sealpipe.secret import Secret
from sealpipe.version import __version__
from sealpipe_service import logs, metrics, supervising, webhooks
from sealpipe_service.clock import system_clock
from sealpipe_service.database import migrating, opening
from sealpipe_service.meters import Board
from sealpipe_service.sealing import WebhookSeals
from sealpipe_service.serving import bind
from sealpipe_service.tls import Certificate, CertificateError
from sealpipe_service.webhook_post import tls_context

BACKLOG = 2048


def init(**values: Any) -> None:
    """Run `sealpipe server init`."""
    url = _check_url(values)
    check_name(values["account"])
    gate = plan_printing("the credential", values)
    address = read_database(values)
    with told_in_our_words():
        # Tables without a tag are of an `init` that was interrupted.
        migrating.upgrade(address.reveal())
    with open_store_at(address) as store:
        if store.tag() is not None:
            raise _make_made_error()
        add_account(store, values["account"], values["plan"])
        credential = add_key(
            store,
            tag=values["tag"],
            name=values["name"],
            scopes=check_scopes((ALL_SCOPES,)),
            custody="self",
            account=values["account"],
        )
        if not store.set_tag(values["tag"]):  # another `init` was faster
            raise _make_made_error()
    render.print_note(f"made the {render.escape(opening.describe(address.reveal()))}")
    exports = {
        "SEALPIPE_BASE_URL": f"{url}/v1",
        "SEALPIPE_LINK_BASE_URL": f"{url}/s",
        "SEALPIPE_API_KEY": credential.reveal(),
    }
    render.print_note("for a client; the credential is shown only once:")
    members = {name.removeprefix("SEALPIPE_").lower(): value for name, value in exports.items()}
    lines = [f"export {name}={value}" for name, value in exports.items()]
    print_secrets(gate, values, [credential], members, lines)
    render.print_note("now serve it: `sealpipe server run`, with the same two options")


def _make_made_error() -> UsageError:
    return UsageError(
        "the database is that of a service already, which was not changed",
        remedy="`sealpipe server key create` makes another key of it",
    )


def _check_url(values: Mapping[str, Any]) -> str:
    url: str | None = values["public_url"]
    if url is None:
        raise UsageError(
            "no public URL is given",
            remedy="add --public-url https://HOST, or set SEALPIPE_SERVER_PUBLIC_URL",
        )
    return url


def run(**values: Any) -> None:
    """Run `sealpipe server run`."""
    url = _check_url(values)
    tls = _check_tls(values)
    _check_listening(values, has_tls=tls is not None)
    address = read_database(values)
    webhook_key = read_webhook_key(values)
    mail = read_mail_server(values)
    _check_made(address, webhook_key)
    name = opening.describe(address.reveal())
    settings = supervising.ServerSettings(
        database=address.reveal(),
        public_url=url,
        version=__version__,
        tls=tls,
        proxies=values["trusted_proxy"],
        webhook_key=None if webhook_key is None else webhook_key.reveal(),
        webhook_networks=values["webhook_network"],
        mail=None if mail is None else (mail[0].reveal(), mail[1]),
        logs_addresses=values["log_addresses"],
        ca_file=_check_ca_file(values),
    )

    delay = values["shutdown_delay"] or timedelta()

    def announce() -> None:
        count = render.count(values["workers"], "process", "processes")
        _log(f"serving {url} from the {name}, {count}")
        if other := _find_other_port(url, values, has_tls=tls is not None):
            _log(other, "warning")
        if tls is not None and Path(tls[1]).stat().st_mode & stat.S_IROTH:
            _log(f"--tls-key: every user of this machine can read it: chmod o= {tls[1]}", "warning")

    with _listen(values) as listening, _open_board(values) as board:
        named = (address, webhook_key, None if mail is None else mail[0])
        hidden = [each for each in named if each is not None]
        try:
            supervising.serve(
                settings,
                listening,
                board,
                _make_environment(hidden),
                announce,
                delay.total_seconds(),
            )
        except supervising.WorkerError as error:
            raise StateError(
                f"the service did not start: {render.escape(str(error))}",
                remedy="mend that, and run it again",
            ) from None
    _log("stopped")


@contextlib.contextmanager
def _open_board(values: Mapping[str, Any]) -> Iterator[Board]:
    """Give the processes something to count in, and show it at --metrics. Raises SettingError."""
    with contextlib.ExitStack() as opened:
        board = Board(values["workers"])
        opened.callback(board.close)
        if values["metrics"] is not None:
            listening = opened.enter_context(_listen_at("--metrics", *values["metrics"]))
            started = time.time()

            def text() -> str:
                total = board.total()
                return metrics.render(total, __version__, started, board.slots, board.starts)

            opened.enter_context(metrics.serve_metrics(listening, text))
        yield board


def _log(message: str, level: str = "info") -> None:
    """Say something between the lines of the processes that serve, as they do."""
    render.print_note(logs.make_line(system_clock(), level, message, {}))


def _check_made(address: Secret, key: Secret | None) -> None:
    """Raise UsageError for tables without a service, and for webhooks that nobody could sign."""
    with open_store_at(address) as store:
        is_made, endpoints = store.tag() is not None, webhooks.endpoints(store)
    if not is_made:
        raise UsageError(
            "the database has tables, and no service yet",
            remedy="check its address; `sealpipe server init` makes a new service there",
        )
    if endpoints and key is None:
        raise UsageError(
            "the service has webhooks, and the key of their secrets is not named",
            remedy="add --webhook-key, as for `sealpipe server webhook add`",
        )
    try:
        for endpoint in endpoints:
            webhooks.open_secrets(endpoint, WebhookSeals(key.reveal() if key else ""))
    except webhooks.SealError as error:
        failure = SettingError(
            f"--webhook-key: the secret of {error} was sealed under another key",
            remedy="name that key, or remove the endpoint and add it again",
        )
    else:
        return
    raise failure


def _make_environment(hidden: Sequence[Secret]) -> dict[str, str]:
    """Return the environment of processes that serve: without ours, and without what is hidden."""
    environ = drop_own_variables(os.environ)
    secrets = [each.reveal() for each in hidden]
    return {name: value for name, value in environ.items() if value not in secrets}


def _check_ca_file(values: Mapping[str, Any]) -> str | None:
    """Return the file of authorities, absolute. Raises SettingError."""
    if values["ca_file"] is None:
        return None
    path = str(Path(values["ca_file"]).absolute())
    try:
        tls_context(path)
    except (OSError, ssl.SSLError):
        raise SettingError(
            "--ca-file: the certificates to trust cannot be read",
            remedy="name a PEM file that the user of the service can read",
        ) from None
    return path


def _check_tls(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the files of certificate and key, absolute. Raises SettingError."""
    certificate, key = values["tls_cert"], values["tls_key"]
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("--tls-cert and --tls-key belong together", remedy="give both")
    try:
        Certificate(certificate, key)
    except CertificateError as error:
        raise SettingError(f"--tls-cert, --tls-key: {error}", remedy=error.remedy) from None
    return str(Path(certificate).absolute()), str(Path(key).absolute())


def _check_listening(values: Mapping[str, Any], *, has_tls: bool) -> None:
    """Raise UsageError if secrets would be served without TLS to whoever listens on the way."""
    host, _ = values["listen"]
    if has_tls or values["socket"] or is_loopback(host) or values["trusted_proxy"]:
        return
    raise UsageError(
        f"--listen {host}: without TLS the service listens on this machine only",
        remedy="give --tls-cert and --tls-key, or name the proxy before it with --trusted-proxy",
    )


def _find_other_port(url: str, values: Mapping[str, Any], *, has_tls: bool) -> str | None:
    """Say so if a service that nobody stands before is called at another port than its own."""
    is_direct = has_tls or url.startswith("http:")
    if not is_direct or values["socket"] or values["trusted_proxy"]:
        return None
    return describe_other_port(url, values["listen"][1])


@contextlib.contextmanager
def _listen(values: Mapping[str, Any]) -> Iterator[socket.socket]:
    """Bind the socket that all processes accept from. Raises SettingError."""
    if values["socket"]:
        with _listen_at_path(Path(values["socket"])) as sock:
            yield sock
        return
    with _listen_at("--listen", *values["listen"]) as sock:
        yield sock


@contextlib.contextmanager
def _listen_at(option: str, host: str, port: int) -> Iterator[socket.socket]:
    with contextlib.ExitStack() as opened:
        try:
            sock = opened.enter_context(bind(host, port))
            sock.listen(BACKLOG)
        except OSError as error:
            raise SettingError(
                f"cannot listen on {host}:{port}: {error.strerror}",
                remedy=f"choose another address with {option}",
            ) from None
        yield sock


@contextlib.contextmanager
def _listen_at_path(path: Path) -> Iterator[socket.socket]:
    """Bind a socket at a path, in place of one that nobody listens at any longer.

    Whoever can enter its folder can call, as on loopback.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            _remove_dead(path)
            sock.bind(os.fspath(path))
            path.chmod(0o666)
            sock.listen(BACKLOG)
        except OSError as error:
            raise SettingError(
                f"cannot listen at {path}: {error.strerror or error}",
                remedy="choose another path with --socket, in a folder that exists",
            ) from None
        try:
            yield sock
        finally:
            path.unlink(missing_ok=True)


def _remove_dead(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return  # binding fails, and says so
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink()
