"""`Secret`, a value that only `reveal()` shows, and exceptions without frames that may hold one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, NoReturn, ParamSpec, Self, TypeVar

from sealpipe.errors import SealpipeError, note_remedy

watch: Callable[[Secret], None] | None = None
"""Sees every secret that is made, from any thread (`sealpipe mcp`)."""


class Secret:
    """Text that `repr`, `str`, `format`, `pickle` and `json` do not show.

    Made from text, or from UTF-8 bytes, which are stored as they are, so that a large value is in
    memory once. Secrets are compared in constant time; a secret never equals a plain string.
    """

    __slots__ = ("__value",)
    __hash__ = None  # type: ignore[assignment]  # a hash would be a fingerprint of the value

    def __init__(self, value: str | bytes) -> None:
        self.__value = value
        if watch is not None:
            watch(self)

    def reveal(self) -> str:
        """Return the text.

        Raises UnicodeDecodeError if it was made from bytes that are not UTF-8.
        """
        value = self.__value
        return value if isinstance(value, str) else value.decode("utf-8")

    def reveal_bytes(self) -> bytes:
        """Return the text as UTF-8 bytes. Raises UnicodeEncodeError for a lone surrogate."""
        value = self.__value
        return value if isinstance(value, bytes) else value.encode("utf-8")

    def __bool__(self) -> bool:
        """Whether it is not empty."""
        return bool(self.__value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        from hmac import compare_digest  # most runs compare no secrets

        return compare_digest(_to_comparable(self), _to_comparable(other))

    def __repr__(self) -> str:
        return "Secret(...)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> object:
        """Make pydantic accept non-empty text, and turn it into a Secret."""
        from pydantic_core import core_schema  # only pydantic calls this

        text = core_schema.no_info_after_validator_function(
            cls, core_schema.str_schema(min_length=1)
        )
        return core_schema.union_schema([core_schema.is_instance_schema(cls), text])

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a Secret cannot be pickled: pass the result of reveal() if you mean to")


def as_secret(value: str | Secret) -> Secret:
    """Return the value as a Secret, so that no traceback's locals show it from here on."""
    return value if isinstance(value, Secret) else Secret(value)


def _to_comparable(secret: Secret) -> bytes:
    value = secret._Secret__value  # type: ignore[attr-defined]
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value


P = ParamSpec("P")
T = TypeVar("T")


def strip_frames(error: Exception) -> Exception:
    """Return the exception without its frames, cause and context.

    A note has its remedy, or the places of a bug.
    """
    if isinstance(error, SealpipeError):
        note_remedy(error)
    elif not hasattr(error, "__notes__"):
        import traceback  # for a bug only

        places = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)
        ]
        error.add_note("raised at " + " < ".join(reversed(places)))
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def strips_frames_async(
    function: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Remove frames, cause and context from a coroutine's exceptions."""

    @wraps(function)
    async def wrapper(*args: P.args, **options: P.kwargs) -> T:
        try:
            return await function(*args, **options)
        # Every exception: the frames of a bug may hold secrets, too.
        except Exception as error:  # noqa: BLE001
            failure = error
        del args, options
        raise strip_frames(failure)

    return wrapper


def strips_frames(function: Callable[P, T]) -> Callable[P, T]:
    """Remove frames, cause and context from a function's exceptions."""

    @wraps(function)
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        try:
            return function(*args, **options)
        # Every exception: the frames of a bug may hold secrets, too.
        except Exception as error:  # noqa: BLE001
            failure = error
        del args, options
        raise strip_frames(failure)

    return wrapper
