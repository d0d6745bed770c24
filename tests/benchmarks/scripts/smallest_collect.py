"""The smallest script that prints what was submitted to a request: python smallest_collect.py CODE
[look].

With `look` it also makes sure that the service has the request under the key that it opens with.
"""

import json
import sys

import httpx
from opening import URL, headers, opened, private_key, public_key

key = private_key()
with httpx.Client(base_url=URL, headers=headers(), timeout=60) as http:
    if sys.argv[2:]:
        told = http.get(f"/requests/{sys.argv[1]}").raise_for_status().json()
        if told["public_key"] not in (None, public_key(key)):
            raise SystemExit("the service has it under another key")
    (submission,) = (
        http.get(f"/requests/{sys.argv[1]}/submissions").raise_for_status().json()["submissions"]
    )
for field in json.loads(opened(key, submission["data"])):
    print(f"{field['key']}: {field['value']}")
