"""The shares of a batch without one: `Client.share` in a loop. python shares.py NUMBER FOLDER"""

import os
import sys

from sealpipe import Client

SETTINGS = {
    name: os.environ[f"SEALPIPE_{name.upper()}"]
    for name in ("api_key", "base_url", "link_base_url")
}


def main():
    with Client(**SETTINGS) as client:
        for number in range(int(sys.argv[1])):
            client.share(
                ["Password=env:DB_PASSWORD"],
                title=f"For n{number}",
                expires_in="7d",
                send=[f"file:{sys.argv[2]}/n{number}.link"],
            )


main()
