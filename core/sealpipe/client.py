"""`Client`, and `resolve`, which needs no client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar

from sealpipe.calls import BlockingCalls, make_method
from sealpipe.client_base import ClientSetup, checks_arguments, open_fields, registry
from sealpipe.flows.session import Session
from sealpipe.secret import Secret, strips_frames
from sealpipe.wire.fields import Field, hidden

if TYPE_CHECKING:
    from sealpipe.flows.lookup import PageIterator

P = ParamSpec("P")
T = TypeVar("T")


def _iterate_rows(_client: Client, pages: PageIterator[T]) -> Iterator[T]:
    next_page = strips_frames(pages.fetch_next)
    while not pages.is_done:
        yield from next_page()


class Client(BlockingCalls, ClientSetup):
    """Client of the service for blocking code. A context manager; several threads may use one client.

    `api_key` has three parts, or two; `base_url` ends in /v1. `deadline` (seconds) is for one call, retries included.
    `ca_file` is trusted in addition to the system's certificates. `api_key_previous` (during a rotation) opens what was
    sealed to it, and is never sent. Raises SettingError.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.session.close()

    @staticmethod
    def _make_call(call: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Client, P], T]:
        return make_method(call, lambda _, result: result, "{}")

    @staticmethod
    def _make_list_call(
        call: Callable[Concatenate[Session, P], PageIterator[T]],
    ) -> Callable[Concatenate[Client, P], Iterator[T]]:
        return make_method(call, _iterate_rows, "Iterator[{}]")


@strips_frames
@checks_arguments
def resolve(references: Sequence[str], *, ca_file: str | Path | None = None) -> list[Field[Secret]]:
    """Resolve references, such as `["vault:secret/app/db#user,password"]`, to fields in the same order.

    Needs no client. Reads every document once, and several stores at the same time. Raises ReferenceSyntaxError,
    SettingError, PluginError.
    """
    with closing(registry(ca_file)) as plugins:
        return [hidden(field) for field in open_fields(references, plugins)]
