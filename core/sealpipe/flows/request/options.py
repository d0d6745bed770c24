"""What a request asks for, checked before anything is stored or sent; and the request that comes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from sealpipe.errors import UsageError
from sealpipe.flows.journal import JournaledLink, load_deliveries
from sealpipe.flows.share.options import plan_delivery_of, resolve_expiry
from sealpipe.flows.store.targets import SinkTarget as StoreTarget
from sealpipe.flows.store.targets import map_keys, parse_targets
from sealpipe.prompts import Prompt, check_prompt, check_prompts, parse_prompt
from sealpipe.reference import Everything, Reference, Target
from sealpipe.secret import Secret
from sealpipe.state.entry import Entry
from sealpipe.state.receipt import Receipt, RequestKey
from sealpipe.times import parse_time
from sealpipe.wire import link

if TYPE_CHECKING:
    from sealpipe.flows.deliver.recipients import DeliveryPlan, Params
    from sealpipe.flows.deliver.send import Deliveries
    from sealpipe.wire.keys import KeyPair

DEFAULT_EXPIRY: Final = timedelta(days=30)
_DOMAIN: Final = re.compile(r"(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """What is to be asked for. `key` says whose key it is sealed to; `pair` is one that the caller keeps."""

    prompts: tuple[Prompt, ...]
    title: str
    key: RequestKey = "credential"
    pair: KeyPair | None = field(default=None, repr=False)
    seed_to: StoreTarget | None = None
    seed_key: str = ""
    """The key that the seed is stored under; empty where the target holds one value."""
    description: str | None = None
    expires_at: datetime | None = None
    max_submissions: int | None = None
    views: int | None = None
    passcode: Secret | Reference | None = field(default=None, repr=False)
    requires_login: bool | None = None
    requires_mfa: bool | None = None
    restricted_domains: tuple[str, ...] | None = None
    ip_whitelist: tuple[str, ...] | None = None
    organization_id: str | None = None
    delivery: DeliveryPlan | None = None


def plan_request(
    prompts: Sequence[Prompt | str],
    *,
    title: str | None = None,
    description: str | None = None,
    expires_in: timedelta | str | None = DEFAULT_EXPIRY,
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
    params: Params = (),
) -> RequestPlan:
    """Check what is asked for. A string among the prompts is `[ID=]PROMPT[:TYPE]`. Raises UsageError."""
    asked = check_prompts([parse_prompt(each) if isinstance(each, str) else check_prompt(each) for each in prompts])
    for name, number in (("max_submissions", max_submissions), ("views", views)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is less than one", remedy="leave it out for no limit")
    code: Secret | Reference | None = None
    if passcode is not None:
        from sealpipe.flows.passcode import parse_passcode  # most requests have none

        code = parse_passcode(passcode, "name one that you know, such as env:CODE, and tell it to the person")
    pair = None if isinstance(key, str) else key
    kind: RequestKey = key if isinstance(key, str) else "given"
    target = _seed_target(kind, seed_to)
    return RequestPlan(
        asked,
        title if title else ", ".join(each.text for each in asked)[:200],
        kind,
        pair,
        target,
        "" if target is None else _seed_key(target),
        description,
        resolve_expiry(expires_in, expires_at, "the request"),
        max_submissions,
        views,
        code,
        requires_login,
        requires_mfa,
        None if not restricted_domains else tuple(map(parse_domain, restricted_domains)),
        None if not ip_whitelist else tuple(map(parse_address, ip_whitelist)),
        organization_id,
        plan_delivery_of(send, (), params, None, with_passcode=passcode is not None),
    )


def parse_domain(text: str) -> str:
    """A domain that answers may come from, in lower case. Raises UsageError."""
    name = text.lower()
    if not _DOMAIN.fullmatch(name):
        raise UsageError(f"{text[:60]!r} is no domain", remedy="write it as example.com")
    return name


def parse_address(text: str) -> str:
    """An address, or a range of them, that answers may come from. Raises UsageError."""
    from ipaddress import ip_network  # most requests are restricted to none

    try:
        network = ip_network("" if "%" in text else text, strict=True)  # a zone means something on one machine only
    except ValueError:
        raise UsageError(
            f"{text[:60]!r} is no IP address or range", remedy="write it as 192.0.2.7 or 192.0.2.0/24"
        ) from None
    return str(network.network_address) if network.num_addresses == 1 else str(network)


def _seed_target(kind: RequestKey, seed_to: Reference | str | None) -> StoreTarget | None:
    if seed_to is None:
        return None
    if kind != "new":
        raise UsageError(
            "there is no fresh seed to store: the request is sealed to a key that exists already",
            remedy="add --key new, or leave --seed-to out",
        )
    (target,) = parse_targets([seed_to])
    for name in ("optional", "trim", "decode"):
        if target.ref.param(name) is not None:
            raise UsageError(f"{target.shown}: {name}= means nothing for a seed", remedy="leave it out")
    return target


def _seed_key(target: StoreTarget) -> str:
    """The KEY of `#KEY`; nothing without a selector."""
    if target.ref.selector is None:
        return ""
    found = [] if any(isinstance(item, Everything) for item in target.ref.selector) else map_keys(target, None)
    if len(found) != 1:
        raise UsageError(f"{target.shown}: the seed is one value", remedy="write #KEY, or no selector")
    return found[0].key


@dataclass(slots=True)
class SecureRequest(JournaledLink):
    """A request that exists. The collect link holds no key: whoever has it can answer, and read nothing.

    `public_key` is base64url of 65 bytes. `access_link` opens every submission, so it is a secret; it is there for
    a fresh key only. `seed` is a reference to a fresh key's seed, where that was put away.
    """

    kind: ClassVar[str] = "request"

    collect_link: str
    short_code: str
    expires_at: datetime | None
    public_key: str
    key: RequestKey
    prompts: tuple[Prompt, ...]
    outcome: Literal["created", "replayed"]
    title: str | None = None
    seed: str | None = None
    access_link: Secret | None = field(default=None, repr=False)
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    deliveries: Deliveries | None = field(default=None, repr=False)
    """What is to be sent, and how far that is; None for nothing."""
    expiry_known: bool = True
    """Whether the service said when it ends; where it did not, `expires_at` is None, too."""

    @property
    def link(self) -> Secret:
        """What its recipients are sent: the collect link."""
        return Secret(self.collect_link)

    @property
    def receipt(self) -> Receipt:
        """What collecting needs to know: nothing secret, and no link."""
        return Receipt(self.short_code, self.public_key, self.prompts, self.key, self.expires_at, self.title, self.seed)


def request_from_answer(meta: Mapping[str, Any], answer: Mapping[str, Any], entry: Entry | None) -> SecureRequest:
    """The request that an answer tells of."""
    code, ends = answer["short_code"], answer["expires_at"]
    return SecureRequest(
        link.collect_link(meta["link_base_url"], code),
        code,
        None if ends is None else parse_time(ends),
        meta["public_key"],
        meta["key"],
        tuple(Prompt(*row) for row in meta["prompts"]),
        "replayed" if answer["replayed"] else "created",
        meta["title"],
        meta["seed"],
        remarks=_describe_remarks(meta),
        entry=entry,
        deliveries=load_deliveries(meta, entry),
        expiry_known=answer.get("expiry_known", True),
    )


def _describe_remarks(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """What people are told of a request, whichever process finishes it."""
    told = []
    if meta["passcode"]:
        told.append("the passcode was sent to the service: it gates the form, and encrypts nothing")
    if meta["seed"]:
        told.append(f"the seed of its key is {meta['seed']}")
    return tuple(told)
