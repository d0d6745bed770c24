"""The built-in sinks. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import BLIND, SinkInfo, hookimpl


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """The descriptors."""
    for info in SINKS:
        register(info)


_HERE = "sealpipe_plugins.sinks"
_BEHIND = "sealpipe_plugins.backends"

SINKS: tuple[SinkInfo, ...] = (
    SinkInfo("dir", "files of a folder, 0600, named by their keys: dir:FOLDER#KEY=PROMPT", f"{_HERE}.dir:DirSink"),
    SinkInfo(
        "dotenv",
        "keys of a dotenv file that sh, python-dotenv and Docker read alike: dotenv:PATH#KEY=PROMPT",
        f"{_HERE}.dotenv:DotenvSink",
        params={"quote": "single or double: quotes around values, which Docker's --env-file does not know (none)"},
    ),
    SinkInfo("file", "a file, 0600, that holds one value exactly: file:PATH", f"{_HERE}.file:FileSink"),
    SinkInfo(
        "aws-sm",
        "AWS Secrets Manager: aws-sm:NAME or ARN; with #KEY=PROMPT a JSON object",
        f"{_HERE}.aws_sm:AwsSmSink",
        f"{_BEHIND}.aws_settings:AwsSettings",
        needs=("botocore>=1.33.2",),
        backend="aws",
        extra="aws",
    ),
    SinkInfo(
        "aws-ssm",
        "AWS Parameter Store, encrypted: aws-ssm:/path/name; aws-ssm:/path/#KEY=PROMPT is /path/KEY",
        f"{_HERE}.aws_ssm:AwsSsmSink",
        f"{_BEHIND}.aws_settings:AwsSettings",
        needs=("botocore>=1.33.2",),
        backend="aws",
        extra="aws",
    ),
    SinkInfo(
        "github-secret",
        "secrets of GitHub Actions: github-secret:OWNER/REPO#NAME=PROMPT, OWNER/REPO/ENVIRONMENT, ORG",
        f"{_HERE}.github_secret:GitHubSecretSink",
        f"{_BEHIND}.github:GitHubSettings",
        needs=("pynacl>=1.5",),
        params={"visibility": "private or all: whose repositories see a new secret of an organisation (private)"},
        capabilities=(BLIND,),
        extra="github",
    ),
    SinkInfo(
        "gitlab-variable",
        "CI/CD variables of GitLab: gitlab-variable:GROUP/PROJECT#KEY=PROMPT, groups/GROUP",
        f"{_HERE}.gitlab_variable:GitLabVariableSink",
        f"{_BEHIND}.gitlab:GitLabSettings",
        params={
            "environment": "the environment, or a scope such as review/*, that it is for (all)",
            "protected": "0: for branches that are not protected, too (1 for a new one)",
            "masked": "0: jobs may print it (1 for a new one)",
        },
    ),
    SinkInfo(
        "k8s",
        "a Secret of Kubernetes: k8s:NAMESPACE/NAME#key=PROMPT",
        f"{_HERE}.k8s:K8sSink",
        f"{_BEHIND}.k8s_settings:K8sSettings",
    ),
    SinkInfo(
        "keyring",
        "the system's keyring: keyring:SERVICE/USERNAME",
        f"{_HERE}.keyring:KeyringSink",
        f"{_BEHIND}.keyrings:KeyringSettings",
        needs=("keyring>=25",),
        params={"username": "the user name, where it holds a /: all before ? is the service then"},
        extra="keyring",
    ),
    SinkInfo(
        "vault",
        "Vault and OpenBao: vault:secret/vendor/acme#password=PROMPT",
        f"{_HERE}.vault:VaultSink",
        f"{_BEHIND}.vault_settings:VaultSettings",
        needs=("hvac>=2",),
        params={
            "mount": "where the engine stands, where that is not to be looked up",
            "namespace": "the namespace to store in (that of the settings)",
        },
        extra="vault",
    ),
)
"""By what they need: nothing, then what their backend does."""
