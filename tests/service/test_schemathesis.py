"""schemathesis against the live service: no answer is a 500, or not as the OpenAPI document
says.
"""

from __future__ import annotations

from schemathesis import GenerationMode

from sealpipe_rehearsal.running_service import RunningService
from sealpipe_service import gateway
from service.schemathesis_cases import Run


def test_no_answer_is_out_of_shape(service: RunningService) -> None:
    counts = Run(service).all(500)
    assert counts.total() >= 500
    assert {label for label, _, _ in counts} == {
        f"{each.method} /{'/'.join(each.path)}" for each in gateway.ROUTES
    }
    # What the cases reached: creates that succeed, codes that are found, and refusals.
    reached = {(label, status) for label, mode, status in counts if mode is GenerationMode.POSITIVE}
    for what in ("shares", "requests"):
        one = f"{what}/{{shortCode}}"
        assert {
            (f"POST /{what}", 201),
            (f"GET /{one}", 200),
            (f"DELETE /{one}", 200),
            (f"GET /{one}", 404),
        } <= reached
    assert {status for _, mode, status in counts if mode is GenerationMode.NEGATIVE} >= {
        200,
        400,
        401,
        404,
        429,
    }
