"""Keys of age and of SSH, and Debian's program `age`, with which files are exchanged."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pyrage import x25519

from support.parts import program

PASSWORD = "canary-in-a-file-of-age-5f1e"


class Keys:
    """An X25519 identity in a file of its own, and its recipient."""

    def __init__(self, folder: Path, name: str = "ours") -> None:
        identity = x25519.Identity.generate()
        self.private, self.recipient = str(identity), str(identity.to_public())
        self.file = folder / f"{name}.key"
        self.file.write_text(f"# made for a test\n{self.private}\n")
        self.file.chmod(0o600)

    def environ(self) -> dict[str, str]:
        """A machine that encrypts to this key and decrypts with it."""
        return {**self.writing(), "SEALPIPE_PLUGIN_AGE__IDENTITY_FILE": str(self.file)}

    def writing(self) -> dict[str, str]:
        """A machine that can only encrypt."""
        return {"SEALPIPE_PLUGIN_AGE__RECIPIENTS": self.recipient}


def ssh_key(folder: Path, kind: str, passphrase: str = "") -> Path:
    """A key of `ssh-keygen`; its public half ends in .pub."""
    path = folder / f"ssh-{kind}{'-locked' if passphrase else ''}"
    bits = ["-b", "2048"] if kind == "rsa" else []
    words = [
        program("ssh-keygen"),
        "-q",
        "-t",
        kind,
        *bits,
        "-N",
        passphrase,
        "-C",
        "ann@example",
        "-f",
        str(path),
    ]
    subprocess.run(words, check=True)
    return path


def age(*words: str | Path, given: bytes = b"") -> bytes:
    """Run Debian's `age`."""
    return subprocess.run(
        [program("age"), *words], input=given, capture_output=True, check=True
    ).stdout
