"""The generated tables of docs/reference/ci-systems.md."""

from __future__ import annotations

from sealpipe.ci_systems import CI_SYSTEMS, CISystem
from unit.docs.generator.markdown import code, table

OWN = [row for row in CI_SYSTEMS if row.job.run]


def systems() -> str:
    """Return how each system is recognised, and what it masks values with."""
    return table(("system", "variables", "mask"), map(_system, CI_SYSTEMS))


def _system(row: CISystem) -> tuple[str, ...]:
    mask = row.mask.prefix if row.mask else row.job.mask_program
    return row.title, ", ".join(map(code, row.indicators)), code(mask)


def runs() -> str:
    """Return what tells the runs of each system apart."""
    rows = (
        (row.title, code(", ".join(row.job.run)), code(row.job.link), code(row.job.actor))
        for row in OWN
    )
    return table(("system", "run", "link", "user"), rows)


def outputs() -> str:
    """Return how each system takes outputs."""
    return table(
        ("system", "outputs"), ((row.title, code(row.job.output)) for row in OWN if row.job.output)
    )


def tokens() -> str:
    """Return where each system has a job's identity token."""
    rows = (
        (row.title, code(row.job.oidc), row.job.oidc_setup, row.job.audience)
        for row in OWN
        if row.job.oidc
    )
    return table(("system", "token", "the job needs", "its audience"), rows)
