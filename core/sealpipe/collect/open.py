"""Load the keys that open a request's submissions, and decrypt each submission once.

A key comes from the credential, the previous one, a seed, or an access link. No error contains
anything of a submission.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from sealpipe.api.operation import Credential
from sealpipe.api.requests import Submission
from sealpipe.collect.options import CollectJob, KeyChoice
from sealpipe.collect.results import Identity, OpenedSubmission, UnreadableSubmission
from sealpipe.errors import (
    EncodingError,
    FragmentError,
    PayloadTooLargeError,
    PublicKeyMismatchError,
    ReferenceSyntaxError,
    Remedy,
    UsageError,
    WireError,
    WrongKeyError,
)
from sealpipe.parsing import fill_name, format_optional_time
from sealpipe.plugin import SinkField
from sealpipe.prompts import Prompt
from sealpipe.reference import Reference, parse
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sinks.targets import MisfitError, make_plain_name, select_values
from sealpipe.sinks.write import SinkWrite, merge_writes
from sealpipe.sources.resolve import resolve_secret
from sealpipe.state.receipt import Receipt
from sealpipe.wire import fields, keys, link, sealed_box
from sealpipe.wire.encoding import decode_base64url, encode_base64url
from sealpipe.wire.fields import Field

_HEX = re.compile(r"[0-9A-Fa-f]{64}", re.ASCII)


class OpeningKey(NamedTuple):
    """A key pair and its origin: `credential`, `previous`, `given` or `receipt`."""

    name: str
    pair: keys.KeyPair

    @property
    def public_key(self) -> str:
        """The public key, base64url of 65 bytes."""
        return encode_base64url(self.pair.public_key)


def load_keys(
    session: Session, key: KeyChoice, receipt: Receipt | None = None
) -> tuple[OpeningKey, ...]:
    """Load all keys that may open a request's submissions, the likeliest first.

    Raises UsageError, PluginError.
    """
    if isinstance(key, keys.KeyPair):
        return (OpeningKey("given", key),)
    if key != "credential":
        return (OpeningKey("given", _load_given(session, key)),)
    opening_keys: list[OpeningKey] = []
    if receipt is not None and receipt.key == "new" and receipt.seed is not None:
        opening_keys.append(OpeningKey("receipt", _load_given(session, receipt.seed)))
    for name, credential in (("credential", session.credential), ("previous", session.previous)):
        if credential is not None and credential.custody_secret is not None:
            opening_keys.append(OpeningKey(name, _derive_key_pair(credential)))
    if not opening_keys:
        raise UsageError(
            "the credential has no custody secret, so it cannot decrypt submissions",
            remedy=Remedy(
                (
                    "use the whole credential, all three parts; or name the request's own key "
                    "with --key REF"
                ),
                python=(
                    "use the whole credential, all three parts; or name the request's own key: "
                    "key=REF"
                ),
            ),
        )
    return tuple(opening_keys)


def check_key(
    short_code: str,
    public_key: str | None,
    receipt: Receipt | None,
    available_keys: Sequence[OpeningKey],
) -> None:
    """Check that a request's public key, by service and receipt, is one of `available_keys`.

    `public_key` is None if the service does not give it, as for an ended request. Raises
    PublicKeyMismatchError, WrongKeyError.
    """
    our_public_keys = [each.public_key for each in available_keys]
    if receipt is not None and receipt.public_key not in our_public_keys:
        raise WrongKeyError(
            "wrong-key",
            f"the receipt of {short_code} names a key that is not available",
            remedy=Remedy(
                "name that key with --key REF, or set SEALPIPE_API_KEY_PREVIOUS while rotating",
                python=(
                    "name that key: key=REF; while rotating, make the client with api_key_previous"
                ),
            ),
        )
    if public_key is None:
        return
    if receipt is not None and public_key != receipt.public_key:
        mismatch = PublicKeyMismatchError(
            f"the service shows {short_code} with another public key than its receipt: "
            "submissions to that key could "
            "not be decrypted",
            remedy=Remedy(
                (
                    "do not use its link any more; earlier submissions open with --key once "
                    "the request has ended"
                ),
                python=(
                    "do not use its link any more; earlier submissions open with key=REF once "
                    "the request has ended"
                ),
            ),
        )
        mismatch.short_code = short_code
        raise mismatch
    if public_key not in our_public_keys:
        raise WrongKeyError(
            "wrong-key",
            f"submissions to {short_code} are encrypted to a key that is not available",
            remedy=Remedy(
                "name its key with --key REF; check that the credential is the one that created it",
                python=(
                    "name its key: key=REF; check that the credential is the one that created it"
                ),
            ),
        )


def key_pair(text: Secret, tag: str) -> keys.KeyPair:
    """Return the key pair of a seed (base64url or hex), access link, fragment or credential.

    Raises UsageError.
    """
    raw = text.reveal().strip()
    try:
        if "_sk_live_" in raw:
            return _derive_key_pair(Credential.parse(raw))
        if "#" in raw or len(raw) == 44:
            return keys.from_seed(link.decode_fragment(raw.rpartition("#")[2]), tag=tag)
        # unambiguous: 64 characters of base64url would be 48 bytes
        seed = bytes.fromhex(raw) if _HEX.fullmatch(raw) else decode_base64url(raw)
        if len(seed) == 32:
            return keys.from_seed(seed, tag=tag)
    except (FragmentError, EncodingError):
        pass
    raise UsageError(
        "the key is neither a seed, nor an access link, nor a credential with all three parts",
        remedy=(
            "a seed has 43 characters of base64url, or 64 of hex; copy it, or the whole link, again"
        ),
    )


def _load_given(session: Session, key: str | Secret | Reference) -> keys.KeyPair:
    text: Secret | None
    if isinstance(key, Secret):
        text = key
    else:
        ref = parse(key, "the key") if isinstance(key, str) else key
        text = resolve_secret(ref, "a key", session.registry)
    if text is None:
        raise ReferenceSyntaxError(
            "the key is not optional", remedy="remove ?optional=1 from its reference"
        )
    return key_pair(text, session.credential.tag)


def _derive_key_pair(credential: Credential) -> keys.KeyPair:
    if credential.custody_secret is None:
        raise UsageError(
            "that credential has no custody secret",
            remedy="use the whole credential, all three parts",
        )
    return keys.from_custody_secret(credential.custody_secret.reveal(), tag=credential.tag)


class SubmissionSet:
    """The submissions of a request, by identity."""

    def __init__(
        self, job: CollectJob, folder: Path | None, keys: Sequence[OpeningKey], tag: str
    ) -> None:
        self._job, self._folder, self._keys, self._tag = job, folder, keys, tag
        self._seen: SubmissionsByIdentity = {}
        self._items: dict[Identity, Submission] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, items: Iterable[Submission]) -> None:
        """Decrypt new submissions, and check that they fit the targets."""
        new = {item.identity: item for item in items if item.identity not in self._items}
        self._items |= new
        open_new(new.values(), self._keys, self._tag, self._seen)
        for identity in new:
            each = self._seen[identity]
            if isinstance(each, OpenedSubmission):
                try:
                    plan_writes(self._job, each, self._folder)
                except MisfitError as misfit:
                    self._seen[identity] = UnreadableSubmission(
                        each.short_code, each.created_at, str(misfit)
                    )

    @property
    def known(self) -> frozenset[Identity]:
        """The identities of all submissions."""
        return frozenset(self._items)

    @property
    def usable(self) -> list[OpenedSubmission]:
        """The submissions that can be used, in the service's order."""
        return [each for each in self._seen.values() if isinstance(each, OpenedSubmission)]

    @property
    def unreadable(self) -> tuple[UnreadableSubmission, ...]:
        """The submissions that cannot be decrypted, or do not match the targets."""
        return tuple(each for each in self._seen.values() if isinstance(each, UnreadableSubmission))

    def select(self, identities: Collection[Identity]) -> list[OpenedSubmission]:
        """Return the usable ones of these submissions."""
        outcomes = (self._seen[identity] for identity in identities)
        return [each for each in outcomes if isinstance(each, OpenedSubmission)]

    def select_unusable(self, markers: Collection[str] = ()) -> list[Submission]:
        """Return the ciphertext of unusable submissions, with `markers` only of those."""
        return [
            self._items[identity]
            for identity, each in self._seen.items()
            if (each.marker in markers if isinstance(each, OpenedSubmission) else not markers)
        ]


