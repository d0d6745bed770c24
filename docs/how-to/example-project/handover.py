"""Hands the password of the staging database to a new colleague: a link that opens once, within a day."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from sealpipe import Client, Field, Secret


def hand_over(client: Client, user: str, password: str | Secret) -> Secret:
    """The link to send to them."""
    share = client.share(
        [Field("User", user, type="text"), Field("Password", password)],
        title=f"Staging database for {user}",
        expires_in=timedelta(days=1),
        views=1,
    )
    return share.link


def main() -> None:
    """`handover USER`: the password comes from DB_PASSWORD, the link goes to stdout."""
    password = Secret(os.environ["DB_PASSWORD"])
    with Client.from_settings() as client:
        print(hand_over(client, sys.argv[1], password).reveal())


if __name__ == "__main__":
    main()
