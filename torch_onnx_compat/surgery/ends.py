"""What is done to a model at both its ends, around the call of a twin; the model itself is not edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from torch_onnx_compat import tree
from torch_onnx_compat.inputs import Inputs
from torch_onnx_compat.prepare import Prepared
from torch_onnx_compat.surgery.selectors import OWN, Selector, parse_all
from torch_onnx_compat.surgery.taken import Taken, check_taken

_OWN = Selector(OWN, None)


@dataclass(frozen=True)
class Ends:
    """Calls a twin so that the result is what the caller asked for. The original is run through it, too.

    Attributes:
        outputs: What the file gives; the model's own result by default.
    """

    outputs: tuple[Selector, ...] = (_OWN,)

    def call(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the model; the result is a mapping, in the order of the outputs."""
        return Taken(self.outputs).run(model, args, kwargs)

    def path_of(self, path: tree.Path) -> tree.Path:
        """The place of a tensor in the result as it names the file's output: the model's own are called as ever."""
        own = any(selector.path is None for selector in self.outputs)
        return path[1:] if own and path[:1] == (OWN,) else path


def select(keyword: str, prepared: Prepared, places: Sequence[str] | str) -> tuple[Selector, ...]:
    """The places in a model that the caller named, found in a run on the example.

    Raises:
        CompatError: One names no module, or a module that is not called, or not just once, or returns no tensor.
    """
    selectors = parse_all(keyword, places, prepared.model)
    taken = Taken(selectors, to_the_end=True)
    run(prepared, prepared.inputs, taken)
    check_taken(keyword, selectors, taken, prepared.model)
    return selectors


def with_outputs(prepared: Prepared, outputs: Sequence[str] | str) -> Prepared:
    """The model with other outputs.

    Args:
        prepared: The model.
        outputs: Places in it, in order.

    Raises:
        CompatError: As `select`.
    """
    return replace(prepared, ends=Ends(select("outputs", prepared, outputs)))


def with_cuts(ends: Ends | None, cuts: Sequence[Selector]) -> Ends:
    """Ends that also give the values at which the graph is to be cut, after the outputs."""
    ends = ends or Ends()
    return replace(ends, outputs=(*ends.outputs, *(cut for cut in cuts if cut not in ends.outputs)))


def run(prepared: Prepared, inputs: Inputs, taken: Taken) -> None:
    """Runs the original, unpatched model for what is to be taken out of it."""
    args, kwargs = inputs.call([tensor.clone() for tensor in inputs.tensors])
    taken.run(prepared.twin(), args, kwargs)
