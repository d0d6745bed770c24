"""What a batch of one row does before it is interrupted, and how it has to end."""

from __future__ import annotations

from pathlib import Path

from cli.batch.world import DAY, BatchWorld

STORIES = ("creating", "reminding", "collecting")
ROWS = [{"name": "acme", "system": "CRM", "to": "acme.example"}]


def tell(world: BatchWorld, path: Path, story: int) -> None:
    """What happens before the run that is killed: nothing; a pause; or a submission."""
    if story:
        world.run(path)
        world.wait(4 * DAY)
    if story == 2:
        world.submit(world.code_of("acme.example"), {"Staging password": "s3cret"})


def check(world: BatchWorld, path: Path, story: int) -> None:
    """After the next run: one live request, each message once or told, each submission stored
    once.
    """
    world.run(path)
    if story == 2 and world.states(path)["acme"] == "failed":
        # A DELETE that was on its way may still arrive, and a second one would destroy (rule D):
        # not before an hour.
        assert world.loft.puts == ["vendors/acme"]
        assert "destroy the submissions" in world.progress(path, "acme").remedy
        world.wait(2 * 3600)
        world.run(path)
    state, progress = world.states(path)["acme"], world.progress(path, "acme")
    due = 2 if story == 1 else 1
    number = len(world.messages("acme.example"))
    if state == "blocked":
        assert progress.unclear, progress
        assert "batch remind" in progress.remedy
        assert number in (due - 1, due)
    else:
        assert state == ("done" if story == 2 else "waiting"), progress
        assert number == due
    assert len({message.short_code for message in world.messages("acme.example")}) <= 1
    if story == 2:
        assert world.loft.puts == ["vendors/acme"]
        assert world.loft.values["vendors/acme"]["password"] == "s3cret"
    assert world.run(path).changes == [], "and then nothing is left to do"
