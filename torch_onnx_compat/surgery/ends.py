"""What is done to a model at both its ends, around the call of a twin; the model itself is not edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.selectors import Selector, parse_all
from torch_onnx_compat.surgery.taken import Taken, check_taken


@dataclass(frozen=True)
class Ends:
    """Calls a twin so that the result is what the caller asked for. The original is run through it, too."""

    outputs: tuple[Selector, ...] = ()

    def call(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the model."""
        return Taken(self.outputs).run(model, args, kwargs)


def with_outputs(prepared: Prepared, outputs: Sequence[str] | str) -> Prepared:
    """The model with other outputs.

    Args:
        prepared: The model.
        outputs: Places in it, in order.

    Raises:
        CompatError: One names no module, or a module that is not called, or not just once, or returns no tensor.
    """
    selectors = parse_all("outputs", outputs, prepared.model)
    taken = Taken(selectors, to_the_end=True)
    run(prepared, prepared.inputs, taken)
    check_taken("outputs", selectors, taken, prepared.model)
    return replace(prepared, ends=Ends(selectors))


def run(prepared: Prepared, inputs: Inputs, taken: Taken) -> None:
    """Runs the original, unpatched model for what is to be taken out of it."""
    args, kwargs = inputs.call([t.clone() if isinstance(t, Tensor) else t for t in inputs.tensors])
    taken.run(prepared.twin(), args, kwargs)
