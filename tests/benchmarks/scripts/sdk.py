"""The same as the smallest script, with the SDK `credenshare` (its service tag is crs)."""

import os
from datetime import UTC, datetime, timedelta

from credenshare import CredenShare

with CredenShare(
    os.environ["SEALPIPE_API_KEY"],
    base_url=os.environ["SEALPIPE_BASE_URL"],
    link_origin=os.environ["SEALPIPE_LINK_BASE_URL"],
) as client:
    share = client.shares.create(
        title="Database",
        fields=[{"key": "DB_PASSWORD", "value": os.environ["DB_PASSWORD"], "type": "password"}],
        expired_at=(datetime.now(UTC) + timedelta(hours=72)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        access_counts_left=1,
    )
print(share.link)
