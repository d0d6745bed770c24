"""Generate the pages of docs/ that come from tables in the code. Run it as a script to write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from sealpipe.mcp.tools import Tool, load_tools
from sealpipe.settings import COMMANDS, GLOBAL, Setting

DOCS = Path(__file__).resolve().parents[3] / "docs"

HEAD = """# Settings

Generated from the table in `sealpipe/settings.py` by `python tests/unit/docs/pages.py`.

A value comes from the option, else the environment, else the user's config file, else the default. An empty variable
counts as unset. For an unknown `SEALPIPE_*` variable, sealpipe warns and suggests the nearest known name. The config
file is `$XDG_CONFIG_HOME/sealpipe/config.toml` (`~/.config/sealpipe/config.toml`), or the file that `SEALPIPE_CONFIG`
names. Nothing is read from the working directory unless you name it.

```toml
base_url = "https://api.example/v1"
link_base_url = "https://links.example"
api_key_file = "/home/me/.config/sealpipe/key"

[share]
expires_in = "24h"
```

No option takes a secret, and no secret belongs in the config file. The credential comes from `SEALPIPE_API_KEY` or from
the file in `SEALPIPE_API_KEY_FILE` (one final newline is removed). Setting both is an error. The credential's prefix is
the service tag.

## Network

`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and `SSL_CERT_DIR` apply; `SSLKEYLOGFILE` does not. `http://` is allowed to
loopback only, and loopback never uses a proxy. Redirects are not followed. The same rules apply to every source, sink
and channel, for the address in use, wherever it is configured (`OP_CONNECT_HOST`, `AWS_ENDPOINT_URL`, a profile in
AWS's config file, a kubeconfig). Loopback is `localhost`, `::1` and a complete `127.x.y.z`; other spellings (`127.1`,
`0.0.0.0`, `::ffff:127.0.0.1`, numbers) count as other hosts.

`--deadline` limits each call of the service, retries included, and each exchange with any other peer: a request with
its response (including name lookup, TLS and the proxy), the conversation with a mail server, the run of a program that
a source starts. A peer that sends very slowly exceeds it like a silent one. After the deadline, sealpipe does not
retry. A program's own `timeout` can be longer, and time that you ask to wait (`--wait`, a prompt) does not count. AWS's
SDK calls the metadata service of a cloud machine with its own timeouts.

## Secrets in the environment and in files

In a CI system a secret reaches stdout only with `--print` ([CI systems](ci-systems.md)).

The command line removes the credential from the environment block that the system shows of its process
(`/proc/PID/environ`). On Linux the process is not dumpable: it leaves no core file, and other processes of the same
user, including programs that it starts, cannot read its variables or memory. Root can read everything: the memory of
any process, and variables in the configuration of a container or CI. A program that uses the library is not changed.

A credential file, config file or state directory that others can write is an error that prints the `chmod` to fix it.
The same holds if others can replace it because they can write to a folder above it (unless that is sticky, like
`/tmp`). A credential file that others can read causes a warning. Root's group and a user's own group are not others.
Files that a CI system, Docker, Kubernetes or systemd created for the job are accepted: GitLab's file variables and
temporary folder, `RUNNER_TEMP`, `AGENT_TEMPDIRECTORY`, `/run/secrets`, volumes of Kubernetes, `CREDENTIALS_DIRECTORY`.
As root, sealpipe accepts folders of other users, because containers mount them.

