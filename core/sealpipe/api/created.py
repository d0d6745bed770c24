"""What creating a share answers, as a value: by itself, so that who shares loads no other of `sealpipe.api.models`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class CreatedShare:
    """A share as its creation answered (specification: Share create response).

    `expires_at` is None for a share without an end; where `expiry_known` is False, the service did not say. `custody`
    is `none`, `stored` or `failed`, None where the service did not say. `replayed` tells that an earlier sending of
    the same bytes had created it.
    """

    short_code: str
    expires_at: datetime | None
    custody: str | None
    replayed: bool
    extra: Mapping[str, Any] = field(default_factory=dict)
    expiry_known: bool = True
