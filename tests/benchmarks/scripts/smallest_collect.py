"""The smallest script that prints what was submitted to a request: python smallest_collect.py CODE."""

import json
import sys

import httpx
from opening import URL, headers, opened, private_key

answer = httpx.get(f"{URL}/requests/{sys.argv[1]}/submissions", headers=headers(), timeout=60)
answer.raise_for_status()
(submission,) = answer.json()["submissions"]
for field in json.loads(opened(private_key(), submission["data"])):
    print(f"{field['key']}: {field['value']}")
