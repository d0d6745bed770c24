"""What the model of the service is made of: callers, plans, shares, requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Told = tuple[int, Any]
DAY = 24 * 60 * 60


@dataclass(frozen=True)
class Caller:
    """An API key. Its space is the organisation that it acts in, else its account."""

    credential: str
    key_id: str
    account: str
    organization: str | None = None
    scopes: frozenset[str] = frozenset()
    custody: bool = False

    @property
    def space(self) -> str:
        return self.account if self.organization is None else f"org:{self.organization}"


@dataclass(frozen=True)
class Plan:
    """What an account may do: `rate` a minute (0: no access), `shares` at a time (None: any),
    passcodes or not.
    """

    rate: int = 100
    shares: int | None = None
    view_protection: bool = True


@dataclass(eq=False)
class Thing:
    """What a share and a request have in common. `made` orders what was made at the same time."""

    code: str
    owner: Caller
    made: int
    expires: int | None
    ended: str | None = None
    ended_at: int = 0

    def over(self, now: int) -> str | None:
        if self.ended is None and self.expires is not None and self.expires <= now:
            self.ended, self.ended_at = "time", self.expires
        return self.ended


@dataclass(eq=False)
class Share(Thing):
    token: str = ""
    data: str = ""
    verifier: str | None = None
    views: int | None = None
    attempts: int = 5


@dataclass(eq=False)
class Request(Thing):
    public_key: str = ""
    passcode: str | None = None
    most: int | None = None
    forms: int | None = None
    answers: list[dict[str, str]] = field(default_factory=list)
