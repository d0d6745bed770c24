"""Settings of Kubernetes, for its Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import PositiveFloat

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


class K8sSettings(PluginSettings):
    """A cluster: its `server`, or a `context` of a kubeconfig (several files as KUBECONFIG has them).

    Without either, the default store takes what kubectl would take: ~/.kube/config, or in a pod its service account.
    `timeout` is in seconds.
    """

    server: str | None = None
    token: Secret | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    namespace: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    service_account: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    timeout: PositiveFloat = 30.0

    own_variables: ClassVar[Mapping[str, str]] = {"kubeconfig": "KUBECONFIG"}
