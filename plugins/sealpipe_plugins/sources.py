"""The built-in sources. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import ASKS, FRESH, SourceInfo


def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """The descriptors."""
    package = "sealpipe_plugins"
    register(SourceInfo("env", "an environment variable: env:DB_PASSWORD", f"{package}.local.sources:EnvSource"))
    register(SourceInfo("file", "a file's content, exactly: file:deploy.pem", f"{package}.local.sources:FileSource"))
    register(SourceInfo("stdin", "standard input, read to its end: stdin:", f"{package}.local.sources:StdinSource"))
    register(
        SourceInfo("text", "the text itself, not a secret: text:deploy-bot", f"{package}.local.sources:TextSource")
    )
    register(
        SourceInfo(
            "prompt",
            "typed at the terminal, without echo: prompt:Database password",
            f"{package}.local.terminal:PromptSource",
            capabilities=(FRESH, ASKS),
        )
    )
    register(
        SourceInfo(
            "dotenv",
            "a key of a dotenv file: dotenv:.env.prod#DB_PASSWORD",
            f"{package}.local.sources:DotenvSource",
            format="dotenv",
        )
    )
    register(
        SourceInfo(
            "gen",
            "a new secret, generated here: gen:password, passphrase, pin, hex, uuid, ssh",
            f"{package}.generate.source:GenSource",
            params={
                "length": "characters of a password (24), digits of a pin (6)",
                "symbols": "0: a password of letters and digits only",
                "words": "words of a passphrase (6)",
                "separator": "text between the words of a passphrase (-)",
                "bytes": "bytes of gen:hex (32)",
                "comment": "comment of an ssh key",
                "name": "references with the same name share one value; without it each gets a new one",
            },
            capabilities=(FRESH,),
        )
    )
    register(
        SourceInfo(
            "sops",
            "a file encrypted by SOPS: sops:secrets.enc.yaml#/db/password",
            f"{package}.sops.source:SopsSource",
            f"{package}.sops.client:SopsSettings",
            params={
                "input": "format of the file, if its name does not show it: yaml, json, dotenv, ini, binary",
                "raw": "1: the whole decrypted file, byte for byte",
            },
        )
    )
    register(
        SourceInfo(
            "pass",
            "an entry of the password store pass: pass:prod/db",
            f"{package}.pass_store.source:PassSource",
            f"{package}.pass_store.source:PassSettings",
            params={"raw": "1: the whole entry instead of its first line"},
        )
    )
    register(
        SourceInfo(
            "exec",
            "the output of a command from the config file: exec:NAME",
            f"{package}.local.exec_source:ExecSource",
            f"{package}.local.exec_source:ExecSettings",
            params={"arg": "the value of {arg} in the command, one word"},
        )
    )
    register(
        SourceInfo(
            "keyring",
            "the system's keyring: keyring:SERVICE/USERNAME",
            f"{package}.keyring.source_and_sink:KeyringSource",
            f"{package}.keyring.client:KeyringSettings",
            needs=("keyring>=25",),
            params={"username": "the user name, if it contains a /; all before ? is then the service"},
            extra="keyring",
        )
    )
    register(
        SourceInfo(
            "op",
            "1Password, by service account or Connect: op://Vault/Item/field",
            f"{package}.onepassword.source:make_source",
            f"{package}.onepassword.source:OnePasswordSettings",
            needs=("onepassword-sdk>=0.4",),
            params={
                "attribute": "attribute, as in 1Password's references: otp (service account only)",
                "ssh-format": "SSH key format, as in 1Password's references: openssh (service account only)",
            },
            extra="op",
        )
    )
    register(
        SourceInfo(
            "aws-sm",
            "AWS Secrets Manager: aws-sm:NAME or ARN, with #KEY for a JSON object",
            f"{package}.aws.secrets_manager_source:AwsSmSource",
            f"{package}.aws.login:AwsSettings",
            needs=("botocore>=1.34.63",),
            params={
                "version": "id of a version",
                "stage": "stage of a version: AWSPREVIOUS, ...",
                "raw": "1: the text as it is, even if it is a JSON object",
            },
            backend="aws",
            extra="aws",
        )
    )
    register(
        SourceInfo(
            "aws-ssm",
            "AWS Parameter Store, decrypted: aws-ssm:/path/name; aws-ssm:/path/ for all below",
            f"{package}.aws.parameter_store_source:AwsSsmSource",
            f"{package}.aws.login:AwsSettings",
            needs=("botocore>=1.34.63",),
            params={"version": "number of a version", "label": "label of a version"},
            backend="aws",
            extra="aws",
        )
    )
    register(
        SourceInfo(
            "k8s",
            "a Kubernetes Secret: k8s:NAMESPACE/NAME#key",
            f"{package}.kubernetes.source:K8sSource",
            f"{package}.kubernetes.access:K8sSettings",
        )
    )
    register(
        SourceInfo(
            "vault",
            "Vault and OpenBao: vault:secret/app/db#password, vault:database/creds/app#username,password",
            f"{package}.vault.source_and_sink:VaultSource",
            "sealpipe_plugins.vault.settings:VaultSettings",
            needs=("hvac>=2.3",),
            params={
                "version": "version of a versioned key (the newest)",
                "mount": "path of the engine, to skip looking it up",
                "namespace": "namespace to read in (the setting's)",
            },
            extra="vault",
        )
    )
