"""A network with the stages that were cut off it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.surgery.on_graph.stage import Stage


@dataclass
class CutGraph:
    """The network with the stages that were cut off it.

    Attributes:
        network: The graph of the file.
        preprocess: The stage that the host runs before the file.
        postprocess: The stage that the host runs after the file.
        parts: The stages that the network was split into.
        without_body: Functions in the network that are needed to check it, and are not written to the file.
        done: Names of the entries that were applied.
        notes: Notes for the caller.
    """

    network: ir.Model
    preprocess: Stage | None = None
    postprocess: Stage | None = None
    parts: tuple[Stage, ...] = ()
    without_body: tuple[Any, ...] = ()
    done: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def before(self) -> tuple[Stage, ...]:
        """The stages before the file."""
        return () if self.preprocess is None else (self.preprocess,)

    @property
    def after(self) -> tuple[Stage, ...]:
        """The stages after the file."""
        return () if self.postprocess is None else (self.postprocess,)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All stages besides the network's own file."""
        return (*self.before, *self.after, *self.parts)

    @property
    def is_cut(self) -> bool:
        """Whether the file's inputs or outputs differ from the model's."""
        return self.preprocess is not None or self.postprocess is not None
