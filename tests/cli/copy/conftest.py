"""The fixtures of these tests: a service, and every backend that a copy writes to."""

from support.aws import one_moto
from support.storing import bao, cluster, group, hub, into, job, keyring_session, lab
from support.terminal import bare, one_service, service, user

__all__ = ["bao", "bare", "cluster", "group", "hub", "into", "job", "keyring_session", "lab"]
__all__ += ["one_moto", "one_service", "service", "user"]
