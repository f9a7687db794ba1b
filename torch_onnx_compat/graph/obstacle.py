"""Obstacles to an opset: one record for each node, one error for all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch_onnx_compat.errors import UnsupportedError


class Refusal(Exception):
    """Raised by a rule that cannot write its node for the lower opset.

    Attributes:
        reason: The feature of the node that the opset lacks.
        hint: A remedy other than a higher opset; may be empty.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint


@dataclass(frozen=True)
class Obstacle:
    """A node that the wanted opset cannot hold."""

    op_type: str
    place: str
    reason: str
    remedy: str
    """Advice to the caller, in the imperative."""


def error(obstacles: Iterable[Obstacle], source: int, target: int) -> UnsupportedError:
    """Builds the one error that lists every obstacle: operator, count, one place, reason and remedy."""
    groups: dict[tuple[str, str], list[Obstacle]] = {}
    for obstacle in obstacles:
        groups.setdefault((obstacle.op_type, obstacle.reason), []).append(obstacle)
    lines = [f"opset_version={target}: the model, written for opset {source}, has operators that cannot be converted:"]
    for (op_type, reason), members in groups.items():
        first = members[0]
        nodes = "1 node" if len(members) == 1 else f"{len(members)} nodes"
        lines.append(f"  {op_type}, {nodes}, e.g. at {first.place!r}: {reason}; {first.remedy}.")
    return UnsupportedError("\n".join(lines))
