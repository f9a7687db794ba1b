"""Fakes have shapes and nothing else: what an operator yields for some shapes it yields for the same ones again.

That is so within a run, and in the next runs of the same model.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.questions.arguments import leaves_of, replace_leaves
from torch_onnx_compat.questions.known_shapes import KnownShapes, Layout, OperatorResult, is_like
from torch_onnx_compat.questions.log import Log


class ShapeMemo:
    """Runs operators on fakes, once for arguments of the same shapes; torch's own runs take milliseconds each.

    The questions of a repeated operator are those of the first time.

    Args:
        symbols: What the fakes are made of.
        run: Runs an operator on fakes.
        log: Notes what it asks.
        known: What operators yielded in earlier runs.
    """

    def __init__(
        self, symbols: symbolic.Symbols, run: Callable[[Any, Any, Any], Any], log: Log, known: KnownShapes
    ) -> None:
        self._symbols, self._run, self._log, self._of_runs = symbols, run, log, known
        self._made: dict[Hashable, Tensor] = {}
        """A fake of each layout and device that was known before."""
        self._known: dict[Hashable, Callable[[Any], Any]] = {}
        self._constants: list[Tensor] = []
        """The constants in the keys; a tensor that is gone leaves its number to the next one."""
        self._asked: set[Hashable] = set()

    def run(self, func: Any, args: Any, kwargs: Any, real: Any) -> Any:
        """What an operator yields for fakes.

        Args:
            func: The operator, an overload.
            args: Its arguments.
            kwargs: Its keyword arguments.
            real: What it yields for the tensors beside the fakes.
        """
        leaves = leaves_of((args, kwargs))
        key = self._key(func, args, kwargs)
        if key in self._known:
            return self._known[key](leaves)
        if self._keeps_shape(func, leaves, real):
            self._ask_of_broadcasting(leaves[0])
            return leaves[0] if func._schema.is_mutable else self._like(leaves[0])
        if func is BATCH_NORM and _layout(real[0]) == _layout(leaves[0].actual):
            return (self._like(leaves[0]), *real[1:])
        result = self._as_before(key, leaves, real) if key is not None else None
        if result is None:
            result = self._run_and_keep(key, leaves, func, args, kwargs)
        if key is not None:
            again = self._again(func, leaves, result)
            if again is not None and self._key(func, args, kwargs) == key:  # else it has resized an argument
                self._known[key] = again
                self._constants += [leaf for leaf in leaves if self._is_constant(leaf)]
        return result

    def _run_and_keep(self, key: Hashable, leaves: list[Any], func: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operator, and keeps what it yields for the runs that follow."""
        with self._log.hearing() as answers:
            result = self._run(func, args, kwargs)
        is_kept = key is not None and not func._schema.is_mutable and not any(map(self._is_of_this_run, leaves))
        if is_kept and all(map(self._is_plain, leaves_of(result))):
            form = replace_leaves(result, _Form)
            self._of_runs.keep(key, OperatorResult(form, tuple(answers), tuple(self._log.pending)))
        return result

    def _as_before(self, key: Hashable, leaves: list[Any], real: Any) -> Any:
        """The fakes of an earlier run, with the questions that were asked for them; None if there are none."""
        number = self._symbols.environment.number
        yielded = self._of_runs.find(key, number)
        if yielded is None or any(map(self._is_of_this_run, leaves)):
            return None
        forms, tensors = pytree.tree_leaves(yielded.form), leaves_of(real)
        if len(forms) != len(tensors):
            return None
        if not all(is_like(one.layout, tensor, number) for one, tensor in zip(forms, tensors, strict=True)):
            return None
        for asked, answer in yielded.answers:
            self._log.asked(asked, answer)
        self._log.pending[:] = yielded.pending
        return pytree.tree_map(self._made_of, yielded.form)

    def _made_of(self, form: _Form) -> Tensor:
        key = (form.layout, form.device)
        if key not in self._made:
            shape, strides, dtype, _ = form.layout
            with self._log.deaf():
                self._made[key] = self._symbols.fake_of(shape, strides, dtype, form.device)
        return self._symbols.another(self._made[key])

    def _is_of_this_run(self, leaf: Any) -> bool:
        """Whether an argument has no name in other runs: a constant, or a size that values decide."""
        if isinstance(leaf, self._symbols.kind):
            return any(map(symbolic.is_of_data, (*leaf.shape, *leaf.stride(), leaf.storage_offset())))
        return self._is_constant(leaf) or symbolic.is_of_data(leaf)

    def _is_plain(self, leaf: Any) -> bool:
        """Whether a result is a fake that its layout tells all of."""
        if not isinstance(leaf, self._symbols.kind) or leaf.layout is not torch.strided:
            return False
        is_at_start = type(leaf.storage_offset()) is int and not leaf.storage_offset()
        is_simple = not (leaf.requires_grad or leaf.is_conj() or leaf.is_neg())
        return is_at_start and is_simple and not self._is_of_this_run(leaf)

    def like(self, fakes: Any) -> Any:
        """Other fakes of the same shapes; anything else as it is."""
        return replace_leaves(fakes, self._like)

    def _again(self, func: Any, leaves: list[Any], result: Any) -> Callable[[Any], Any] | None:
        """How the same result is made from other arguments of the same shapes; None where nobody knows."""
        if func._schema.is_mutable:
            return (lambda leaves: leaves[0]) if leaves and result is leaves[0] else None
        results = leaves_of(result)
        if not all(
            isinstance(one, self._symbols.kind) and not any(map(symbolic.is_of_data, one.shape)) for one in results
        ):
            return None
        kept = self.like(result)  # the model may resize its own, as squeeze_() does
        return lambda leaves: self.like(kept)

    def _keeps_shape(self, func: Any, leaves: list[Any], real: Any) -> bool:
        """Whether an operator works value by value, or in place, on tensors of the first one's shape and type."""
        if not leaves or not isinstance(leaves[0], self._symbols.kind):
            return False
        is_in_place = _writes_first_only(func._schema) and torch.Tag.inplace_view not in func.tags
        if not (is_in_place if func._schema.is_mutable else _is_pointwise(func)):
            return False
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        # The real tensors tell of operators that rearrange memory, such as contiguous().
        return (
            all(isinstance(tensor, self._symbols.kind) for tensor in tensors)
            and len(set(map(_layout, tensors))) == 1
            and isinstance(real, Tensor)
            and _layout(real) == _layout(leaves[0].actual)
        )

    def _ask_of_broadcasting(self, fake: Any) -> None:
        """Asks of each size whether it is 1, as torch's own run of an operator does: the smallest sizes get tried."""
        for size in fake.shape:
            if symbolic.is_symbolic(size) and size.node.expr not in self._asked:
                self._asked.add(size.node.expr)
                bool(size == 1)

    def _like(self, fake: Any) -> Any:
        if not isinstance(fake, self._symbols.kind):
            return fake
        return self._symbols.another(fake)

    def _is_constant(self, leaf: Any) -> bool:
        """Whether a leaf is a real tensor of whose values an operator may make a shape: one of indices or of a mask."""
        return isinstance(leaf, Tensor) and not isinstance(leaf, self._symbols.kind) and not leaf.is_floating_point()

    def _key(self, func: Any, args: Any, kwargs: Any) -> Hashable:
        try:
            key = (func, self._identity(args), self._identity(kwargs))
            hash(key)
        except TypeError:
            return None
        return key

    def _identity(self, leaf: Any) -> Hashable:
        kind = type(leaf)
        if kind is tuple or kind is list:
            return (kind, *map(self._identity, leaf))
        if kind is dict:
            return (kind, *((name, self._identity(item)) for name, item in leaf.items()))
        if isinstance(leaf, self._symbols.kind):
            return ("fake", *_layout(leaf))
        if self._is_constant(leaf):
            if leaf.is_inference():
                raise TypeError("torch counts no writes of it")
            return ("constant", id(leaf), leaf._version, *_layout(leaf))
        if isinstance(leaf, Tensor):
            return ("tensor", *_layout(leaf))
        if symbolic.is_symbolic(leaf):
            return ("size", leaf.node.expr)
        return (kind, leaf)


