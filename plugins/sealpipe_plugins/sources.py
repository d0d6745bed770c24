"""The built-in sources. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from sealpipe.plugin import ASKS, FRESH, SourceInfo

PACKAGE = "sealpipe_plugins"


class Backend(TypedDict, total=False):
    """What the source and the sink of a backend have in common.

    The members are those of their descriptors.
    """

    settings: str
    needs: tuple[str, ...]
    backend: str
    extra: str


AGE: Backend = {
    "settings": f"{PACKAGE}.age.settings:AgeSettings",
    "needs": ("pyrage>=1.3",),
    "extra": "age",
}
AWS: Backend = {
    "settings": f"{PACKAGE}.aws.login:AwsSettings",
    "needs": ("botocore>=1.34.63",),
    "backend": "aws",
    "extra": "aws",
}
AZURE_KEY_VAULT: Backend = {
    "settings": f"{PACKAGE}.azure_key_vault.settings:KeyVaultSettings",
    "needs": ("msal>=1.37",),
    "extra": "azure",
}
DOPPLER: Backend = {"settings": f"{PACKAGE}.doppler.api:DopplerSettings"}
GCP: Backend = {
    "settings": f"{PACKAGE}.gcp.settings:GcpSettings",
    "needs": ("google-auth>=2.40", "google-crc32c>=1.5"),
    "extra": "gcp",
}
INFISICAL: Backend = {"settings": f"{PACKAGE}.infisical.api:InfisicalSettings"}
KEEPASS: Backend = {
    "settings": f"{PACKAGE}.keepass.settings:KeepassSettings",
    "needs": ("pykeepass>=4.2",),
    "extra": "keepass",
}
KEYRING: Backend = {
    "settings": f"{PACKAGE}.keyring.client:KeyringSettings",
    "needs": ("keyring>=25",),
    "extra": "keyring",
}
KEYRING_PARAMS = {"username": "the user name, if it contains a /; all before ? is then the service"}
KUBERNETES: Backend = {"settings": f"{PACKAGE}.kubernetes.access:K8sSettings"}
ONE_PASSWORD: Backend = {
    "settings": f"{PACKAGE}.onepassword.source:OnePasswordSettings",
    "needs": ("onepassword-sdk>=0.4",),
    "extra": "op",
}
VAULT: Backend = {
    "settings": f"{PACKAGE}.vault.settings:VaultSettings",
    "needs": ("hvac>=2.3",),
    "extra": "vault",
}


def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """The descriptors."""
    register(
        SourceInfo(
            "env", "an environment variable: env:DB_PASSWORD", f"{PACKAGE}.local.sources:EnvSource"
        )
    )
    register(
        SourceInfo(
            "file",
            "a file's content, exactly: file:deploy.pem",
            f"{PACKAGE}.local.sources:FileSource",
        )
    )
    register(
        SourceInfo(
            "stdin",
            "standard input, read to its end: stdin:",
            f"{PACKAGE}.local.sources:StdinSource",
        )
    )
    register(
        SourceInfo(
            "text",
            "the text itself, not a secret: text:deploy-bot",
            f"{PACKAGE}.local.sources:TextSource",
        )
    )
    register(
        SourceInfo(
            "prompt",
            "typed at the terminal, without echo: prompt:Database password",
            f"{PACKAGE}.local.terminal:PromptSource",
            capabilities=(FRESH, ASKS),
        )
    )
    register(
        SourceInfo(
            "dotenv",
            "a key of a dotenv file: dotenv:.env.prod#DB_PASSWORD",
            f"{PACKAGE}.local.sources:DotenvSource",
            format="dotenv",
        )
    )
    register(
        SourceInfo(
            "gen",
            "a new secret, generated here: gen:password, passphrase, pin, hex, uuid, ssh",
            f"{PACKAGE}.generate.source:GenSource",
            params={
                "length": "characters of a password (24), digits of a pin (6)",
                "symbols": "0: a password of letters and digits only",
                "words": "words of a passphrase (6)",
                "separator": "text between the words of a passphrase (-)",
                "bytes": "bytes of gen:hex (32)",
                "comment": "comment of an ssh key",
                "name": (
                    "references with the same name share one value; without it each gets a new one"
                ),
            },
            capabilities=(FRESH,),
        )
    )
    register(
        SourceInfo(
            "sops",
            "a file encrypted by SOPS: sops:secrets.enc.yaml#/db/password",
            f"{PACKAGE}.sops.source:SopsSource",
            f"{PACKAGE}.sops.client:SopsSettings",
            params={
                "input": (
                    "format of the file, if its name does not show it: yaml, json, dotenv, "
                    "ini, binary"
                ),
                "raw": "1: the whole decrypted file, byte for byte",
            },
        )
    )
    register(
        SourceInfo(
            "age",
            "a file encrypted by age, with the identity here: age:token.age",
            f"{PACKAGE}.age.source:AgeSource",
            **AGE,
        )
    )
    register(
        SourceInfo(
            "pass",
            "an entry of the password store pass: pass:prod/db",
            f"{PACKAGE}.pass_store.source:PassSource",
            f"{PACKAGE}.pass_store.source:PassSettings",
            params={"raw": "1: the whole entry instead of its first line"},
        )
    )
    register(
        SourceInfo(
            "exec",
            "the output of a command from the config file: exec:NAME",
            f"{PACKAGE}.local.exec_source:ExecSource",
            f"{PACKAGE}.local.exec_source:ExecSettings",
            params={"arg": "the value of {arg} in the command, one word"},
        )
    )
    register(
        SourceInfo(
            "keepass",
            "an entry of a KeePass database: keepass:Servers/db#Password",
            f"{PACKAGE}.keepass.source:KeepassSource",
            **KEEPASS,
        )
    )
    register(
        SourceInfo(
            "keyring",
            "the system's keyring: keyring:SERVICE/USERNAME",
            f"{PACKAGE}.keyring.source_and_sink:KeyringSource",
            params=KEYRING_PARAMS,
            **KEYRING,
        )
    )
    register(
        SourceInfo(
            "op",
            "1Password, by service account or Connect: op://Vault/Item/field",
            f"{PACKAGE}.onepassword.source:make_source",
            params={
                "attribute": "attribute, as in 1Password's references: otp (service account only)",
                "ssh-format": (
                    "SSH key format, as in 1Password's references: openssh (service account only)"
                ),
            },
            **ONE_PASSWORD,
        )
    )
    register(
        SourceInfo(
            "aws-sm",
            "AWS Secrets Manager: aws-sm:NAME or ARN, with #KEY for a JSON object",
            f"{PACKAGE}.aws.secrets_manager_source:AwsSmSource",
            params={
                "version": "id of a version",
                "stage": "stage of a version: AWSPREVIOUS, ...",
                "raw": "1: the text as it is, even if it is a JSON object",
            },
            **AWS,
        )
    )
    register(
        SourceInfo(
            "aws-ssm",
            "AWS Parameter Store, decrypted: aws-ssm:/path/name; aws-ssm:/path/ for all below",
            f"{PACKAGE}.aws.parameter_store_source:AwsSsmSource",
            params={"version": "number of a version", "label": "label of a version"},
            **AWS,
        )
    )
    register(
        SourceInfo(
            "doppler",
            "Doppler, all secrets of a config in one request: doppler:PROJECT/CONFIG#NAME",
            f"{PACKAGE}.doppler.source:DopplerSource",
            params={"raw": "1: values as they were written, with references to other secrets"},
            **DOPPLER,
        )
    )
    register(
        SourceInfo(
            "infisical",
            (
                "Infisical, all secrets of a folder in one request: "
                "infisical:PROJECT/ENVIRONMENT/FOLDER#NAME"
            ),
            f"{PACKAGE}.infisical.source:InfisicalSource",
            params={
                "raw": (
                    "1: the folder's own values as they were written, with references to other "
                    "secrets"
                )
            },
            **INFISICAL,
        )
    )
    register(
        SourceInfo(
            "azure-kv",
            "Azure Key Vault: azure-kv:VAULT/NAME, with #KEY for a JSON object",
            f"{PACKAGE}.azure_key_vault.source:KeyVaultSource",
            params={
                "version": "id of a version (the newest)",
                "raw": "1: the text as it is, even if it is a JSON object",
            },
            **AZURE_KEY_VAULT,
        )
    )
    register(
        SourceInfo(
            "gcp-sm",
            "Google Secret Manager: gcp-sm:PROJECT/SECRET, with #KEY for a JSON object",
            f"{PACKAGE}.gcp.source:GcpSource",
            params={
                "version": "number or alias of a version (the newest)",
                "raw": "1: the text as it is, even if it is a JSON object",
            },
            **GCP,
        )
    )
    register(
        SourceInfo(
            "k8s",
            "a Kubernetes Secret: k8s:NAMESPACE/NAME#key",
            f"{PACKAGE}.kubernetes.source:K8sSource",
            **KUBERNETES,
        )
    )
    register(
        SourceInfo(
            "vault",
            (
                "Vault and OpenBao: vault:secret/app/db#password, "
                "vault:database/creds/app#username,password"
            ),
            f"{PACKAGE}.vault.source_and_sink:VaultSource",
            params={
                "version": "version of a versioned key (the newest)",
                "mount": "path of the engine, to skip looking it up",
                "namespace": "namespace to read in (the setting's)",
            },
            **VAULT,
        )
    )
