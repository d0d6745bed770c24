"""The fixtures of these tests."""

from support.fake_mcp import mcp
from support.services import bare, one_service, service, user

__all__ = ["bare", "mcp", "one_service", "service", "user"]
