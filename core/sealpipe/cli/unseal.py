"""`sealpipe unseal`: a sealed link opened again, in another job."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import click

from sealpipe.cli import output
from sealpipe.cli.options import Command, options

_NEEDED = ("api_key_file", "service_tag", "ca_file", "output")


@click.command(cls=Command)
@click.argument("sealed", metavar="SEALED", envvar="SEALPIPE_SEALED_LINK")
@options("unseal", common=_NEEDED)
def unseal(sealed: str, **values: Any) -> None:
    """Open a link that `share --seal-link` sealed, with the same credential. Asks the service nothing.

    SEALED is no secret: it opens nothing without the credential. In CI the link is masked before it is written. Without
    the word, SEALPIPE_SEALED_LINK is read.
    """
    from sealpipe import configuration
    from sealpipe.cli import deliver, masking
    from sealpipe.client.plugins import registry
    from sealpipe.errors import NotDelivered
    from sealpipe.flows import sealed_link
    from sealpipe.flows.session import open_credential, open_previous

    deliver.refuse_open_log(values["link_file"])
    to = deliver.targets(values["link_file"], None)
    credential = open_credential(configuration.api_key(os.environ, values["api_key_file"]), values["service_tag"])
    previous = configuration.previous_api_key(os.environ)
    link = sealed_link.unseal(sealed, credential, *([open_previous(previous)] if previous else []))
    masking.hide_link(partial(registry, values["ca_file"]), link)
    path = to["link_file"]
    if path is not None:
        try:
            deliver.write(path, link.reveal() + "\n")
        except OSError as error:
            raise NotDelivered(
                f"{path} could not be written: {error.strerror}", remedy="run it again with another --link-file"
            ) from None
    if values["output"] == "json":
        output.json_result({"link": None if path else link.reveal(), "link_file": path})
    elif path is None:
        output.result(link.reveal() + "\n")
