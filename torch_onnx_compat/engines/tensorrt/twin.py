"""The parsed network as a twin in torch: what the parser made of a file, computed in float64.

A layer whose meaning is not known is an error that names it (`NotKnown`); no layer is passed over. After each layer the
type and the sizes are compared with those that TensorRT derived for it. The twin shows how the parser read a file. It
does not show what the builder's kernels and fusions compute, nor rounding.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from torch_onnx_compat.engines.tensorrt import arithmetic, arranging, images  # noqa: F401 - add their layers
from torch_onnx_compat.engines.tensorrt.layers import FLOATS, KINDS, TYPES, Call, NetworkFault, NotKnown
from torch_onnx_compat.engines.tensorrt.network import Array, Layer, Network, Value

_ON_DEMAND = frozenset({"CONDITIONAL_OUTPUT", "LOOP_OUTPUT"})


def run_network(network: Network, feeds: Mapping[str, Array]) -> list[Array]:
    """Computes a network's outputs.

    Args:
        network: The network.
        feeds: Its inputs by name.

    Returns:
        The outputs in the network's order; floating-point ones in float64.

    Raises:
        NotKnown: It is not known what some layer computes, or what a layer yields is not what TensorRT derived.
        NetworkFault: The network cannot be computed as it stands.
    """
    with torch.no_grad():
        run = _Run(network, {value.name: _fed(value, feeds) for value in network.inputs})
        return [tensor.numpy() for tensor in run.demand(network.outputs)]


def unknown_kinds(network: Network) -> Counter[str]:
    """The kinds of layers whose meaning is not known here, with how often each occurs."""
    known = {*KINDS, *_ON_DEMAND, "CONDITION", "CONDITIONAL_INPUT", "RECURRENCE", "ITERATOR", "TRIP_LIMIT"}
    return Counter(layer.kind for layer in network.layers if layer.kind not in known)


def _fed(value: Value, feeds: Mapping[str, Array]) -> Tensor:
    if value.name not in feeds:
        raise NetworkFault(f"the network asks for input {value.name!r}; given are {', '.join(feeds)}.")
    if value.type not in TYPES:
        raise NotKnown(f"input {value.name!r} is of type {value.type}; the network cannot be judged.")
    return torch.from_numpy(np.array(feeds[value.name], order="C")).to(TYPES[value.type])


class _Run:
    """Values of one run, computed when they are asked for; a round of a loop is a run inside another."""

    def __init__(self, network: Network, values: dict[str, Tensor], around: _Run | None = None) -> None:
        self.network = network
        self.values = values
        self.around = around
        self.makers: dict[str, Layer]
        self.inside: Mapping[str, frozenset[str]]
        """The tensors that differ from round to round, by loop."""
        if around is None:
            self.makers = _makers(network)
            self.inside = _insides(network)
            self.uses = Counter(v.name for layer in network.layers for v in layer.inputs if v is not None)
            self.uses.update(network.outputs)
        else:
            self.makers, self.inside = around.makers, around.inside

    def demand(self, names: Sequence[str]) -> list[Tensor]:
        """The values of tensors."""
        waiting = list(reversed(names))
        while waiting:
            name = waiting[-1]
            if self._find(name) is not None:
                waiting.pop()
                continue
            owner = self._owner(name)
            if owner is not self:
                owner.demand([name])
                continue
            if name not in self.makers:
                raise NetworkFault(f"no layer makes tensor {name!r}.")
            layer = self.makers[name]
            missing = [n for n in self._needs(layer) if self._find(n) is None]
            if missing:
                waiting += missing
                if len(waiting) > 4 * len(self.makers) + 100:
                    raise NetworkFault(f"tensor {name!r} is computed from itself.")
                continue
            self._compute(layer)
        return [self._get(name) for name in names]

    def _owner(self, name: str) -> _Run:
        """The run that a tensor belongs to: an outer one, unless it differs from round to round."""
        if self.around is None or name in self.local:
            return self
        return self.around._owner(name)

    local: frozenset[str] = frozenset()

    def _find(self, name: str) -> Tensor | None:
        found = self.values.get(name)
        return self.around._find(name) if found is None and self.around is not None else found

    def _get(self, name: str) -> Tensor:
        found = self._find(name)
        assert found is not None
        return found

    def _needs(self, layer: Layer) -> list[str]:
        """The tensors to compute before a layer: of a conditional the condition, then the branch that is taken."""
        given = [value.name for value in layer.inputs if value is not None]
        if layer.kind == "LOOP_OUTPUT":
            return []
        if layer.kind != "CONDITIONAL_OUTPUT":
            return given
        condition = self._condition(layer)
        taken = self._find(condition)
        return [condition] if taken is None else [given[0 if bool(taken) else 1]]

    def _condition(self, layer: Layer) -> str:
        label = layer.attributes.get("conditional")
        for other in self.network.layers:
            if other.kind == "CONDITION" and other.attributes.get("conditional") == label and other.inputs[0]:
                return other.inputs[0].name
        raise NotKnown(f"layer {layer.name!r} of kind {layer.kind}: no condition is called {label!r}.")

    def _compute(self, layer: Layer) -> None:
        given = [None if value is None else self._find(value.name) for value in layer.inputs]
        call = Call(layer, given)
        if layer.kind == "CONDITIONAL_OUTPUT":
            found: Sequence[Tensor] = self.demand(self._needs(layer))
        elif layer.kind == "CONDITIONAL_INPUT":
            found = [call.input(0)]
        elif layer.kind == "LOOP_OUTPUT":
            found = [_run_loop(self, layer)]
        elif layer.kind in KINDS:
            try:
                result = KINDS[layer.kind](call)
            except (RuntimeError, IndexError) as error:  # torch's
                raise call.fault(f"cannot be computed: {str(error).splitlines()[0]}") from error
            found = [result] if isinstance(result, Tensor) else list(result)
        else:
            raise call.not_known("what it computes is not known here")
        for value, tensor in zip(layer.outputs, found, strict=True):
            _compare(layer, value, tensor)
            self.values[value.name] = tensor
        if self.around is None:
            self._forget(layer)

    def _forget(self, layer: Layer) -> None:
        """Frees what no other layer reads."""
        for value in layer.inputs:
            if value is not None:
                self.uses[value.name] -= 1
                if not self.uses[value.name] and not self.inside:  # a round of a loop may ask for it again
                    self.values.pop(value.name, None)


def _makers(network: Network) -> dict[str, Layer]:
    """The layer that makes each tensor."""
    makers: dict[str, Layer] = {}
    for layer in network.layers:
        for value in layer.outputs:
            if value.name in makers:
                raise NotKnown(f"two layers make a tensor {value.name!r}; the network cannot be judged.")
            makers[value.name] = layer
    return makers


def _compare(layer: Layer, value: Value, tensor: Tensor) -> None:
    """Compares a computed tensor with what TensorRT derived: a difference says that a layer means something else."""
    if TYPES.get(value.type) != tensor.dtype:
        wanted = "float64" if value.type in FLOATS else value.type
        raise NotKnown(f"layer {layer.name!r} of kind {layer.kind}: {tensor.dtype} here, {wanted} in TensorRT.")
    sizes = value.shape
    if sizes is None:
        return
    if len(sizes) != tensor.dim() or any(s not in (-1, t) for s, t in zip(sizes, tensor.shape, strict=True)):
        raise NotKnown(
            f"layer {layer.name!r} of kind {layer.kind}: shape {tuple(tensor.shape)} here, {sizes} in TensorRT."
        )


def _insides(network: Network) -> dict[str, frozenset[str]]:
    """The tensors of each loop that differ from round to round: what follows from its recurrences and iterators."""
    loops = {str(layer.attributes["loop"]) for layer in network.layers if layer.attributes.get("loop")}
    found: dict[str, frozenset[str]] = {}
    for loop in loops:
        inside = {
            value.name
            for layer in network.layers
            if layer.kind in ("RECURRENCE", "ITERATOR") and layer.attributes.get("loop") == loop
            for value in layer.outputs
        }
        grown = True
        while grown:
            grown = False
            for layer in network.layers:
                is_end = layer.kind == "LOOP_OUTPUT" and layer.attributes.get("loop") == loop
                names = {value.name for value in layer.outputs}
                if not is_end and not names <= inside and any(v and v.name in inside for v in layer.inputs):
                    inside |= names
                    grown = True
        found[loop] = frozenset(inside)
    return found


def _run_loop(run: _Run, output: Layer) -> Tensor:
    """Runs a loop and returns one of its outputs."""
    loop = output.attributes.get("loop")
    own = [layer for layer in run.network.layers if layer.attributes.get("loop") == loop and loop]
    by_kind: dict[str, list[Layer]] = {}
    for layer in own:
        by_kind.setdefault(layer.kind, []).append(layer)
    most, condition = _limits(run, output, by_kind.get("TRIP_LIMIT", []))
    states = {_name(r, "out"): run.demand([_name(r, 0)])[0] for r in by_kind.get("RECURRENCE", [])}
    steps = {_name(r, "out"): _name(r, 1) for r in by_kind.get("RECURRENCE", [])}
    kind, wanted = output.attributes.get("kind"), _name(output, 0)
    rounds: list[Tensor] = []
    count = 0
    while most is None or count < most:
        inner = _Run(run.network, dict(states), run)
        inner.local = run.inside[str(loop)]
        for iterator in by_kind.get("ITERATOR", []):
            inner.values[_name(iterator, "out")] = _item(run, iterator, count)
        if condition is not None and not bool(inner.demand([condition])[0]):
            break
        if kind != "LAST_VALUE" or wanted not in states:
            rounds.append(inner.demand([wanted])[0])
        after = inner.demand(list(steps.values()))
        states = dict(zip(steps, after, strict=True))
        count += 1
    if kind == "LAST_VALUE":
        if wanted not in states and not rounds:
            raise NotKnown(f"layer {output.name!r} of kind LOOP_OUTPUT: the last value of a loop without rounds.")
        return states[wanted] if wanted in states else rounds[-1]
    return _joined(run, output, rounds)


def _limits(run: _Run, output: Layer, layers: Sequence[Layer]) -> tuple[int | None, str | None]:
    """The number of rounds, and the tensor that says whether another one follows; None where there is none."""
    counts = [int(run.demand([_name(layer, 0)])[0]) for layer in layers if layer.attributes.get("kind") == "COUNT"]
    conditions = [_name(layer, 0) for layer in layers if layer.attributes.get("kind") == "WHILE"]
    if not layers or len(conditions) > 1:
        raise NotKnown(f"layer {output.name!r} of kind LOOP_OUTPUT: the end of its loop is not known.")
    return (min(counts) if counts else None), (conditions[0] if conditions else None)


def _item(run: _Run, iterator: Layer, count: int) -> Tensor:
    sequence = run.demand([_name(iterator, 0)])[0]
    axis = int(iterator.attributes["axis"])
    place = sequence.shape[axis] - 1 - count if iterator.attributes.get("reverse") else count
    return sequence.select(axis, place)


def _joined(run: _Run, output: Layer, rounds: list[Tensor]) -> Tensor:
    """The values of all rounds along a new axis, in order or from the last to the first."""
    if not rounds:
        raise NotKnown(f"layer {output.name!r} of kind LOOP_OUTPUT: the values of a loop without rounds.")
    length = run.demand([_name(output, 1)])[0] if len(output.inputs) > 1 and output.inputs[1] else None
    if length is not None and int(length) != len(rounds):
        raise NotKnown(f"layer {output.name!r} of kind LOOP_OUTPUT: {int(length)} values of {len(rounds)} rounds.")
    ordered = rounds if output.attributes.get("kind") == "CONCATENATE" else rounds[::-1]
    return torch.stack(ordered, int(output.attributes["axis"]))


def _name(layer: Layer, which: int | str) -> str:
    value = layer.outputs[0] if which == "out" else layer.inputs[int(which)]
    if value is None:
        raise NetworkFault(f"layer {layer.name!r} of kind {layer.kind} has no input {which}.")
    return value.name
