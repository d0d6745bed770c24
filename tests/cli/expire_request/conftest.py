"""One rehearsal service; each test has an account of its own there."""

from support.job import call, call_at, job, job_at, proxied, service
from support.terminal import extended

__all__ = ["call", "call_at", "extended", "job", "job_at", "proxied", "service"]
