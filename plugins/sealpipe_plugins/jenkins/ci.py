"""Jenkins: where its token is. The rest is in the table of CI systems."""

from __future__ import annotations

from sealpipe.plugin.settings import PluginSettings


class JenkinsCISettings(PluginSettings):
    """`id_token_variable` is the variable that the job binds an OIDC token to (default:
    ID_TOKEN).
    """

    id_token_variable: str = ""
