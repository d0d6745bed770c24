"""One rehearsal service; each test has an account of its own there. And both clients."""

from secure_requests.conftest import call, call_at, extended, job, proxied, service

__all__ = ["call", "call_at", "extended", "job", "proxied", "service"]