The state directory holds the outbox. It is the first of these: `SEALPIPE_STATE_DIR`, `$XDG_STATE_HOME/sealpipe`, the
job's temporary folder in GitHub Actions and GitLab CI, `~/.local/state/sealpipe`.
"""

TITLES = {
    "": "For every command",
    "key": "sealpipe rehearsal key create",
    "account": "sealpipe rehearsal account",
    "rehearsal": "sealpipe rehearsal serve",
    "webhook": "sealpipe rehearsal webhook add",
    "open": "sealpipe rehearsal open",
    "answer": "sealpipe rehearsal answer",
    "purge": "sealpipe requests purge",
    "expire": "sealpipe shares expire, sealpipe requests expire",
    "link": "sealpipe requests link",
    "log": "sealpipe shares log",
    "webhooks": "sealpipe webhooks verify",
    "remind": "sealpipe requests remind",
    "requests": "sealpipe requests list",
    "shares": "sealpipe shares list",
    "tools": "sealpipe tools call",
    "audit": "sealpipe audit verify",
}


def settings_page() -> str:
    """Return docs/reference/settings.md."""
    return HEAD + "".join(_section(command, rows) for command, rows in {"": GLOBAL, **COMMANDS}.items())


def _section(command: str, rows: tuple[Setting, ...]) -> str:
    title = TITLES.get(command, f"sealpipe {command}")
    lines = [f"\n## {title}\n", "| option | variable | meaning | default |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(command, row) for row in rows)]) + "\n"


def _row(command: str, row: Setting) -> str:
    kind = "" if row.flag else f" {'|'.join(row.choices) or row.metavar}"
    option = "" if row.secret else f"`{', '.join(filter(None, (row.short, row.option)))}{kind}`"
    what = row.help + (" In the variable: one per line." if row.multiple else "")
    cells = (option, f"`{row.get_variable(command)}`", what, row.default or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


SYSTEMS = """# CI systems

Generated from the table in `sealpipe/ci_systems.py` by `python tests/unit/docs/pages.py`.

Many people can read what a CI job prints. So in a CI job the link of a share, a value that `collect` decrypts or
`read` reads, and a link that `unseal` opens go to stdout only with `--print`, which says that you capture stdout.
[`run`](../how-to/run-a-command.md) needs none: it redacts what its command prints.

```sh
link=$(sealpipe share -f env:DB_PASSWORD --print)                                         # captured: not in the log
sealpipe share -f env:DB_PASSWORD --send 'email:{to}' --param to=env:RECIPIENT            # to a person
sealpipe share -f env:DB_PASSWORD --link-file link.txt                                    # to a new 0600 file
sealpipe share -f env:DB_PASSWORD --seal-link > link.sealed                               # for another job: `unseal`
sealpipe collect acme.json --to 'vault:secret/vendor/acme#password=Staging password'      # to a sink
```

Otherwise the command ends with exit code 2 (wrong usage) before it sends or fetches anything, and names these options.
`resume` needs its own `--print` for a share whose link would go to stdout. A dry run shows no secret and says where the
run itself would be refused. `SEALPIPE_SHARE_PRINT=true` (`_COLLECT_`, `_READ_`, `_UNSEAL_`, `_RESUME_`) has the same
effect as `--print`.

You need no `--print` for a collect link (it opens nothing), for a sealed link, and for a share's link in a
[rehearsal](rehearsal.md) (both the API and the link are on loopback).

## Masks

If the system has a command in the log that masks a value, `--print` first writes it to stderr, for the whole link, its
fragment and each line of a value. It then waits 0.25 s, because a runner reads stdout and stderr in two threads, and
writes the value. It never writes a mask to stdout. If stderr is closed, a file, the null device or an unread pipe, the
mask would be lost, so `--print` ends with exit code 2. Do not capture stderr together with stdout (`2>&1`), and keep
`failOnStderr` of Azure Pipelines off.

In Buildkite, `--print` has the agent redact the same values, on the standard input of `buildkite-agent redactor add`.
Where that program is missing (in a container, or with an old agent), a note on stderr says so, and the value is printed
all the same. Other systems only mask values that they knew before the job began. In all of these, `--print` does not
need stderr.

A mask hides a value in the log, not in uploaded files. The wait makes it very likely that the mask comes first, but a
runner that is suspended longer can still be late. Always capture what you print.

## How a system is recognised

One variable is enough, and the first matching row counts. Empty, `0`, `false`, `no` and `off` count as unset.
`CI=false` turns off only the last row: a system with its own variable is still recognised.

