"""A share that a fault left behind, and `sealpipe resume` after it."""

from __future__ import annotations

from support.job import Job


def assert_finished_by_resume(job: Job, **environ: str | None) -> None:
    """One entry is there. `resume` makes exactly one share of it, prints its link, and leaves
    nothing.
    """
    assert len(job.entries()) == 1
    done = job.resume(**environ)
    assert done.code == 0, done
    assert len(job.shares()) == 1
    assert job.opens(done.out)
    assert job.left() == []
