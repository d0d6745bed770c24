"""Every state that a person can see, by name, and the way there: for whoever looks at all of them.

Each brings the browser to its page and returns what is to be read there once it has come.
"""

from __future__ import annotations

from e2e.browser.request_states import REQUEST
from e2e.browser.share_states import SHARE
from e2e.browser.stage import Stage

STATES = {**SHARE, **REQUEST}

__all__ = ["STATES", "Stage"]
