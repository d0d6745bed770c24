"""The sources that need nothing but this machine. Their modules are imported when one of them is used."""

from __future__ import annotations

from collections.abc import Callable

from sealpipe.plugin import FRESH, SourceInfo, hookimpl


@hookimpl
def sealpipe_sources(register: Callable[[SourceInfo], None]) -> None:
    """The descriptors."""
    here = "sealpipe_plugins.sources"
    register(SourceInfo("env", "an environment variable: env:DB_PASSWORD", f"{here}.env:EnvSource"))
    register(SourceInfo("file", "a file's content, exactly: file:deploy.pem", f"{here}.file:FileSource"))
    register(SourceInfo("stdin", "standard input, to its end: stdin:", f"{here}.stdin:StdinSource"))
    register(SourceInfo("text", "the text itself, no secret: text:deploy-bot", f"{here}.text:TextSource"))
    register(
        SourceInfo(
            "dotenv",
            "a key of a dotenv file: dotenv:.env.prod#DB_PASSWORD",
            f"{here}.dotenv:DotenvSource",
            format="dotenv",
        )
    )
    register(
        SourceInfo(
            "gen",
            "a new secret, drawn here: gen:password, passphrase, pin, hex, uuid, ssh",
            f"{here}.gen:GenSource",
            params={
                "length": "characters of a password (24), digits of a pin (6)",
                "symbols": "0: a password of letters and digits only",
                "words": "words of a passphrase (6)",
                "separator": "what stands between the words of a passphrase (-)",
                "bytes": "bytes of gen:hex (32)",
                "comment": "comment of an ssh key",
                "name": "mentions with the same name are one value; without it each is a new one",
            },
            capabilities=(FRESH,),
        )
    )
