"""Makes a loop that runs in the file: runs the body on copies to find out what it carries, then makes the loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.control_flow.run.belongings import bind_attributes
from torch_onnx_compat.control_flow.run.branch import Branch, NoConditional
from torch_onnx_compat.control_flow.run.iterables import CountedItems, is_scannable
from torch_onnx_compat.control_flow.run.loop_plan import LoopPlan
from torch_onnx_compat.control_flow.run.rounds import Round, initial_value
from torch_onnx_compat.control_flow.run.session import RefusedDecision, Session, as_tensor, refusal
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.places import first_line
from torch_onnx_compat.tracing import is_tracing


def make_loop(
    session: Session, one: Round, source: CountedItems | None, values: dict[str, Any], leaves_early: bool
) -> Any:
    """Makes a loop whose number of rounds depends on the inputs.

    Args:
        session: Of the run.
        one: Its body.
        source: The items of a ``for``; None for a ``while``.
        values: The values of the names before the loop.
        leaves_early: Whether the body may end the loop.

    Returns:
        The values of the names after the loop.

    Raises:
        RefusedDecision: It has no equivalent; says where and why.
    """
    try:
        made = _build_loop(session, one, source, values, leaves_early)
    except RefusedDecision:
        raise
    except NoConditional as obstacle:
        raise refusal(f"how often this loop runs depends on the inputs, and {obstacle}.") from obstacle
    except Exception as error:
        raise refusal(
            f"how often this loop runs depends on the inputs, and it cannot become an ONNX Loop: "
            f"{type(error).__name__}: {first_line(error)}."
        ) from error
    session.mark("Loop")
    return made


def _build_loop(
    session: Session, one: Round, source: CountedItems | None, values: dict[str, Any], leaves_early: bool
) -> dict[str, Any]:
    number = _first_number(source.length) if source else None
    originals: dict[int, tuple[Tensor, Tensor]] = {}

    def clone_leaf(leaf: Any) -> Any:
        """Gives each name a tensor of its own, since the body may read the same tensor from outside."""
        if not isinstance(leaf, Tensor):
            return leaf
        copy = leaf.clone()
        originals[id(copy)] = copy, leaf
        return copy

    before = tree.map_leaves(values, clone_leaf)
    trial = one(number, tree.map_leaves(before, _same_leaf))  # new containers, since a round may change them
    bind_attributes(session, (), (), trial.bound)  # no loop carries them: whoever reads one first is refused
    initial = {name: initial_value(name, old, trial.values.get(name)) for name, old in before.items()}
    trial = one(number, tree.map_leaves(initial, _same_leaf))  # again, with the types of the values in later rounds
    plan = LoopPlan(session, one, initial, trial, {key: leaf for key, (_, leaf) in originals.items()})
    if source is None:
        assert one.test is not None
        go = session.condition(Branch(one.test, {**one.scope, **initial})())
        rest = plan.while_loop(as_tensor(go), None, None)
    elif leaves_early or not (is_tracing() or is_scannable(source.length)):
        length = as_tensor(source.length)
        rest = plan.while_loop(length > 0, torch.zeros((), dtype=torch.int64), length)
    else:
        rest = plan.for_loop(source.length)
    return rest


def _same_leaf(leaf: Any) -> Any:
    return leaf


def _first_number(length: Any) -> Tensor:
    """The number of the first round, 0, computed from the length: the trial then depends on the inputs too."""
    return as_tensor(length) * 0
