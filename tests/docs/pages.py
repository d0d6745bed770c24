"""Pages of docs/ that are made from the code's own tables. Run as a script, it writes them anew."""

from __future__ import annotations

from pathlib import Path

from sealpipe.settings import COMMANDS, GLOBAL, Setting

DOCS = Path(__file__).resolve().parents[2] / "docs"

HEAD = """# Settings

Made from the table in `sealpipe/settings/` by `python tests/docs/pages.py`.

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
    """docs/settings.md."""
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


PAGES = {"settings.md": settings_page}

if __name__ == "__main__":
    for name, make in PAGES.items():
        (DOCS / name).write_text(make(), encoding="utf-8")
