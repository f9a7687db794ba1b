"""A network and what was cut off it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from torch_onnx_compat.surgery.on_graph.stage import Stage


@dataclass
class CutGraph:
    """The network, and what was cut off it.

    Attributes:
        network: What goes into the file.
        preprocess: What the host does to the inputs before.
        postprocess: What the host does to the outputs after.
        parts: The network once more, split.
        without_body: Functions in the network that only a check needs.
        done: Entries that did something.
        notes: What the caller should know.
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
        """What runs before the file."""
        return () if self.preprocess is None else (self.preprocess,)

    @property
    def after(self) -> tuple[Stage, ...]:
        """What runs after the file."""
        return () if self.postprocess is None else (self.postprocess,)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """All that is no part of the network's own file."""
        return (*self.before, *self.after, *self.parts)

    @property
    def is_cut(self) -> bool:
        """Whether the file takes or gives something else than the model."""
        return self.preprocess is not None or self.postprocess is not None
