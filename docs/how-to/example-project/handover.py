"""Share the password of the staging database with a new colleague: a link that opens once, within a
day.
"""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from sealpipe import Client, Field, Secret


def hand_over(client: Client, user: str, password: str | Secret) -> Secret:
    """Share the password and return the link."""
    share = client.share(
        [Field("User", user, type="text"), Field("Password", password)],
        title=f"Staging database for {user}",
        expires_in=timedelta(days=1),
        views=1,
    )
    return share.link


def main() -> None:
    """Run `handover USER`: read the password from DB_PASSWORD, print the link."""
    password = Secret(os.environ["DB_PASSWORD"])
    with Client.from_settings() as client:
        print(hand_over(client, sys.argv[1], password).reveal())


if __name__ == "__main__":
    main()
