"""Plans a request before anything is sent, and chooses the key pair of its submissions.

The seed of a new key pair is stored before the request is created.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Final, NamedTuple

from sealpipe.delivery.recipients import DeliveryPlan, Params
from sealpipe.errors import PluginError, ReferenceSyntaxError, Remedy, UsageError, quote_input
from sealpipe.parsing import parse_name
from sealpipe.plugin import SinkField
from sealpipe.prompts import Prompt, check_prompt, check_prompts, parse_prompt
from sealpipe.reference import Everything, Key, Reference, Target
from sealpipe.requirements import Need
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.share.options import list_needs, plan_optional_delivery, resolve_expiry
from sealpipe.sinks.targets import SinkTarget, map_keys, parse_targets
from sealpipe.sinks.write import SinkWrite, describe_writes, is_write_only, write_to_sink
from sealpipe.sources.passcode import parse_passcode
from sealpipe.sources.resolve import resolve_value
from sealpipe.state.receipt import RequestKey
from sealpipe.wire import keys
from sealpipe.wire.encoding import encode_base64url
from sealpipe.wire.keys import KeyPair

_DOMAIN: Final = re.compile(
    r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?"
)


@dataclass(frozen=True, repr=False, eq=False)
class RequestJob:
    """What to ask for, and how: checked and parsed. `plan_request` makes it."""

    prompts: tuple[Prompt, ...]
    name: str | None
    """The owner's name for it. The service never gets it."""
    title: str
    """The title that was given, or the prompts."""
    description: str | None
    expires_at: datetime | None
    """When the collect link expires; None: the service's own default, 30 days."""
    max_submissions: int | None
    views: int | None
    passcode: Secret | Reference | None
    """The form's passcode, or where it is read. It is sent to the service and encrypts nothing."""
    key: RequestKey
    """The key that submissions are sealed to: the credential's, a new one, or the caller's."""
    key_pair: KeyPair | None
    """The caller's key pair."""
    seed_target: SinkTarget | None
    """The sink that stores a new key's seed."""
    seed_key: str
    """The key that the seed is stored under; empty if the target holds one value."""
    requires_login: bool | None
    requires_mfa: bool | None
    restricted_domains: tuple[str, ...] | None
    ip_whitelist: tuple[str, ...] | None
    organization_id: str | None
    delivery: DeliveryPlan | None
    """The recipients of the link; None if there are none."""

    @property
    def needs(self) -> tuple[Need, ...]:
        """The sources, sinks and channels that it uses."""
        return list_needs(
            [self.passcode],
            [] if self.seed_target is None else [self.seed_target.ref],
            self.delivery,
        )


def plan_request(
    prompts: Sequence[Prompt | str],
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    expires_in: timedelta | str | None = timedelta(days=30),
    expires_at: datetime | None = None,
    max_submissions: int | None = None,
    views: int | None = None,
    passcode: str | Secret | Reference | None = None,
    key: RequestKey | KeyPair = "credential",
    seed_to: Reference | str | None = None,
    requires_login: bool | None = None,
    requires_mfa: bool | None = None,
    restricted_domains: Sequence[str] | None = None,
    ip_whitelist: Sequence[str] | None = None,
    organization_id: str | None = None,
    send: Sequence[Target | str] = (),
    params: Params | None = None,
) -> RequestJob:
    """Plan a request, with the arguments of `Client.request`.

    Checks what they say together, as far as possible without a source, a sink or the service; each
    by itself was checked where it came in. Raises UsageError.
    """
    form = check_prompts(
        [parse_prompt(each) if isinstance(each, str) else check_prompt(each) for each in prompts]
    )
    code: Secret | Reference | None = None
    if passcode is not None:
        code = parse_passcode(
            passcode, "name one that you know, such as env:CODE, and tell it to the person"
        )
    kind: RequestKey = key if isinstance(key, str) else "given"
    if name is not None:
        parse_name(name)
    target = _parse_seed_target(kind, seed_to, name)
    return RequestJob(
        prompts=form,
        name=name,
        title=title or ", ".join(each.text for each in form)[:200],
        description=description,
        key=kind,
        key_pair=None if isinstance(key, str) else key,
        seed_target=target,
        seed_key="" if target is None else _read_seed_key(target),
        expires_at=resolve_expiry(expires_in, expires_at, "the request"),
        max_submissions=max_submissions,
        views=views,
        passcode=code,
        requires_login=requires_login,
        requires_mfa=requires_mfa,
        restricted_domains=tuple(map(parse_domain, restricted_domains or ())) or None,
        ip_whitelist=tuple(map(parse_address, ip_whitelist or ())) or None,
        organization_id=organization_id,
        delivery=plan_optional_delivery(
            send, (), params or (), None, with_passcode=code is not None
        ),
    )


