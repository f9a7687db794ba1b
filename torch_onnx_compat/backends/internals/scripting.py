"""If and Loop over traced functions, which only torch's script compiler can write."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch


def script_if(then: Any, otherwise: Any, inputs: int, outputs: int) -> Callable[..., Any]:
    """Scripts a function of a condition and tensors that calls one of two traced functions."""
    for function in (then, otherwise):
        _name_apart(function)
    tensors = _number_names("x", inputs)
    results = _number_names("r", outputs)
    # A traced function that returns one tensor in a tuple gives the tensor.
    target = f"({results},)" if outputs > 1 else results
    source = (
        f"def made(c, {tensors}):\n    if bool(c):\n        {target} = then({tensors})\n    else:\n"
        f"        {target} = otherwise({tensors})\n    return {results}\n"
    )
    return _script_source(source, {"then": then, "otherwise": otherwise})


def script_loop(kind: str, body: Any, carried: int, read: int, rows: Sequence[int | None]) -> Callable[..., Any]:
    """Scripts a loop that calls a traced function.

    Args:
        kind: ``for``: the control value is the number of rounds; the body takes the number of the round first.
            ``while``: it is whether there is a first round; the body returns first whether there is another.
        body: Takes the carried tensors, then the read ones; returns the carried ones, then the appended ones.
        carried: How many tensors are carried from round to round.
        read: How many tensors are only read.
        rows: Of each tensor that a round appends, the axis on which those of all rounds are joined; None stacks them.

    Returns:
        A function of the control value, the carried tensors, the read ones, and empty tensors to append to; it returns
        the carried tensors and those that were appended to.
    """
    _name_apart(body)
    state, reads, items, lists = (
        _number_names(n, k) for n, k in (("c", carried), ("x", read), ("y", len(rows)), ("l", len(rows)))
    )
    first = "tensor(i)" if kind == "for" else ""
    given = ", ".join(part for part in (first, state, reads) if part)
    made = ", ".join(part for part in ("" if kind == "for" else "t", state, items) if part)
    made = f"({made},)" if "," in made else made
    head = "for i in range(int(control)):" if kind == "for" else "go = bool(control)\n    while go:"
    lines = [f"{made} = body({given})"]
    for k, axis in enumerate(rows):
        lines.append(f"l{k} = cat([l{k}, y{k}.unsqueeze(0)])" if axis is None else f"l{k} = cat([l{k}, y{k}], {axis})")
    lines += [] if kind == "for" else ["go = bool(t)"]
    result = ", ".join(part for part in (state, lists) if part)
    parameters = ", ".join(part for part in ("control", state, reads, lists) if part)
    inside = "".join(f"        {line}\n" for line in lines)
    source = f"def made(control, {parameters[9:]}):\n    {head}\n{inside}    return {result}\n"
    return _script_source(source, {"body": body, "cat": torch.cat, "tensor": torch.tensor})


def forget_sizes(function: Any) -> None:
    """Takes the sizes of the example out of a traced function's graph: torch computes with them while it exports."""
    for value in _values_of(function):
        kind = value.type()
        if kind.kind() == "TensorType" and kind.sizes() is not None:
            value.setType(kind.with_sizes([None] * len(kind.sizes())))


def _name_apart(function: Any) -> None:
    """Names the values of a traced function as no other function's are.

    torch's exporter keeps the constants that it finds by the names of values. Where one branch has lost a value, one of
    the next branch may get its name, and with it the constant.
    """
    name = f"part{next(_made)}"
    for value in _values_of(function):
        value.setDebugName(name)


def _values_of(function: Any) -> Iterator[Any]:
    """What the nodes of a traced function's graph yield, those within others included."""
    todo = list(function.graph.nodes())
    while todo:
        node = todo.pop()
        todo += [inner for block in node.blocks() for inner in block.nodes()]
        yield from node.outputs()


def _number_names(name: str, count: int) -> str:
    return ", ".join(f"{name}{index}" for index in range(count))


def _script_source(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """Scripts the function `made` of a source; torch reads the source of a function through linecache."""
    name = f"<scripted {next(_made)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    scope["__name__"] = __name__
    try:
        exec(compile(source, name, "exec"), scope)
        function: Callable[..., Any] = torch.jit.script(scope["made"])
    finally:
        del linecache.cache[name]
    return function


_made = itertools.count()
