"""Everything of sealpipe's own that talks HTTP with somebody: what tells it the address, and what
makes it talk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from sealpipe.errors import PluginError
from sealpipe.plugin import Message, Secret, SinkField
from sealpipe.reference import parse
from sealpipe.registry import Registry
from sealpipe.registry.channels import check_recipient, send_message
from sealpipe.registry.sinks import write_fields

LINK = "https://share.example/s/aB3#1Canary"
AWS_KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "c2VjcmV0",
    "AWS_REGION": "eu-west-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_OP = {"OP_CONNECT_TOKEN": "t0ken"}
_ID = "v" * 26

Do = Callable[[Registry, str], object]


class Talker(NamedTuple):
    """One of them. `environ` has `{}` where the address goes, and so may `to`; `setting` is what
    errors name.
    """

    setting: str
    environ: Mapping[str, str]
    to: str
    do: Do


def read(registry: Registry, reference: str) -> object:
    """Ask a source."""
    locator = registry.locate(parse(reference))
    answer = registry.fetch({locator.name: [locator]})[locator]
    if isinstance(answer, PluginError):
        raise answer
    return answer


def put(registry: Registry, reference: str) -> object:
    """Write to a sink."""
    fields = [SinkField("k", Secret("v4lue"))]
    return write_fields(
        registry,
        reference.partition(":")[0],
        registry.locate(parse(reference), "sink"),
        fields,
        "merge",
        "m",
    )


def post(registry: Registry, target: str) -> object:
    """Send by a channel."""
    name, _, to = target.partition(":")
    text = Secret(f"Hello\n{LINK}\n")
    message = Message(
        "share",
        Secret(LINK),
        text,
        "A secret for you",
        "DB",
        "aB3",
        datetime(2030, 1, 1, tzinfo=UTC),
    )
    return send_message(registry, name, message, check_recipient(registry, name, to))


def prove(registry: Registry, audience: str) -> object:
    """Ask for the CI's own token."""
    return registry.oidc_token(audience)


TALKERS: Mapping[str, Talker] = {
    "vault": Talker("addr", {"VAULT_ADDR": "{}", "VAULT_TOKEN": "t"}, "vault:secret/app#k", read),
    "vault-sink": Talker("addr", {"VAULT_ADDR": "{}", "VAULT_TOKEN": "t"}, "vault:secret/app", put),
    "op-connect": Talker(
        "OP_CONNECT_HOST", {"OP_CONNECT_HOST": "{}", **_OP}, f"op://{_ID}/{_ID}/f", read
    ),
    "aws-sm": Talker("AWS_ENDPOINT_URL", {"AWS_ENDPOINT_URL": "{}", **AWS_KEYS}, "aws-sm:db", read),
    "aws-sm-own": Talker(
        "AWS_ENDPOINT_URL_SECRETS_MANAGER",
        {"AWS_ENDPOINT_URL_SECRETS_MANAGER": "{}", **AWS_KEYS},
        "aws-sm:db",
        read,
    ),
    "aws-ssm": Talker(
        "AWS_ENDPOINT_URL_SSM", {"AWS_ENDPOINT_URL_SSM": "{}", **AWS_KEYS}, "aws-ssm:/db", read
    ),
    "aws-sts": Talker(
        "AWS_ENDPOINT_URL_STS",
        {
            "AWS_ENDPOINT_URL_STS": "{}",
            "SEALPIPE_PLUGIN_AWS__ROLE_ARN": "arn:aws:iam::123456789012:role/r",
            **AWS_KEYS,
        },
        "aws-sm:db",
        read,
    ),
    "aws-setting": Talker(
        "endpoint_url", {"SEALPIPE_PLUGIN_AWS__ENDPOINT_URL": "{}", **AWS_KEYS}, "aws-sm:db", put
    ),
    "k8s": Talker(
        "server",
        {"SEALPIPE_PLUGIN_K8S__SERVER": "{}", "SEALPIPE_PLUGIN_K8S__TOKEN": "t"},
        "k8s:prod/db#k",
        read,
    ),
    "webhook": Talker("http://", {"SEALPIPE_PLUGIN_WEBHOOK__SECRET": "s"}, "webhook:{}/hook", post),
    "slack": Talker(
        "api_url",
        {"SEALPIPE_PLUGIN_SLACK__API_URL": "{}", "SLACK_BOT_TOKEN": "xoxb-1"},
        "slack:#x",
        post,
    ),
    "slack-webhook": Talker("webhook", {"SLACK_WEBHOOK_URL": "{}/services/a"}, "slack:", post),
    "teams": Talker("webhook", {"TEAMS_WEBHOOK_URL": "{}/workflows/a"}, "teams:", post),
    "github": Talker(
        "api_url", {"GITHUB_API_URL": "{}", "GITHUB_TOKEN": "t"}, "github-comment:o/r#1", post
    ),
    "github-secret": Talker(
        "api_url", {"GITHUB_API_URL": "{}", "GITHUB_TOKEN": "t"}, "github-secret:o/r/K", put
    ),
    "gitlab": Talker(
        "url", {"CI_SERVER_URL": "{}", "GITLAB_TOKEN": "t"}, "gitlab-note:g/p!1", post
    ),
    "gitlab-variable": Talker(
        "api_url", {"CI_API_V4_URL": "{}", "GITLAB_TOKEN": "t"}, "gitlab-variable:g/p/K", put
    ),
    "oidc": Talker(
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": "{}/t",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "b",
        },
        "vault",
        prove,
    ),
}