def parse_domain(text: str) -> str:
    """Return a domain that submitters may sign in with, in lower case. Raises UsageError."""
    name = text.lower()
    if not _DOMAIN.fullmatch(name):
        raise UsageError(f"{quote_input(text)} is not a domain", remedy="write it as example.com")
    return name


def parse_address(text: str) -> str:
    """Return an address, or a range of addresses, that submissions may come from.

    Raises UsageError.
    """
    try:
        # A zone is only valid on one machine.
        network = ip_network("" if "%" in text else text, strict=True)
    except ValueError:
        raise UsageError(
            f"{quote_input(text)} is not an IP address or range",
            remedy="write it as 192.0.2.7 or 192.0.2.0/24",
        ) from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _parse_seed_target(
    kind: RequestKey, seed_to: Reference | str | None, name: str | None
) -> SinkTarget | None:
    if seed_to is None:
        return None
    if kind != "new":
        raise UsageError(
            "--seed-to stores the seed of a new key, but the request uses an existing key",
            remedy=Remedy(
                "add --key new, or leave --seed-to out",
                python='write key="new", or leave seed_to out',
            ),
        )
    (target,) = parse_targets([seed_to], name=name)
    for param in ("optional", "trim", "decode"):
        if target.ref.param(param) is not None:
            raise UsageError(
                f"{target.text}: {param}= does not apply to a seed", remedy="leave it out"
            )
    return target


def _read_seed_key(target: SinkTarget) -> str:
    """Return the KEY of `#KEY`; empty without a selector."""
    if target.ref.selector is None:
        return ""
    found = (
        []
        if any(isinstance(item, Everything) for item in target.ref.selector)
        else map_keys(target, None)
    )
    if len(found) != 1:
        raise UsageError(
            f"{target.text}: the seed is one value", remedy="write #KEY, or no selector"
        )
    return found[0].key


class ChosenKey(NamedTuple):
    """A key pair, and the reference to its seed if that was stored."""

    pair: KeyPair
    seed: str | None = None


def choose_key(job: RequestJob, session: Session) -> ChosenKey:
    """Choose the key pair of a request. Nothing is stored yet. Raises UsageError."""
    if job.key_pair is not None:
        return ChosenKey(job.key_pair)
    tag = session.credential.tag
    if job.key == "new":
        if job.seed_target is not None:
            _check_target(job, session)
        pair = keys.from_seed(os.urandom(32), tag=tag)
        return ChosenKey(pair)
    if job.key != "credential":
        raise UsageError(
            "the request's key is neither the credential's nor a new one", remedy='key="credential"'
        )
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


def store_seed(job: RequestJob, session: Session, chosen: ChosenKey) -> ChosenKey:
    """Store the seed of a new key in its target, and read it back.

    Raises PluginError, UsageError.
    """
    if job.seed_target is None:
        return chosen
    seed = Secret(encode_base64url(bytes(chosen.pair.seed)))
    write_to_sink(
        session, _make_seed_write(job, seed, encode_base64url(chosen.pair.public_key)[:40])
    )
    reference = _make_source_reference(job)
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


def _check_target(job: RequestJob, session: Session) -> None:
    assert job.seed_target is not None  # noqa: S101 - its caller checked
    write = _make_seed_write(job, Secret(""), "")
    if is_write_only(session, write.ref):
        raise UsageError(
            f"{job.seed_target.text} cannot be read back, so the seed would be lost",
            remedy=Remedy(
                "use a readable target for --seed-to, such as vault:secret/requests/acme#seed",
                python='use a readable target, such as seed_to="vault:secret/requests/acme#seed"',
            ),
        )
    describe_writes(session, [write])


def _make_seed_write(job: RequestJob, seed: Secret, marker: str) -> SinkWrite:
    assert job.seed_target is not None  # noqa: S101 - its callers checked
    return SinkWrite(
        job.seed_target.fill({}), (SinkField(job.seed_key, seed),), job.seed_target.mode, marker
    )


def _make_source_reference(job: RequestJob) -> Reference:
    """Return the target as a reference that a source can read."""
    assert job.seed_target is not None  # noqa: S101 - as above
    ref, key = job.seed_target.fill({}), job.seed_key
    return Reference(ref.name, ref.body, ref.params, (Key(key),) if key else None)


def _has_source(session: Session, reference: Reference) -> bool:
    try:
        session.registry().locate(reference)
    except ReferenceSyntaxError:
        return False
    return True
