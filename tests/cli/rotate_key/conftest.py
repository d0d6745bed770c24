"""One rehearsal service; each test has an account of its own there."""

from support.job import call, call_at, job, proxied, service
from support.terminal import extended

__all__ = ["call", "call_at", "extended", "job", "proxied", "service"]
