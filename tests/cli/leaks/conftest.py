"""The fixtures of these tests: a service, and every backend that submissions are stored in."""

from cli.fake_mcp import mcp
from support.aws import one_moto
from support.storing import bao, cluster, group, hub, into, job, keyring_session, lab
from support.terminal import bare, one_service, service, user

__all__ = ["bare", "mcp", "one_service", "service", "user"]
__all__ += ["bao", "cluster", "group", "hub", "into", "job", "keyring_session", "lab", "one_moto"]