SubmissionsByIdentity = dict[Identity, OpenedSubmission | UnreadableSubmission]
"""Each submission's result, by identity, so that nothing is decrypted twice."""


def open_new(
    items: Iterable[Submission], keys: Sequence[OpeningKey], tag: str, seen: SubmissionsByIdentity
) -> None:
    """Decrypt new submissions. A repeated submission counts once."""
    for item in items:
        if item.identity not in seen:
            seen[item.identity] = open_submission(item, keys, tag)


def open_submission(
    item: Submission, keys: Sequence[OpeningKey], tag: str
) -> OpenedSubmission | UnreadableSubmission:
    """Decrypt one submission with the first key that opens it."""
    reason = "it has no content"
    for each in keys if item.data else ():
        try:
            payload = sealed_box.open(each.pair, item.data or "", tag=tag)
        except WireError as error:
            reason = f"it cannot be decrypted ({error.reason})"
            continue
        try:
            found = tuple(fields.hidden(field) for field in fields.load(payload))
        except (WireError, PayloadTooLargeError) as error:
            reason = f"it is no array of fields ({getattr(error, 'reason', 'too-large')})"
            break
        return OpenedSubmission(
            item.short_code,
            item.created_at,
            found,
            make_plain_name(item.short_code, item.data or ""),
        )
    return UnreadableSubmission(item.short_code, item.created_at, reason)


