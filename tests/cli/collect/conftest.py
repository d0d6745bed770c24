"""The fixtures of these tests: those of the requests' own, and every backend that submissions are
stored in.
"""

from support.aws import one_moto
from support.job import call, call_at, job, proxied, service
from support.storing import bao, cluster, group, hub, into, keyring_session, lab, vault

__all__ = ["call", "call_at", "job", "proxied", "service"]
__all__ += ["bao", "cluster", "group", "hub", "into", "keyring_session", "lab", "one_moto", "vault"]
