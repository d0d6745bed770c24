"""Pages of docs/ that are made from the code's own tables. Run as a script, it writes them anew."""

from __future__ import annotations

from pathlib import Path

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from sealpipe.settings import COMMANDS, GLOBAL, Setting

DOCS = Path(__file__).resolve().parents[2] / "docs"

HEAD = """# Settings

Made from the table in `sealpipe/settings.py` by `python tests/docs/pages.py`.

A value comes from the flag, else the environment, else the user's config file, else the default. An empty variable
counts as unset. A `SEALPIPE_*` name that means nothing is told with the nearest that does. The config file is
`$XDG_CONFIG_HOME/sealpipe/config.toml` (`~/.config/sealpipe/config.toml`), or what `SEALPIPE_CONFIG` names; nothing is
ever read from the working directory on its own.

```toml
base_url = "https://api.example/v1"
link_base_url = "https://links.example"
api_key_file = "/home/me/.config/sealpipe/key"

[share]
expires_in = "24h"
```

No option takes a secret, and no secret belongs into the config file. The credential comes from `SEALPIPE_API_KEY` or
from the file that `SEALPIPE_API_KEY_FILE` names (one final newline is dropped); both set is an error. The service tag
is read off the credential.

`HTTPS_PROXY`, `NO_PROXY`, `SSL_CERT_FILE` and `SSL_CERT_DIR` are honoured; `SSLKEYLOGFILE` is not. Loopback never uses
a proxy, and `http://` is refused to any other host. Redirects are never followed.
The same holds for every source, sink and channel, on the address that is really used, wherever it was set
(`OP_CONNECT_HOST`, `AWS_ENDPOINT_URL`, a profile of AWS's config file, a kubeconfig). Loopback is `localhost`, `::1`
and `127.x.y.z` written out; other spellings (`127.1`, `0.0.0.0`, `::ffff:127.0.0.1`, numbers) are other machines.

In a CI system a secret reaches stdout only with `--print`: [in any CI system](ci-systems.md) says where that holds.

`--deadline` bounds all tries of one call of the service, and each exchange with whatever else a command talks to: a
request with its answer (name look-up, TLS and a proxy's answer included), the whole conversation with a mail server,
the run of a program that a source starts. A peer that always sends a little is late like one that is silent; no
further try begins when the time is over. A program may take longer where its own `timeout` is set; what you asked to
wait for (`--wait`, a prompt) is not counted. The metadata service of a cloud machine is asked by AWS's SDK itself.

The command line takes the credential out of the variables that the system shows of its process (`/proc/PID/environ`),
and on Linux the process is not dumpable: it leaves no core file, and no other process of the same user, a program that
it starts among them, reads its variables or memory. Root reads all: the memory of any process, and the variables that
the configuration of a container or a CI holds. A program that uses the library stays as it is.

A credential file, a config file or a state folder that others can write, or replace because they can write a folder on
the way to it (a sticky one such as `/tmp` is fine), is refused with the `chmod` that mends it; a credential file that
others can read is warned about. Root's group and a user's own group are not others. What a CI, Docker, Kubernetes or
systemd made for the job is taken as it is: GitLab's file variables and temporary folder, `RUNNER_TEMP`,
`AGENT_TEMPDIRECTORY`, `/run/secrets`, volumes of Kubernetes, `CREDENTIALS_DIRECTORY`. Run as root, sealpipe does not
mind folders of other users: containers have them mounted.

The outbox is in the state folder: `SEALPIPE_STATE_DIR`, else `$XDG_STATE_HOME/sealpipe`, else the CI's own temporary
folder, else `~/.local/state/sealpipe`.
"""

TITLES = {
    "": "For every command",
    "key": "sealpipe rehearsal key create",
    "account": "sealpipe rehearsal account",
    "rehearsal": "sealpipe rehearsal",
}


def settings_page() -> str:
    """docs/reference/settings.md."""
    return HEAD + "".join(_section(command, rows) for command, rows in {"": GLOBAL, **COMMANDS}.items())


def _section(command: str, rows: tuple[Setting, ...]) -> str:
    title = TITLES.get(command, f"sealpipe {command}")
    lines = [f"\n## {title}\n", "| option | variable | what | default |", "| --- | --- | --- | --- |"]
    return "\n".join([*lines, *(_row(command, row) for row in rows)]) + "\n"


def _row(command: str, row: Setting) -> str:
    kind = "" if row.flag else f" {'|'.join(row.choices) or row.metavar}"
    option = "" if row.secret else f"`{', '.join(filter(None, (row.short, row.option)))}{kind}`"
    what = row.help + (" In the variable, one a line." if row.multiple else "")
    cells = (option, f"`{row.variable(command)}`", what, row.default or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


SYSTEMS = """# In any CI system

Made from the table in `sealpipe/ci_systems.py` by `python tests/docs/pages.py`.

In a CI system many people can read what a job prints. So the link of a share, a value that `collect` opens and a link
that `unseal` opens reach stdout there only with `--print`, which says: *I capture it*.

```sh
link=$(sealpipe share -f env:DB_PASSWORD --print)                                         # captured: not in the log
sealpipe share -f env:DB_PASSWORD --send 'email:{to}' --param to=env:RECIPIENT            # to a person
sealpipe share -f env:DB_PASSWORD --link-file link.txt                                    # a new 0600 file
sealpipe share -f env:DB_PASSWORD --seal-link > link.sealed                               # for another job: `unseal`
sealpipe collect acme.json --to 'vault:secret/vendor/acme#password=Staging password'      # stored, not shown
```

Without one of these the command ends with exit code 2 before anything is sent or fetched, and names them. `resume`
needs `--print` of its own for a share whose link would go to stdout. A dry run shows nothing secret, and tells where
the run itself would be refused. `SEALPIPE_SHARE_PRINT=true` (`_COLLECT_`, `_UNSEAL_`, `_RESUME_`) does the same.

No `--print` is needed for a collect link, which opens nothing; for a link that is sealed; and for a share's link on
loopback, which is a [rehearsal's](rehearsal.md): there both the API's address and the link's are this machine.

## Masks

Where the system takes a command that hides a value, `--print` writes it to stderr first, for the whole link, its
fragment and each line of a value. It waits 0.25 s, for a runner reads stdout and stderr in two threads, and then
writes the value. stdout never carries a mask. Where stderr is closed, a file, the null device or a pipe that nobody
reads, the mask would not arrive, so `--print` ends with exit code 2. Do not capture stderr together with stdout
(`2>&1`), and leave `failOnStderr` of Azure Pipelines off. The other systems hide only what they knew before the job
began, so there `--print` needs no stderr.

A mask hides a value in the log, not in what a job uploads. The wait makes it most likely that the mask comes first; a
runner that gets no time for longer can still be late. Capture what is printed.

## Which systems

One of the variables is enough, and the first row that fits counts. Empty, `0`, `false`, `no` and `off` mean that it is
not set. `CI=false` switches off the last row alone: a system that names itself stays one.

| system | variables | masks by |
| --- | --- | --- |
"""


def systems_page() -> str:
    """docs/reference/ci-systems.md."""
    return SYSTEMS + "".join(map(_system, CI_SYSTEMS))


def _system(row: CISystem) -> str:
    signs = ", ".join(f"`{sign}`" for sign in row.signs)
    return f"| {row.title} | {signs} | {f'`{row.mask.prefix}`' if row.mask else ''} |\n"


PAGES = {"reference/settings.md": settings_page, "reference/ci-systems.md": systems_page}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
