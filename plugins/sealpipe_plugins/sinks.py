"""The built-in sinks. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import BLIND, SinkInfo, hookimpl


@hookimpl
def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """The descriptors."""
    for info in SINKS:
        register(info)


_HERE = "sealpipe_plugins"

SINKS: tuple[SinkInfo, ...] = (
    SinkInfo(
        "dir", "files of a folder, 0600, named by their keys: dir:FOLDER#KEY=PROMPT", f"{_HERE}.local.dir_sink:DirSink"
    ),
    SinkInfo(
        "dotenv",
        "keys of a dotenv file that sh, python-dotenv and Docker read alike: dotenv:PATH#KEY=PROMPT",
        f"{_HERE}.local.dotenv_sink:DotenvSink",
        params={"quote": "single or double: quotes around values, which Docker's --env-file does not know (none)"},
    ),
    SinkInfo("file", "a file, 0600, that holds one value exactly: file:PATH", f"{_HERE}.local.file_sink:FileSink"),
    SinkInfo(
        "aws-sm",
        "AWS Secrets Manager: aws-sm:NAME or ARN; with #KEY=PROMPT a JSON object",
        f"{_HERE}.aws.secrets_manager_sink:AwsSmSink",
        f"{_HERE}.aws.settings:AwsSettings",
        needs=("botocore>=1.33.2",),
        backend="aws",
        extra="aws",
    ),
    SinkInfo(
        "aws-ssm",
        "AWS Parameter Store, encrypted: aws-ssm:/path/name; aws-ssm:/path/#KEY=PROMPT is /path/KEY",
        f"{_HERE}.aws.parameter_store_sink:AwsSsmSink",
        f"{_HERE}.aws.settings:AwsSettings",
        needs=("botocore>=1.33.2",),
        backend="aws",
        extra="aws",
    ),
    SinkInfo(
        "github-secret",
        "secrets of GitHub Actions: github-secret:OWNER/REPO#NAME=PROMPT, OWNER/REPO/ENVIRONMENT, ORG",
        f"{_HERE}.github.secret_sink:GitHubSecretSink",
        f"{_HERE}.github.api:GitHubSettings",
        needs=("pynacl>=1.5",),
        params={"visibility": "private or all: whose repositories see a new secret of an organisation (private)"},
        capabilities=(BLIND,),
        extra="github",
    ),
    SinkInfo(
        "gitlab-variable",
        "CI/CD variables of GitLab: gitlab-variable:GROUP/PROJECT#KEY=PROMPT, groups/GROUP",
        f"{_HERE}.gitlab.variable_sink:GitLabVariableSink",
        f"{_HERE}.gitlab.api:GitLabSettings",
        params={
            "environment": "the environment, or a scope such as review/*, that it is for (all)",
            "protected": "0: for branches that are not protected, too (1 for a new one)",
            "masked": "0: jobs may print it (1 for a new one)",
        },
    ),
    SinkInfo(
        "k8s",
        "a Secret of Kubernetes: k8s:NAMESPACE/NAME#key=PROMPT",
        f"{_HERE}.kubernetes.sink:K8sSink",
        f"{_HERE}.kubernetes.access:K8sSettings",
    ),
    SinkInfo(
        "keyring",
        "the system's keyring: keyring:SERVICE/USERNAME",
        f"{_HERE}.keyring.sink:KeyringSink",
        f"{_HERE}.keyring.client:KeyringSettings",
        needs=("keyring>=25",),
        params={"username": "the user name, where it holds a /: all before ? is the service then"},
        extra="keyring",
    ),
    SinkInfo(
        "vault",
        "Vault and OpenBao: vault:secret/vendor/acme#password=PROMPT",
        f"{_HERE}.vault.sink:VaultSink",
        f"{_HERE}.vault.settings:VaultSettings",
        needs=("hvac>=2",),
        params={
            "mount": "where the engine stands, where that is not to be looked up",
            "namespace": "the namespace to store in (that of the settings)",
        },
        extra="vault",
    ),
)
"""By what they need: nothing, then what their backend does."""
