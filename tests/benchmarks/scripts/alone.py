"""A rehearsal service alone in its process; prints where it answers.

`alone.py extended` tells its limits.
"""

import sys

from sealpipe_rehearsal.server import serve

serve(announce=lambda address: print(address.origin, flush=True), extended="extended" in sys.argv)
