"""One rehearsal service; each command that is killed has an account of its own there."""

from support.job import job, service

__all__ = ["job", "service"]
