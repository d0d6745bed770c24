"""The service against a model of the specification's states; tests/campaigns/state_machine.py has more runs of it."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from rehearsal.doors import OverASocket
from rehearsal.machine import Machine


class OverTheWire(Machine):
    """The same steps over a real socket."""

    door_class = OverASocket


def short(runs: int, steps: int) -> settings:
    return settings(
        max_examples=runs,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def test_every_answer_is_the_models() -> None:
    run_state_machine_as_test(Machine, settings=short(60, 50))


def test_over_a_real_socket_too() -> None:
    run_state_machine_as_test(OverTheWire, settings=short(4, 50))
