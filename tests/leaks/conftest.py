"""The fixtures of these tests."""

from account.conftest import mcp
from support.services import bare, one_service, service, user

__all__ = ["bare", "mcp", "one_service", "service", "user"]
