"""What all calls of a client share: credential, addresses, deadline, registry and connections."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Collection, Iterable
from copy import copy
from dataclasses import InitVar, dataclass, field, replace
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

from sealpipe import budget, policy
from sealpipe.api.operation import Credential, Failure, Operation, Resend, Response
from sealpipe.api.responses import parse_retry_after
from sealpipe.budget import Budget
from sealpipe.cancellation import Cancellation, current
from sealpipe.config import Config
from sealpipe.custody_gate import CustodyGate
from sealpipe.errors import CredentialError, PolicyError, SettingError, UsageError
from sealpipe.parsing import as_seconds, parse_base_url, parse_link_base_url, parse_service_tag
from sealpipe.registry.stores import read_policy_hooks
from sealpipe.requirements import find_errors, join_errors
from sealpipe.secret import Secret
from sealpipe.state.custody import CustodyLevels

if TYPE_CHECKING:
    from sealpipe.registry import Registry
    from sealpipe.registry.stores import PolicyHook

_REMEDIES = {
    "SEALPIPE_API_KEY": "set SEALPIPE_API_KEY or SEALPIPE_API_KEY_FILE (forks and Dependabot runs "
    "get empty secrets, and so does `export NAME=$(COMMAND)` when the command fails)",
    "SEALPIPE_BASE_URL": "set SEALPIPE_BASE_URL to the service's API, which ends in /v1 "
    "(without an account: `sealpipe rehearse`)",
    "SEALPIPE_LINK_BASE_URL": (
        "set SEALPIPE_LINK_BASE_URL to the address that the service's links start with"
    ),
}


MAX_DEADLINE = 20 * 86400
"""Maximum deadline in seconds: a socket's timeout cannot exceed 24 days."""


class Limiter(Protocol):
    """Decides when a request may be sent, for all who share it."""

    def wait(self, timeout: float, sleep: Callable[[float], object]) -> int | Failure:
        """Sleep until a request may be sent, and return its turn.

        Its failure if that cannot be within `timeout` seconds.
        """

    def slow_down(self, turn: int, retry_after: float | None) -> None:
        """Make all wait, after a 429 to the request of this turn; `retry_after` is in seconds."""


class Network(Protocol):
    """Connections to a service."""

    @property
    def limiter(self) -> Limiter:
        """Decides when an operation may be sent: whoever sends asks it before."""

    def send(
        self, operation: Operation[Any], timeout: float, cancellation: Cancellation
    ) -> Response | Failure:
        """Send one operation once, within `timeout` seconds."""

    def close(self) -> None:
        """Close them."""


class Transport:
    """The connections of a session, opened when first used.

    Threads share them, and their rate limiter.
    """

    open_network: Callable[[Session], Network] | None = None
    """Opens them; set by whoever may send."""

    def __init__(self) -> None:
        self._network: Network | None = None
        self._making = threading.Lock()

    def send(
        self, session: Session, operation: Operation[Any], timeout: float
    ) -> Response | Failure:
        """Send one operation once, within `timeout` seconds."""
        return self._open(session).send(operation, timeout, current())

    def get_limiter(self, session: Session) -> Limiter | None:
        """Return who decides when an operation may be sent; None where nobody does."""
        return None if self.open_network is None else self._open(session).limiter

    def close(self) -> None:
        """Close the connections."""
        if self._network is not None:
            self._network.close()
            self._network = None

    def _open(self, session: Session) -> Network:
        network = self._network
        if network is None:
            if self.open_network is None:
                raise AssertionError("this session makes no connection")
            with self._making:
                network = self._network = self._network or self.open_network(session)
        return network


def send_in_turn(
    limiter: Limiter | None, timeout: float, send: Callable[[float], Response | Failure]
) -> Response | Failure:
    """Send once the limiter allows it, with the seconds that are then left of `timeout`.

    While it waits nothing is under way. Raises CancelledCallError.
    """
    if limiter is None:
        return send(timeout)
    end = time.monotonic() + timeout
    turn = limiter.wait(timeout, current().sleep)
    if isinstance(turn, Failure):
        return turn
    left = end - time.monotonic()
    if left <= 0:  # a batch's database was busy meanwhile, or the process did not run
        return Failure(sent=False, detail="the time ran out before the request was sent")
    result = send(left)
    if isinstance(result, Response) and result.status == 429:
        limiter.slow_down(turn, parse_retry_after(result.headers.get("retry-after")))
    return result


