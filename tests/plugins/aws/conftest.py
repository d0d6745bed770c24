"""One moto for the folder, seen through a front that notes what is asked."""

from __future__ import annotations

from support.aws import aws, front, one_moto

__all__ = ["aws", "front", "one_moto"]
