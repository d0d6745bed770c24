"""Generate the pages of docs/ that come from tables in the code. Run it as a script to write them."""

from __future__ import annotations

from pathlib import Path

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
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

Many people can read what a CI job prints. So in a CI job the link of a share, a value that `collect` decrypts and a
link that `unseal` opens go to stdout only with `--print`, which says that you capture stdout.

```sh
link=$(sealpipe share -f env:DB_PASSWORD --print)                                         # captured: not in the log
sealpipe share -f env:DB_PASSWORD --send 'email:{to}' --param to=env:RECIPIENT            # to a person
sealpipe share -f env:DB_PASSWORD --link-file link.txt                                    # to a new 0600 file
sealpipe share -f env:DB_PASSWORD --seal-link > link.sealed                               # for another job: `unseal`
sealpipe collect acme.json --to 'vault:secret/vendor/acme#password=Staging password'      # to a sink
```

Otherwise the command ends with exit code 2 (wrong usage) before it sends or fetches anything, and names these options.
`resume` needs its own `--print` for a share whose link would go to stdout. A dry run shows no secret and says where the
run itself would be refused. `SEALPIPE_SHARE_PRINT=true` (`_COLLECT_`, `_UNSEAL_`, `_RESUME_`) has the same effect as
`--print`.

You need no `--print` for a collect link (it opens nothing), for a sealed link, and for a share's link in a
[rehearsal](rehearsal.md) (both the API and the link are on loopback).

## Masks

If the system has a command that masks a value, `--print` first writes it to stderr, for the whole link, its fragment
and each line of a value. It then waits 0.25 s, because a runner reads stdout and stderr in two threads, and writes the
value. It never writes a mask to stdout. If stderr is closed, a file, the null device or an unread pipe, the mask would
be lost, so `--print` ends with exit code 2. Do not capture stderr together with stdout (`2>&1`), and keep
`failOnStderr` of Azure Pipelines off. Other systems only mask values that they knew before the job began, so `--print`
does not need stderr there.

A mask hides a value in the log, not in uploaded files. The wait makes it very likely that the mask comes first, but a
runner that is suspended longer can still be late. Always capture what you print.

## How a system is recognised

One variable is enough, and the first matching row counts. Empty, `0`, `false`, `no` and `off` count as unset.
`CI=false` turns off only the last row: a system with its own variable is still recognised.

GitHub Actions, Gitea, Forgejo, GitLab CI and Azure Pipelines have plugins of sealpipe's own. In every other system a
[third-party CI plugin](../how-to/write-a-plugin.md) is used if one is installed and its variable is set.

Without an ID or `--all`, `sealpipe resume` finishes only the entries of its own run. It tells runs apart in GitHub
Actions, Gitea, Forgejo, GitLab CI, Azure Pipelines, Bitbucket, Buildkite, CircleCI, Jenkins, TeamCity and Woodpecker,
by their documented variables. In other systems, all runs with the same state directory count as one.

| system | variables | mask |
| --- | --- | --- |
"""


def systems_page() -> str:
    """Return docs/reference/ci-systems.md."""
    return SYSTEMS + "".join(map(_system, CI_SYSTEMS))


def _system(row: CISystem) -> str:
    signs = ", ".join(f"`{sign}`" for sign in row.indicators)
    return f"| {row.title} | {signs} | {f'`{row.mask.prefix}`' if row.mask else ''} |\n"


PAGES = {"reference/settings.md": settings_page, "reference/ci-systems.md": systems_page}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
