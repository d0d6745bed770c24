"""The rehearsal service and a user's terminal."""

from support.terminal import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]
