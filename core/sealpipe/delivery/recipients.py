"""The recipients of a link and a passcode (`--send`, `--passcode-to`, `--param`).

They are checked before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from sealpipe.delivery.messages import parse_message_template
from sealpipe.errors import PluginError, Remedy, UsageError
from sealpipe.parsing import redact_address
from sealpipe.plugin import SEGMENTS
from sealpipe.reference import Reference, Target, parse, parse_target
from sealpipe.reference.text import PLAIN_NAME_RULE, Template, parse_template
from sealpipe.registry import Registry
from sealpipe.registry.channels import check_recipient
from sealpipe.sources.resolve import Cache, resolve_value

Content = Literal["link", "passcode"]


class Recipient(NamedTuple):
    """One recipient of the link or the passcode.

    `shown` is the target as given, with unfilled placeholders.

    Only policies get its `address`: in `shown`, in its text and in its repr it is redacted.
    """

    content: Content
    channel: str
    to: str
    shown: str

    @property
    def address(self) -> str:
        """The channel and the recipient, unredacted."""
        return f"{self.channel}:{self.to}"

    def __str__(self) -> str:
        return redact_address(self.address)

    def __repr__(self) -> str:
        return f"Recipient({self.content} to {self})"


class ChannelTarget(NamedTuple):
    """A target as given, and its text with placeholders."""

    content: Content
    target: Target
    pattern: Template

    def __repr__(self) -> str:
        return f"ChannelTarget({self.content} to {self.target})"


class DeliveryPlan(NamedTuple):
    """What to send where. `template` is the message's text; None for the built-in one."""

    targets: tuple[ChannelTarget, ...]
    params: Mapping[str, Reference]
    template: str | None = None


Params = Mapping[str, str | Reference] | Sequence[tuple[str, Reference]]


def plan_delivery(
    send: Iterable[Target | str],
    passcode_to: Iterable[Target | str],
    params: Params,
    template: str | None,
    *,
    with_passcode: bool,
) -> DeliveryPlan:
    """Check a delivery as far as possible without a plugin. Raises UsageError."""
    targets = tuple(
        [parse_channel("link", target) for target in send]
        + [parse_channel("passcode", to) for to in passcode_to]
    )
    contents = {each.content for each in targets}
    if "passcode" in contents and not with_passcode:
        raise UsageError(
            "there is no passcode to send",
            remedy=Remedy(
                "add --passcode-generate or --passcode-from",
                python="write passcode_generate=True or passcode=REF",
            ),
        )
    if template is not None:
        if "link" not in contents:
            remedy = Remedy("add --send CHANNEL", python='write send=["email:{to}"]')
            raise UsageError("--message-template needs --send", remedy=remedy)
        parse_message_template(template)
    return DeliveryPlan(
        targets,
        _parse_params(params, {name for each in targets for name in each.pattern.names}),
        template,
    )


def resolve_recipients(
    plan: DeliveryPlan, registry: Callable[[], Registry], cache: Cache
) -> tuple[Recipient, ...]:
    """Resolve all recipients, each checked by its channel. Nothing is sent.

    Raises UsageError, PluginError; each names the target as given.
    """
    values: dict[str, str] = {}
    for name, ref in plan.params.items():
        value = resolve_value(ref, registry, cache)
        values[name] = _check_value(name, ref, None if value is None else value.reveal())
    return check_targets(plan.targets, values, registry)


def parse_channel(content: Content, target: Target | str) -> ChannelTarget:
    """Parse a channel and the template of its address. Raises UsageError."""
    target = parse_target(target) if isinstance(target, str) else target
    return ChannelTarget(content, target, parse_template(target.to, f"what follows {target.name}:"))


def _parse_params(params: Params, placeholders: set[str]) -> dict[str, Reference]:
    pairs = list(params.items() if isinstance(params, Mapping) else params)
    parsed = {
        name: parse(ref, "the parameter") if isinstance(ref, str) else ref for name, ref in pairs
    }
    if len(parsed) < len(pairs):
        raise UsageError("--param gives a value twice", remedy="give every value once")
    if missing := sorted(placeholders - parsed.keys()):
        raise UsageError(
            f"--param {missing[0]} is missing: the target contains {{{missing[0]}}}",
            remedy=Remedy(
                f"add --param {missing[0]}=REF, or write {{{{ for a brace",
                python=f'write params={{"{missing[0]}": REF}}, or {{{{ for a brace',
            ),
        )
    if unused := [name for name in parsed if name not in placeholders]:
        raise UsageError(
            f"no channel uses --param {unused[0]}", remedy=f"write {{{unused[0]}}} where it belongs"
        )
    return parsed


def _check_value(name: str, ref: Reference, value: str | None) -> str:
    """Return a value for a placeholder: one line of printable text. An error does not show it."""
    if not value:
        raise UsageError(
            f"--param {name}: {ref} has no value", remedy="a recipient is not optional"
        )
    if not value.isprintable():
        ends_in_newline = value.rstrip("\r\n").isprintable()
        raise UsageError(
            f"--param {name}: {ref} "
            + ("ends with a line break" if ends_in_newline else "contains a control character"),
            remedy="add ?trim=1 to its reference"
            if ends_in_newline
            else "use one line of printable text",
        )
    return value


def check_targets(
    targets: Sequence[ChannelTarget], values: Mapping[str, str], registry: Callable[[], Registry]
) -> tuple[Recipient, ...]:
    """Fill in the values, and let each channel check its recipient.

    Sends nothing. Raises UsageError, PluginError.
    """
    plugins = registry()
    recipients: dict[tuple[str, str], Recipient] = {}
    for content, target, pattern in targets:
        info = plugins.channel_info(target.name)
        if SEGMENTS in info.capabilities:
            _check_segments(target, pattern, values)
        try:
            to = check_recipient(plugins, target.name, pattern.fill(values))
        except PluginError as error:
            raise _make_target_error(error, target) from None
        # By plugin, because two stores of one plugin may reach one recipient, and in any spelling.
        key = info.name, to.strip().casefold()
        if key in recipients:
            raise _make_duplicate_error(recipients[key], content, target)
        recipients[key] = Recipient(content, target.name, to, str(target))
    return tuple(recipients.values())


def _make_target_error(error: PluginError, target: object) -> PluginError:
    """Return an error about a target with its name."""
    is_named = error.message.startswith(f"{target}")
    named = error.copy_with(message=error.message if is_named else f"{target}: {error.message}")
    named.locator = named.locator or str(target)
    return named


def _check_segments(target: Target, pattern: Template, values: Mapping[str, str]) -> None:
    name = pattern.find_misfit(values)
    if name is not None:
        raise UsageError(
            (
                f"{target}: the value of --param {name} is not one plain name, which it has to "
                "be in this target"
            ),
            remedy=f"{PLAIN_NAME_RULE}; write fixed parts into the target itself",
        )


def _make_duplicate_error(first: Recipient, content: Content, target: Target) -> UsageError:
    if first.content == content:
        return UsageError(
            f"{target} names a recipient of the {content} twice", remedy="name each once"
        )
    return UsageError(
        (
            f"link and passcode would go to the same recipient, {target}: anyone who reads "
            "both can open the share"
        ),
        remedy="send the passcode through another channel or to another recipient",
    )
