"""A rehearsal service and nothing else in its process; prints where it answers."""

from sealpipe_rehearsal.server import serve

serve(announce=lambda address: print(address.origin, flush=True))
