"""The options of a request, checked before anything is stored or sent, and the key pair that submissions are sealed to.

The seed of a new key pair is stored before the request is created.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from sealpipe.errors import PluginError, ReferenceSyntaxError, Remedy, UsageError
from sealpipe.flows.resolve import resolve_value
from sealpipe.flows.session import Session
from sealpipe.flows.share import Need, list_needs, plan_optional_delivery, resolve_expiry, set_checked
from sealpipe.flows.store import SinkTarget, map_keys, parse_targets
from sealpipe.flows.store.write import SinkWrite, describe_writes, is_write_only, write_to_sink
from sealpipe.plugin import SinkField
from sealpipe.prompts import Prompt, check_prompt, check_prompts, parse_prompt
from sealpipe.reference import Everything, Key, Reference, Target
from sealpipe.secret import Secret
from sealpipe.values import parse_name
from sealpipe.wire.encoding import encode_base64url

if TYPE_CHECKING:
    from pathlib import Path

    from sealpipe.flows.deliver import DeliveryPlan, Params
    from sealpipe.state.receipt import RequestKey
    from sealpipe.wire.keys import KeyPair


_DOMAIN: Final = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, repr=False, eq=False)
class RequestOptions:
    """What to ask for, and how: the arguments of `Client.request` and the options of `sealpipe request`.

    Checked when it is made, as far as possible without a source, a sink or the service. Raises UsageError.
    """

    prompts: Sequence[Prompt | str]
    """What to ask for; a string is `[ID=]PROMPT[:TYPE]`."""
    _: KW_ONLY
    name: str | None = None
    """The owner's name for it, which also fills `{name}` in `seed_to`. The service never gets it."""
    title: str | None = None
    """The title. The service can read it. None: the prompts."""
    description: str | None = None
    """The description. The service can read it."""
    expires_in: timedelta | str | None = timedelta(days=30)
    """How long the collect link works; None: the service's own default, 30 days."""
    expires_at: datetime | None = None
    """When the collect link expires; it wins over `expires_in`, and once checked it stands for both."""
    max_submissions: int | None = None
    """How many submissions to accept; None: no limit."""
    views: int | None = None
    """How often the form can be opened; None: no limit."""
    passcode: str | Secret | Reference | None = None
    """The form's passcode, or where it is read. It is sent to the service and encrypts nothing."""
    key: RequestKey | KeyPair = "credential"
    """The key that submissions are sealed to: the credential's, a new one, or the caller's key pair."""
    seed_to: Reference | str | None = None
    """The sink that stores a new key's seed."""
    requires_login: bool | None = None
    """Whether submitters have to sign in."""
    requires_mfa: bool | None = None
    """Whether they have to sign in with a second factor."""
    restricted_domains: Sequence[str] | None = None
    """The email domains that submitters must sign in with; None or an empty list: any."""
    ip_whitelist: Sequence[str] | None = None
    """The IP addresses and ranges that submissions may come from; None or an empty list: any."""
    organization_id: str | None = None
    """The organisation that the request belongs to."""
    send: Sequence[Target | str] = ()
    """The channels that deliver the collect link."""
    params: Params | None = None
    """The references that give the values of `{NAME}` in channels, by name."""
    outbox: str | Path | None = None
    """The folder of the outbox, for a call from Python; None: nothing is written to disk."""

    form: tuple[Prompt, ...] = field(init=False)
    """`prompts`, parsed."""
    heading: str = field(init=False)
    """`title`, or the prompts."""
    code: Secret | Reference | None = field(init=False, default=None)
    """`passcode`, checked."""
    key_kind: RequestKey = field(init=False)
    """The kind of `key`."""
    key_pair: KeyPair | None = field(init=False)
    """`key`, if it is the caller's key pair."""
    seed_target: SinkTarget | None = field(init=False)
    """`seed_to`, parsed."""
    seed_key: str = field(init=False)
    """The key that the seed is stored under; empty if the target holds one value."""
    delivery: DeliveryPlan | None = field(init=False)
    """The recipients of the link; None if there are none."""

    def __post_init__(self) -> None:
        """Check everything, as far as possible without a source, a sink or the service."""
        form = check_prompts(
            [parse_prompt(each) if isinstance(each, str) else check_prompt(each) for each in self.prompts]
        )
        set_checked(self, form=form, heading=self.title or ", ".join(each.text for each in form)[:200])
        for name, number in (("max_submissions", self.max_submissions), ("views", self.views)):
            if number is not None and number < 1:
                raise UsageError(f"{name} is less than one", remedy="leave it out for no limit")
        if self.passcode is not None:
            from sealpipe.flows.passcode import parse_passcode  # most requests have none

            remedy = "name one that you know, such as env:CODE, and tell it to the person"
            code = parse_passcode(self.passcode, remedy)
            set_checked(self, passcode=code, code=code)
        kind: RequestKey = self.key if isinstance(self.key, str) else "given"
        if self.name is not None:
            parse_name(self.name)
        target = _parse_seed_target(kind, self.seed_to, self.name)
        set_checked(self, key_kind=kind, key_pair=None if isinstance(self.key, str) else self.key)
        set_checked(self, seed_target=target, seed_key="" if target is None else _read_seed_key(target))
        set_checked(
            self,
            expires_at=resolve_expiry(self.expires_in, self.expires_at, "the request"),
            restricted_domains=tuple(map(parse_domain, self.restricted_domains or ())) or None,
            ip_whitelist=tuple(map(parse_address, self.ip_whitelist or ())) or None,
            delivery=plan_optional_delivery(
                self.send, (), self.params or (), None, with_passcode=self.passcode is not None
            ),
        )

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources, sinks and channels that it uses."""
        return list_needs([self.code], [] if self.seed_target is None else [self.seed_target.ref], self.delivery)


def parse_domain(text: str) -> str:
    """Return a domain that submitters may sign in with, in lower case. Raises UsageError."""
    name = text.lower()
    if not _DOMAIN.fullmatch(name):
        raise UsageError(f"{text[:60]!r} is not a domain", remedy="write it as example.com")
    return name


def parse_address(text: str) -> str:
    """Return an address, or a range of addresses, that submissions may come from. Raises UsageError."""
    from ipaddress import ip_network  # most requests are not restricted

    try:
        network = ip_network("" if "%" in text else text, strict=True)  # a zone is only valid on one machine
    except ValueError:
        raise UsageError(
            f"{text[:60]!r} is not an IP address or range", remedy="write it as 192.0.2.7 or 192.0.2.0/24"
        ) from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _parse_seed_target(kind: RequestKey, seed_to: Reference | str | None, name: str | None) -> SinkTarget | None:
    if seed_to is None:
        return None
    if kind != "new":
        raise UsageError(
            "--seed-to stores the seed of a new key, but the request uses an existing key",
            remedy=Remedy("add --key new, or leave --seed-to out", python='write key="new", or leave seed_to out'),
        )
    (target,) = parse_targets([seed_to], name=name)
    for param in ("optional", "trim", "decode"):
        if target.ref.param(param) is not None:
            raise UsageError(f"{target.text}: {param}= does not apply to a seed", remedy="leave it out")
    return target


def _read_seed_key(target: SinkTarget) -> str:
    """Return the KEY of `#KEY`; empty without a selector."""
    if target.ref.selector is None:
        return ""
    found = [] if any(isinstance(item, Everything) for item in target.ref.selector) else map_keys(target, None)
    if len(found) != 1:
        raise UsageError(f"{target.text}: the seed is one value", remedy="write #KEY, or no selector")
    return found[0].key


class ChosenKey(NamedTuple):
    """A key pair, and the reference to its seed if that was stored."""

    pair: KeyPair
    seed: str | None = None


def choose_key(options: RequestOptions, session: Session) -> ChosenKey:
    """Choose the key pair of a request. Nothing is stored yet. Raises UsageError."""
    if options.key_pair is not None:
        return ChosenKey(options.key_pair)
    from sealpipe.wire import keys  # loads elliptic curves, which ending a request does not need

    tag = session.credential.tag
    if options.key_kind == "new":
        if options.seed_target is not None:
            _check_target(options, session)
        pair = keys.from_seed(os.urandom(32), tag=tag)
        return ChosenKey(pair)
    if options.key_kind != "credential":
        raise UsageError("the request's key is neither the credential's nor a new one", remedy='key="credential"')
    custody = session.credential.custody_secret
    if custody is None:
        raise UsageError(
            "the credential has no custody secret, so it could not decrypt submissions",
            remedy=Remedy(
                "use the whole credential, all three parts; or --key new with --seed-to SINK",
                python='use the whole credential, all three parts; or key="new" with seed_to=SINK',
            ),
        )
    pair = keys.from_custody_secret(custody.reveal(), tag=tag)
    return ChosenKey(pair)


def store_seed(options: RequestOptions, session: Session, chosen: ChosenKey) -> ChosenKey:
    """Store the seed of a new key in its target, and read it back. Raises PluginError, UsageError."""
    if options.seed_target is None:
        return chosen
    seed = Secret(encode_base64url(bytes(chosen.pair.seed)))
    write_to_sink(session, _make_seed_write(options, seed, encode_base64url(chosen.pair.public_key)[:40]))
    reference = _make_source_reference(options)
    if not _has_source(session, reference):
        return chosen
    stored = resolve_value(reference, session.registry)
    if stored != seed:
        raise PluginError(
            f"{reference} does not return the seed that was stored there; no request was created",
            locator=str(reference),
            remedy=Remedy(
                "check the target, and use another one for --seed-to",
                python="check the target, and use another one for seed_to",
            ),
        )
    return chosen._replace(seed=str(reference))


def _check_target(options: RequestOptions, session: Session) -> None:
    assert options.seed_target is not None  # noqa: S101 - its caller checked
    write = _make_seed_write(options, Secret(""), "")
    if is_write_only(session, write.ref):
        raise UsageError(
            f"{options.seed_target.text} cannot be read back, so the seed would be lost",
            remedy=Remedy(
                "use a readable target for --seed-to, such as vault:secret/requests/acme#seed",
                python='use a readable target, such as seed_to="vault:secret/requests/acme#seed"',
            ),
        )
    describe_writes(session, [write])


def _make_seed_write(options: RequestOptions, seed: Secret, marker: str) -> SinkWrite:
    assert options.seed_target is not None  # noqa: S101 - its callers checked
    return SinkWrite(
        options.seed_target.fill({}), (SinkField(options.seed_key, seed),), options.seed_target.mode, marker
    )


def _make_source_reference(options: RequestOptions) -> Reference:
    """Return the target as a reference that a source can read."""
    assert options.seed_target is not None  # noqa: S101 - as above
    ref, key = options.seed_target.fill({}), options.seed_key
    return Reference(ref.name, ref.body, ref.params, (Key(key),) if key else None)


def _has_source(session: Session, reference: Reference) -> bool:
    try:
        session.registry().locate(reference)
    except ReferenceSyntaxError:
        return False
    return True
