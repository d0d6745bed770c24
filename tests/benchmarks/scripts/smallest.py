"""The smallest script that shares a secret from the environment.

It makes no wrap for the account's owner.
"""

import os

from naive import share

print(share("DB_PASSWORD", os.environ["DB_PASSWORD"], "password"))
