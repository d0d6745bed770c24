"""The fixtures of these tests."""

from support.services import bare, one_service, service, user

__all__ = ["bare", "one_service", "service", "user"]
