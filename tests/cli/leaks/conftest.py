"""The fixtures of these tests."""

from cli.fake_mcp import mcp
from support.services import bare, one_service, service, user

__all__ = ["bare", "mcp", "one_service", "service", "user"]