MAX_FILES: Final = 1000
"""Maximum number of fields of a submission that are stored as files in a folder."""


def plan_writes(
    job: CollectJob, received: OpenedSubmission, folder: Path | None
) -> list[SinkWrite]:
    """Plan the writes of a submission.

    Raises MisfitError if it does not fit a target; UsageError.
    """
    placeholders = job.make_placeholders(received.marker)
    writes = []
    for target, mappings in job.mappings:
        sink_fields = select_values(target, mappings, received.fields)
        if sink_fields:
            writes.append(
                SinkWrite(
                    target.fill(placeholders), tuple(sink_fields), target.mode, received.marker
                )
            )
    if folder is not None:
        folder = Path(fill_name(str(folder), job.name, "--dir"))
        writes.append(_write_to_folder(folder, received, job.prompts))
    return merge_writes(writes)


def name_fields(fields: Sequence[Field], prompts: Sequence[Prompt] | None) -> list[str]:
    """Name each field by the id of its prompt, else by its number."""
    prompt_ids = {prompt.text: prompt.id for prompt in prompts or ()}
    return [prompt_ids.pop(field.key, f"field-{number}") for number, field in enumerate(fields, 1)]


def _write_to_folder(
    folder: Path, received: OpenedSubmission, prompts: Sequence[Prompt] | None
) -> SinkWrite:
    if len(received.fields) > MAX_FILES:
        raise MisfitError(
            f"it has {len(received.fields)} fields, but a directory accepts at most {MAX_FILES}"
        )
    names = name_fields(received.fields, prompts)
    rows = [
        {"file": name, "key": field.key, "type": field.type}
        for name, field in zip(names, received.fields, strict=True)
    ]
    created = format_optional_time(received.created_at)
    index = {"schema": 1, "short_code": received.short_code, "created_at": created, "fields": rows}
    stored = [
        SinkField(name, field.value) for name, field in zip(names, received.fields, strict=True)
    ]
    stored.append(SinkField("index.json", Secret(json.dumps(index) + "\n")))
    return SinkWrite(
        Reference("dir", str(folder / received.marker)), tuple(stored), "create", received.marker
    )