class _Form:
    """What stands for a fake between runs; a class of its own, as a layout is a tuple, which containers are too."""

    def __init__(self, fake: Tensor) -> None:
        self.layout, self.device = _layout(fake), fake.device


BATCH_NORM = torch.ops.aten._native_batch_norm_legit_no_training.default
"""In nearly every model of images, and some 10 ms in torch's Python; its first result is like its argument."""


@functools.cache
def _is_pointwise(func: Any) -> bool:
    """Whether torch says so; it does not of hardswish, but what hardswish_ writes in place has its tensor's shape."""
    if torch.Tag.pointwise in func.tags:
        return True
    first, *others = [str(argument.type) for argument in func._schema.arguments] or [""]
    in_place = getattr(getattr(torch.ops.aten, f"{func._opname}_", None), func._overloadname, None)
    is_of_one = func.namespace == "aten" and first == "Tensor" and set(others) <= {"number", "float", "bool"}
    return is_of_one and in_place is not None and torch.Tag.inplace_view not in in_place.tags


def _writes_first_only(schema: Any) -> bool:
    """Whether an operator writes its first argument and no other, as with ``out=`` it does not."""
    writes = [argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments]
    return writes[0] and not any(writes[1:])


def _layout(tensor: Tensor) -> Layout:
    """Shape, strides, type and offset; of a symbolic number its expression."""

    def known(value: Any) -> Any:
        return value.node.expr if symbolic.is_symbolic(value) else value

    return (
        tuple(map(known, tensor.shape)),
        tuple(map(known, tensor.stride())),
        tensor.dtype,
        known(tensor.storage_offset()),
    )