@dataclass(frozen=True, slots=True)
class Session:
    """Credential, addresses and limits, checked.

    `deadline` is in seconds, for all tries of one call together.
    """

    credential: Credential
    base_url: str
    link_base_url: str
    registry: Callable[[], Registry]
    deadline: float = 60.0
    ca_file: Path | None = None
    policy_hooks: tuple[PolicyHook, ...] = ()
    """The policies and observers that the config files name."""
    previous: Credential | None = None
    """The previous credential, during rotation: it opens what was sealed to it, and is never
    sent.
    """
    fixed_link: bool = False
    """Whether the machine's config fixes the link address."""
    batch_rows_per_hour: int | None = None
    """For how many rows of batches something may be created in an hour, as the machine's config
    says.
    """
    origin: tuple[tuple[str, str], ...] = ()
    """What each event of this session is part of, as names and values: a batch and its row."""
    custody_levels: CustodyLevels = field(default_factory=CustodyLevels, repr=False, compare=False)
    """Which keys the service said to have no custody level."""
    cleared: Collection[str] = ()
    """The names of the operations that policies have allowed, of those that change something."""
    transport: Transport = field(default_factory=lambda: Transport(), repr=False, compare=False)
    """Its connections, which sessions made from this one share."""
    gate: CustodyGate = field(init=False, repr=False, compare=False)
    """The check that every HTTP request passes before it is sent."""
    made_gate: InitVar[CustodyGate | None] = None
    """The gate, where one of these credentials has been made: it takes a millisecond."""

    def __post_init__(self, made_gate: CustodyGate | None) -> None:
        gate = made_gate or CustodyGate(self.credential, self.previous)
        object.__setattr__(self, "gate", gate)

    def start_budget(self) -> Budget:
        """Start the time and tries of one call."""
        return Budget(self.deadline, session=self)

    def send(self, operation: Operation[Any], timeout: float) -> Response | Failure:
        """Send one operation once, within `timeout` seconds.

        PolicyError for a change that policies have not allowed.

        One of two places where the service is touched. Raises CancelledCallError.
        """
        is_changing = operation.resend is not Resend.READ
        if is_changing and self.policy_hooks and operation.name not in self.cleared:
            raise PolicyError(
                f"internal: the policy was not asked about this action ({operation.name})"
            )
        finish = None if budget.watch is None else budget.watch(operation)
        send = partial(self._send_now, operation, is_changing=is_changing)
        try:
            result = send_in_turn(self.transport.get_limiter(self), timeout, send)
        except BaseException as error:
            if finish is not None:
                finish(None, error)
            raise
        if finish is not None:
            finish(result, None)
        return result

    def _send_now(
        self, operation: Operation[Any], timeout: float, *, is_changing: bool
    ) -> Response | Failure:
        with current().step(is_changing=is_changing):
            return self.transport.send(self, operation, timeout)

    def wait(self, seconds: float) -> None:
        """Wait, while the caller may cancel. Raises CancelledCallError."""
        budget.wait(seconds)

    def clear(self, operations: Collection[str]) -> Session:
        """Return this session, cleared for the operations that policies have allowed."""
        session = copy(self)  # it shares the gate, which is slow to make
        object.__setattr__(session, "cleared", operations)
        return session

    def make_entry_meta(self, kind: str) -> dict[str, Any]:
        """Return the notes that every outbox entry begins with, with a new idempotency key."""
        addresses = {"base_url": self.base_url, "link_base_url": self.link_base_url}
        return {"schema": 1, "kind": kind, "idempotency_key": str(uuid4()), **addresses}

    def check_clear(self, *texts: str | None) -> None:
        """Raise UsageError if a text that others can read contains one of our secrets.

        The text is not shown.

        In CI, others can write part of a title (such as a commit message), and GitLab expands a
        variable that it names, even the credential's.
        """
        joined = "\n".join(filter(None, texts))
        self.gate.check("a text that others can read", joined.encode(errors="surrogatepass"))

    def check_own(self, *values: str | Secret) -> None:
        """Raise UsageError if a value to be sealed contains the credential, which is never shared.

        `env:SEALPIPE_API_KEY` is refused by its name; this finds its file, a copy of it, and a
        whole environment.
        """
        if any(value and self.gate.owns(value) for value in values):
            raise UsageError(
                "a value holds sealpipe's own credential, which is never shared: nothing was sent",
                remedy="check its reference; to hand over a key, create a separate one",
            )

    @property
    def lacks_custody(self) -> bool:
        """Whether the service said lately that this key has no custody level."""
        return self.custody_levels.is_none(self.base_url, self.credential.key_id)

    def note_custody(self, *, has_custody: bool | None) -> None:
        """Remember what the service said of the key's custody level; None if it said nothing."""
        if has_custody is not None:
            self.custody_levels.note(self.base_url, self.credential.key_id, is_none=not has_custody)

    def with_origin(self, origin: tuple[tuple[str, str], ...]) -> Session:
        """Return this session with another origin of its events."""
        return replace(self, origin=origin, made_gate=self.gate)

    def with_transport(self, transport: Transport) -> Session:
        """Return this session on other connections."""
        return replace(self, transport=transport, made_gate=self.gate)

    def after_waiting(self, seconds: float) -> Session:
        """Return this session for a call that has waited so long.

        Its deadline is that much sooner.
        """
        if not seconds:
            return self
        session = copy(self)  # it shares the gate, which is slow to make
        object.__setattr__(session, "deadline", max(0.0, self.deadline - seconds))
        return session

    def close(self) -> None:
        """Close its connections, and release what plugins hold, if a registry was made."""
        self.transport.close()
        cache_info = getattr(self.registry, "cache_info", None)
        if cache_info is not None and cache_info().currsize:
            self.registry().close()


