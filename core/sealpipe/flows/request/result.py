"""A request that exists, as whoever asked gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sealpipe.flows.journal import JournaledLink, load_deliveries
from sealpipe.prompts import Prompt
from sealpipe.secret import Secret
from sealpipe.state.entry import Entry
from sealpipe.state.receipt import Receipt, RequestKey
from sealpipe.times import parse_time
from sealpipe.wire import link

if TYPE_CHECKING:
    from sealpipe.flows.deliver.send import Deliveries


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
