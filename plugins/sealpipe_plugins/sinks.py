"""The built-in sinks. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import BLIND, TEXT, TEXT_UNDER_KEYS, SinkInfo
from sealpipe_plugins.sources import (
    AGE,
    AWS,
    AZURE_KEY_VAULT,
    DOPPLER,
    GCP,
    INFISICAL,
    KEEPASS,
    KEYRING,
    KEYRING_PARAMS,
    KUBERNETES,
    ONE_PASSWORD,
    PACKAGE,
    VAULT,
)


def sealpipe_sinks(register: Callable[[SinkInfo], None]) -> None:
    """The descriptors."""
    for info in SINKS:
        register(info)


SINKS: tuple[SinkInfo, ...] = (
    SinkInfo(
        "dir",
        "a 0600 file for each key in a folder: dir:FOLDER#KEY=PROMPT",
        f"{PACKAGE}.local.file_sinks:DirSink",
    ),
    SinkInfo(
        "dotenv",
        (
            "keys of a dotenv file that sh, python-dotenv and Docker parse alike: "
            "dotenv:PATH#KEY=PROMPT"
        ),
        f"{PACKAGE}.local.dotenv_sink:DotenvSink",
        params={
            "quote": (
                "single or double: quote values, which Docker's --env-file does not support (none)"
            )
        },
        capabilities=(TEXT,),
    ),
    SinkInfo(
        "file",
        "a 0600 file with one value, byte for byte: file:PATH",
        f"{PACKAGE}.local.file_sinks:FileSink",
    ),
    SinkInfo(
        "age",
        "a 0600 file with one value, encrypted by age to the recipients here: age:PATH",
        f"{PACKAGE}.age.sink:AgeSink",
        params={"armor": "1: as text instead of bytes"},
        capabilities=(BLIND,),
        **AGE,
    ),
    SinkInfo(
        "aws-sm",
        "AWS Secrets Manager: aws-sm:NAME or ARN; #KEY=PROMPT for a JSON object",
        f"{PACKAGE}.aws.secrets_manager_sink:AwsSmSink",
        capabilities=(TEXT_UNDER_KEYS,),
        **AWS,
    ),
    SinkInfo(
        "aws-ssm",
        (
            "AWS Parameter Store, encrypted: aws-ssm:/path/name; aws-ssm:/path/#KEY=PROMPT is "
            "/path/KEY"
        ),
        f"{PACKAGE}.aws.parameter_store_sink:AwsSsmSink",
        capabilities=(TEXT,),
        **AWS,
    ),
    SinkInfo(
        "doppler",
        "secrets of a config of Doppler: doppler:PROJECT/CONFIG#NAME=PROMPT",
        f"{PACKAGE}.doppler.sink:DopplerSink",
        capabilities=(TEXT,),
        **DOPPLER,
    ),
    SinkInfo(
        "azure-kv",
        "Azure Key Vault: azure-kv:VAULT/NAME; #KEY=PROMPT for a JSON object",
        f"{PACKAGE}.azure_key_vault.sink:KeyVaultSink",
        capabilities=(TEXT,),
        **AZURE_KEY_VAULT,
    ),
    SinkInfo(
        "gcp-sm",
        "Google Secret Manager: gcp-sm:PROJECT/SECRET; #KEY=PROMPT for a JSON object",
        f"{PACKAGE}.gcp.sink:GcpSink",
        capabilities=(TEXT_UNDER_KEYS,),
        **GCP,
    ),
    SinkInfo(
        "github-secret",
        "GitHub Actions secrets: github-secret:OWNER/REPO#NAME=PROMPT, OWNER/REPO/ENVIRONMENT, ORG",
        f"{PACKAGE}.github.secret_sink:GitHubSecretSink",
        f"{PACKAGE}.github.api:GitHubSettings",
        needs=("pynacl>=1.6.2",),
        params={
            "visibility": (
                "private or all: which repositories see a new secret of an organisation (private)"
            )
        },
        capabilities=(BLIND, TEXT),
        extra="github",
    ),
    SinkInfo(
        "gitlab-variable",
        "GitLab CI/CD variables: gitlab-variable:GROUP/PROJECT#KEY=PROMPT, groups/GROUP",
        f"{PACKAGE}.gitlab.variable_sink:GitLabVariableSink",
        f"{PACKAGE}.gitlab.api:GitLabSettings",
        params={
            "environment": "environment, or a scope such as review/* (all)",
            "protected": "0: also for unprotected branches (1 for a new one)",
            "masked": "0: do not mask it in job logs (1 for a new one)",
        },
        capabilities=(TEXT,),
    ),
    SinkInfo(
        "infisical",
        "secrets of a folder of Infisical: infisical:PROJECT/ENVIRONMENT/FOLDER#NAME=PROMPT",
        f"{PACKAGE}.infisical.sink:InfisicalSink",
        capabilities=(TEXT,),
        **INFISICAL,
    ),
    SinkInfo(
        "k8s",
        "a Kubernetes Secret: k8s:NAMESPACE/NAME#key=PROMPT",
        f"{PACKAGE}.kubernetes.sink:K8sSink",
        **KUBERNETES,
    ),
    SinkInfo(
        "keepass",
        "an entry of a KeePass database: keepass:Servers/db#Password=PROMPT",
        f"{PACKAGE}.keepass.sink:KeepassSink",
        **KEEPASS,
    ),
    SinkInfo(
        "keyring",
        "the system's keyring: keyring:SERVICE/USERNAME",
        f"{PACKAGE}.keyring.source_and_sink:KeyringSink",
        params=KEYRING_PARAMS,
        **KEYRING,
    ),
    SinkInfo(
        "op",
        "1Password, by service account or Connect: op://Vault/Item#field=PROMPT",
        f"{PACKAGE}.onepassword.sink:make_sink",
        capabilities=(TEXT,),
        **ONE_PASSWORD,
    ),
    SinkInfo(
        "postgres-role",
        "the password of a role in PostgreSQL: postgres-role:ROLE",
        f"{PACKAGE}.postgres_role.sink:PostgresRoleSink",
        f"{PACKAGE}.postgres_role.settings:PostgresSettings",
        needs=("psycopg[binary]>=3.3",),
        capabilities=(TEXT,),
        extra="postgres",
    ),
    SinkInfo(
        "vault",
        "Vault and OpenBao: vault:secret/vendor/acme#password=PROMPT",
        f"{PACKAGE}.vault.source_and_sink:VaultSink",
        params={
            "mount": "path of the engine, to skip looking it up",
            "namespace": "namespace to store in (the setting's)",
        },
        capabilities=(TEXT,),
        **VAULT,
    ),
)
"""In order of what they need: nothing, then a backend."""