The systems under [What a job gets](#what-a-job-gets) have plugins of sealpipe's own. In every other system a
[third-party CI plugin](../how-to/write-a-plugin.md) is used if one is installed and its variable is set. In most of the
first rows, the user who starts a job can set variables such as `GITHUB_ACTIONS`: these rows come first, so that no mask
is written into a log that shows it.

| system | variables | mask |
| --- | --- | --- |
"""

JOBS = """
## What a job gets

**Runs.** Without an ID or `--all`, `sealpipe resume` finishes only the entries of its own run. It tells runs apart by
the variables below. In other systems, all runs with the same state directory count as one. The [audit
log](../products/audit.md) has the run, its link and the user who started it.

| system | run | link | user |
| --- | --- | --- | --- |
{runs}
TeamCity has the user only as a parameter, not as a variable. In Jenkins, the plugin build-user-vars sets it.

**Outputs.** `share` and `request` pass on the short code and the expiry, which are no secrets: `short-code` and
`expires-at`, where only variables are possible `SHORT_CODE` and `EXPIRES_AT`. A job of another system takes them from
stdout (`--output json`) or from a receipt.

| system | outputs |
| --- | --- |
{outputs}
- GitLab: only with the setting `dotenv`, the file of the report ([GitLab CI](../how-to/ci/gitlab.md)).
- Bitbucket: list the names in the step's `output-variables`.
- Azure: give the step a name; later steps read `$(NAME.SHORT_CODE)`, and later jobs
  `dependencies.JOB.outputs['NAME.SHORT_CODE']`.
- Buildkite: `buildkite-agent meta-data get sealpipe:short-code`, in any job of the build. The last value counts.
- TeamCity reads service messages only on stdout, which is yours: `echo "##teamcity[setParameter name='env.CODE'
  value='$code']"`.

**Tokens.** A [Vault](../products/vault.md) login by `jwt` and an [AWS](../products/aws.md) role with `audience` take
the job's own OIDC token, so that no secret has to be stored in the CI system.

| system | token | the job needs | its audience |
| --- | --- | --- | --- |
{tokens}
`SEALPIPE_PLUGIN_GITLAB__ID_TOKEN_VARIABLE` and `SEALPIPE_PLUGIN_JENKINS__ID_TOKEN_VARIABLE` name another variable.
`SEALPIPE_PLUGIN_AZURE__SERVICE_CONNECTION` is the ID of a service connection; the tasks AzureCLI and AzurePowerShell
set it. TeamCity and Woodpecker issue no tokens to jobs.

**Annotations.** GitHub Actions, Gitea, Forgejo and Azure Pipelines show an error of sealpipe on the run's page, and so
does Buildkite, as an annotation of the build.

## Sources

The facts are from the vendors' own pages and programs, read in November 2026: [Azure
agent](https://github.com/microsoft/azure-pipelines-agent), [Azure token
endpoint](https://learn.microsoft.com/en-us/rest/api/azure/devops/distributedtask/oidctoken/create), [Bitbucket
variables](https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/), [Bitbucket
outputs](https://www.atlassian.com/blog/bitbucket/easily-share-data-between-steps-in-bitbucket-pipelines), [Bitbucket
audiences](https://www.atlassian.com/blog/bitbucket/bitbucket-pipelines-oidc-now-supports-multiple-audiences),
[Buildkite agent](https://github.com/buildkite/agent), [CircleCI
variables](https://circleci.com/docs/reference/variables/), [CircleCI
tokens](https://circleci.com/docs/guides/permissions-authentication/oidc-tokens-with-custom-claims/), [Jenkins
oidc-provider](https://github.com/jenkinsci/oidc-provider-plugin), [TeamCity
messages](https://www.jetbrains.com/help/teamcity/service-messages.html), [TeamCity
variables](https://www.jetbrains.com/help/teamcity/predefined-build-parameters.html), [Woodpecker
variables](https://woodpecker-ci.org/docs/usage/environment). None of these systems runs on the machine of the tests:
their jobs are tested against fakes of what these pages say.
"""


def systems_page() -> str:
    """Return docs/reference/ci-systems.md."""
    jobs = JOBS.format(
        runs=_cells(
            (row.title, _code(", ".join(row.job.run)), _code(row.job.link), _code(row.job.actor)) for row in OWN
        ),
        outputs=_cells((row.title, _code(row.job.output)) for row in OWN if row.job.output),
        tokens=_cells(
            (row.title, _code(row.job.oidc), row.job.oidc_setup, row.job.audience) for row in OWN if row.job.oidc
        ),
    )
    return SYSTEMS + "".join(map(_system, CI_SYSTEMS)) + jobs


OWN = [row for row in CI_SYSTEMS if row.job.run]


def _system(row: CISystem) -> str:
    signs = ", ".join(map(_code, row.indicators))
    return _cells([(row.title, signs, _code(row.mask.prefix if row.mask else row.job.mask_program))])


def _cells(rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _code(text: str) -> str:
    return text and f"`{text}`"


TOOLS_HEAD = """# Assistants' tools

Generated from the tools in `sealpipe/mcp/` by `python tests/unit/docs/pages.py`.

The tools of `sealpipe mcp`, by which [an assistant](../how-to/assistants.md) asks for secrets and uses them. Arguments
in **bold** are required; unknown ones are refused. An answer is JSON, as structured content and as text. Text from
other people is in members named `untrusted`: at most 200 characters, with control and invisible characters and markup
escaped.

A call that fails has the member `error`, with `kind` (the name of the exception), `exit_code` ([what it
means](exit-codes.md)), `message`, `next` and, once the tool has begun, `detail` with the reason and
`remedy` with what a person can do, both untrusted. All tools have these errors: `UsageError` for wrong arguments,
`PolicyError` for what a policy does not allow, what nobody confirmed and too many calls in an hour, `SettingError` for
a setting that is missing, and the service's errors.
"""

TOOL_ERRORS = {
    "request_secret": "exit code 14 (the sink or the channel cannot be used: nothing was created), `DeliveryError` "
    "(the request exists, and its link was not sent), `OutcomeUnknownError` (it may exist: `list` finds out)",
    "wait_for_submission": "`NotFoundError` (this server made no such request)",
    "collect_secret": "`NotFoundError`, `PendingError` (there is no submission yet), `NoSubmissionError` (it expired "
    "without one), `UnreadableSubmissionError`, exit code 14 (the sink failed: nothing is lost, and the call can be "
    "repeated)",
    "share_secret": "exit code 14 (a source or the channel cannot be used: nothing was sent), `DeliveryError` (the "
    "share exists, and its link was not sent or may have arrived; `detail` has its short code and the `sealpipe "
    "resume` for a person; the same call sends what was certainly not sent), `OutcomeUnknownError` (the same call "
    "finds out)",
    "run_with_secrets": "`UsageError` (there is no such program, a loader or a shell obeys the variable, or a secret "
    "has less than 4 characters and could not be redacted), exit code 14 (a source cannot be read); nothing was "
    "started",
    "status": "`NotFoundError` (this server did not make it)",
    "expire": "`NotFoundError` (this server did not make it), `UsageError` (the request has a submission), "
    "`OutcomeUnknownError` (the call can be repeated: it sends no second DELETE)",
}
"""Errors of a tool that not every tool has."""


def tools_page() -> str:
    """Return docs/reference/assistant-tools.md."""
    return TOOLS_HEAD + "".join(map(_tool, load_tools().values()))


def _tool(tool: Tool[Any]) -> str:
    text = f"\n## {tool.name}\n\n{_wrap(tool.description)}\n"
    for title, schema in (("argument", tool.schema), ("answer", tool.output)):
        if rows := [*_members(schema)]:
            text += f"\n| {title} | type | meaning |\n| --- | --- | --- |\n{_cells(rows)}"
    return text + (f"\n{_wrap(f'Errors: {TOOL_ERRORS[tool.name]}.')}\n" if tool.name in TOOL_ERRORS else "")


def _wrap(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _members(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each member; of lists of objects, theirs too."""
    for name, member in schema.get("properties", {}).items():
        is_needed = name in schema["required"] and not prefix
        shown = f"**`{prefix}{name}`**" if is_needed else f"`{prefix}{name}`"
        yield shown, _type(member), member.get("description", "")
        if member.get("type") == "array":
            yield from _members(member["items"], f"{name}[].")


def _type(member: Mapping[str, Any]) -> str:
    kinds = member["type"] if isinstance(member["type"], list) else [member["type"]]
    if "enum" in member:
        return ", ".join(map(_code, member["enum"]))
    if "untrusted" in member.get("properties", {}):
        return "untrusted"
    limits = [f"{member[low]} to {member[high]}" for low, high in _LIMITS if low in member and high in member]
    return f"{' or '.join(kinds)}{f', {limits[0]}' if limits else ''}"


_LIMITS = (("minimum", "maximum"), ("minItems", "maxItems"))

PAGES = {
    "reference/settings.md": settings_page,
    "reference/ci-systems.md": systems_page,
    "reference/assistant-tools.md": tools_page,
}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
