"""Settings of a PostgreSQL server, named like libpq's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from sealpipe.plugin import Secret
from sealpipe.plugin.settings import PluginSettings


class PostgresSettings(PluginSettings):
    """The server, and who sets passwords there.

    `url` (`postgresql://...`) may name all of it; the others fill in what it leaves out. `passfile`
    is a file in the format of `.pgpass`. `sslrootcert` is a PEM file, trusted instead of sealpipe's
    certificates. `connect_timeout` is in seconds.
    """

    url: Secret | None = None
    host: str = ""
    port: int | None = Field(default=None, ge=1, le=65535)
    dbname: str = ""
    user: str = ""
    password: Secret | None = None
    passfile: Path | None = None
    sslmode: Literal["", "disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = ""
    sslrootcert: Path | None = None
    connect_timeout: int = Field(default=10, ge=1, le=600)

    own_variables: ClassVar[Mapping[str, str]] = {
        "host": "PGHOST",
        "port": "PGPORT",
        "dbname": "PGDATABASE",
        "user": "PGUSER",
        "password": "PGPASSWORD",
        "passfile": "PGPASSFILE",
        "sslmode": "PGSSLMODE",
        "sslrootcert": "PGSSLROOTCERT",
        "connect_timeout": "PGCONNECT_TIMEOUT",
    }
