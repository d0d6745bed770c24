"""The fixtures of these tests: those of the requests' own."""

from support.job import call, call_at, job, proxied, service

__all__ = ["call", "call_at", "job", "proxied", "service"]
