"""The key pair that a request is sealed to; a fresh one's seed is put away before the request is made."""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

from sealpipe.errors import PluginError, ReferenceSyntaxError, UsageError
from sealpipe.flows import Do, Flow
from sealpipe.flows.request.options import RequestOptions
from sealpipe.flows.resolve import resolve_value
from sealpipe.flows.session import Session
from sealpipe.flows.store.write import SinkWrite, describe_writes, is_write_only, write_to_sink
from sealpipe.plugin import SinkField
from sealpipe.reference import Key, Reference
from sealpipe.secret import Secret
from sealpipe.wire import keys
from sealpipe.wire.encoding import encode_base64url


class ChosenKey(NamedTuple):
    """The key pair; and where the seed of a fresh one is read, as a reference, where it was put away."""

    pair: keys.KeyPair
    seed: str | None = None


def choose_key(options: RequestOptions, session: Session) -> Flow[ChosenKey]:
    """The key pair of a request. Nothing is stored yet. Raises UsageError."""
    tag = session.credential.tag
    if options.key_pair is not None:
        return ChosenKey(options.key_pair)
    if options.key_kind == "new":
        if options.seed_target is not None:
            yield from _check_target(options, session)
        pair: keys.KeyPair = yield Do(partial(keys.from_seed, os.urandom(32), tag=tag))
        return ChosenKey(pair)
    if options.key_kind != "credential":
        raise UsageError("the request's key is neither the credential's nor a new one", remedy='key="credential"')
    custody = session.credential.custody_secret
    if custody is None:
        raise UsageError(
            "the credential has no custody secret, so it could not decrypt submissions",
            remedy="use the whole credential, all three parts; or --key new with --seed-to SINK",
        )
    pair = yield Do(partial(keys.from_custody_secret, custody.reveal(), tag=tag))
    return ChosenKey(pair)


def store_seed(options: RequestOptions, session: Session, chosen: ChosenKey) -> Flow[ChosenKey]:
    """Store the seed of a fresh key where the options say, and read it back. Raises PluginError, UsageError."""
    if options.seed_target is None:
        return chosen
    seed = Secret(encode_base64url(bytes(chosen.pair.seed)))
    yield from write_to_sink(session, _make_seed_write(options, seed, encode_base64url(chosen.pair.public_key)[:40]))
    reference = _make_source_reference(options)
    if not (yield Do(partial(_has_source, session, reference))):
        return chosen
    stored = yield from resolve_value(reference, session.registry)
    if stored != seed:
        raise PluginError(
            f"{reference} does not return the seed that was stored there; no request was created",
            locator=str(reference),
            remedy="check the target, and use another one for --seed-to",
        )
    return chosen._replace(seed=str(reference))


def _check_target(options: RequestOptions, session: Session) -> Flow[None]:
    assert options.seed_target is not None  # noqa: S101 - its caller looked
    write = _make_seed_write(options, Secret(""), "")
    if (yield Do(partial(is_write_only, session, write.ref))):
        raise UsageError(
            f"{options.seed_target.text} cannot be read back, so the seed would be lost",
            remedy="use a readable target for --seed-to, such as vault:secret/requests/acme#seed",
        )
    yield from describe_writes(session, [write])


def _make_seed_write(options: RequestOptions, seed: Secret, marker: str) -> SinkWrite:
    assert options.seed_target is not None  # noqa: S101 - its callers looked
    return SinkWrite(
        options.seed_target.fill({}), (SinkField(options.seed_key, seed),), options.seed_target.mode, marker
    )


def _make_source_reference(options: RequestOptions) -> Reference:
    """The same place as a source names it."""
    assert options.seed_target is not None  # noqa: S101 - as above
    ref, key = options.seed_target.fill({}), options.seed_key
    return Reference(ref.name, ref.body, ref.params, (Key(key),) if key else None)


def _has_source(session: Session, reference: Reference) -> bool:
    try:
        session.registry().locate(reference)
    except ReferenceSyntaxError:
        return False
    return True