def open_credential(api_key: str | Secret | None, service_tag: str | None = None) -> Credential:
    """Parse the credential.

    SettingError if it is missing, malformed or contradicts the service tag.
    """
    if not api_key:
        raise SettingError(
            "SEALPIPE_API_KEY is not set, or empty", remedy=_REMEDIES["SEALPIPE_API_KEY"]
        )
    credential = Credential.parse(api_key)
    if service_tag is not None and parse_service_tag(service_tag) != credential.tag:
        raise SettingError(
            f"the service tag is {service_tag!r}, but the credential belongs to {credential.tag!r}",
            remedy="unset SEALPIPE_SERVICE_TAG: the credential contains the tag",
        )
    return credential


def open_session(
    config: Config,
    registry: Callable[[Path | None, CustodyGate, float], Registry],
    *,
    api_key: str | Secret | None,
    base_url: str | None,
    link_base_url: str | None,
    service_tag: str | None = None,
    deadline: float | timedelta | str = 60.0,
    ca_file: str | Path | None = None,
    api_key_previous: str | Secret | None = None,
    needs: Iterable[tuple[str, str]] = (),
    custody_levels: CustodyLevels | None = None,
) -> Session:
    """Open a session from the settings, the config files' policies and the machine's.

    `registry` gets the CA file, the gate and the deadline in seconds. `needs` are the stores that
    the session is for: if a setting is missing, the error also says what they lack. Raises
    SettingError, which names what is missing or wrong and never a value, and PolicyError for a
    setting that contradicts the machine's.
    """
    seconds = as_seconds(deadline)
    machine = config.machine
    hooks = read_policy_hooks(config.user, machine)
    values = {
        "base_url": base_url,
        "link_base_url": link_base_url,
        "ca_file": None if ca_file is None else os.fspath(ca_file),
    }
    if machine:
        from sealpipe import config_file  # most machines enforce nothing

        try:
            values = config_file.enforce_service(machine, values, os.environ)
        except PolicyError as error:
            _report_refusal(hooks, partial(registry, None, CustodyGate(), seconds), error)
            raise
        base_url, link_base_url, ca_file = (
            values["base_url"],
            values["link_base_url"],
            values["ca_file"],
        )
    authorities = None if ca_file is None else Path(ca_file)
    given = zip(_REMEDIES, (api_key, base_url, link_base_url), strict=True)
    if missing := [
        SettingError(f"{name} is not set, or empty", remedy=_REMEDIES[name])
        for name, it in given
        if not it
    ]:
        plugins = cache(partial(registry, authorities, CustodyGate(), seconds))
        raise join_errors([*missing, *find_errors(plugins, needs)])
    credential = open_credential(api_key, service_tag)
    if not seconds > 0:
        raise SettingError(
            "the deadline is not positive", remedy="give it as a positive number of seconds"
        )
    if seconds > MAX_DEADLINE:
        raise SettingError(
            f"the deadline is longer than {MAX_DEADLINE // 86400} days", remedy="give a shorter one"
        )
    previous = open_previous(api_key_previous) if api_key_previous else None
    gate = CustodyGate(credential, previous)
    session = Session(
        credential,
        parse_base_url(base_url or ""),
        parse_link_base_url(link_base_url or ""),
        # One registry for all calls: a plugin's set-up also serves the next call.
        cache(partial(registry, authorities, gate, seconds)),
        seconds,
        authorities,
        hooks,
        previous,
        fixed_link=bool(machine)
        and "link_base_url" in machine.get("enforce", {}).get("service", {}),
        batch_rows_per_hour=config.batch_rows_per_hour,
        custody_levels=custody_levels or CustodyLevels(),
        made_gate=gate,
    )
    # Before DNS and a proxy see their hosts.
    session.gate.check("an address", session.base_url.encode(), session.link_base_url.encode())
    return session


def _report_refusal(
    policy_hooks: tuple[PolicyHook, ...], registry: Callable[[], Registry], error: PolicyError
) -> None:
    if policy_hooks:
        policy.report_refusal(
            policy.LocalContext(policy_hooks, registry, CustodyGate()), "session", error
        )


def open_previous(text: str | Secret) -> Credential:
    """Parse the previous credential. CredentialError if it cannot open anything."""
    problem = ""
    try:
        credential = Credential.parse(text)
        if credential.custody_secret is not None:
            return credential
        problem = "it has no custody secret, and so opens nothing"
    except CredentialError as error:
        problem = error.message
    raise CredentialError(
        f"SEALPIPE_API_KEY_PREVIOUS: {problem}",
        remedy="set it to the whole credential, all three parts, or unset it",
    )
