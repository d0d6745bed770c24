"""One rehearsal service; each command that is killed has an account of its own there.

And a server of OpenBao.
"""

from support.job import service
from support.storing import bao

__all__ = ["bao", "service"]
