"""What AWS stores: a secret as text or bytes, and the tag that holds the markers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from sealpipe.plugin import Locator, Mode
from sealpipe_plugins.cloud import check_size
from sealpipe_plugins.confirm import add_marker
from sealpipe_plugins.secret_documents import Stored, next_document

MAX_SIZE: Final = 65536
"""Maximum bytes of a secret."""

TAG: Final = "sealpipe.dev/submissions"
"""The tag that holds the markers, newest last."""
_TAG_LIMIT: Final = 256


def tags_with(markers: str, marker: str) -> list[dict[str, str]]:
    """Return the tags to write: these markers and one more."""
    return [{"Key": TAG, "Value": add_marker(markers, marker, _TAG_LIMIT)}]


def markers_in(tags: Iterable[Mapping[str, Any]] | None) -> str:
    """Return the markers in a target's tags; an empty string if there are none."""
    return next((str(tag.get("Value", "")) for tag in tags or () if tag.get("Key") == TAG), "")


Content = Mapping[str, Any]
"""SecretString or SecretBinary, as in AWS's API."""


def get_stored(content: Content) -> Stored | None:
    """Return a version's text or bytes; None for a version without a value."""
    text, data = content.get("SecretString"), content.get("SecretBinary")
    return text if isinstance(text, str) else None if data is None else bytes(data)


def next_content(
    stored: Stored | None, wanted: Mapping[str, bytes], mode: Mode, locator: Locator
) -> Content:
    """Return the content of the next version, made from the current one (None: none).

    Raises like `next_document`.
    """
    following = next_document(stored, wanted, mode, locator)
    check_size(following, MAX_SIZE, "AWS", locator)
    return {"SecretString" if isinstance(following, str) else "SecretBinary": following}
