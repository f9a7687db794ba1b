"""Runs every operator on fakes, and beside them on tensors that have the example's sizes.

These have no values, either, as long as nobody asks for any; else they are the real ones, which answer what is asked of
values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator

from torch_onnx_compat.backends.internals import flexible_attention, symbolic
from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.questions.arguments import leaves_of, replace_leaves
from torch_onnx_compat.questions.known_shapes import KnownShapes
from torch_onnx_compat.questions.log import Log
from torch_onnx_compat.questions.memo import BATCH_NORM, ShapeMemo
from torch_onnx_compat.questions.steps import Steps


class LacksValues(BaseException):
    """Something is asked for that only real tensors tell; no error that a model may catch."""


class Beside(DispatchMode):
    """Runs every operator on fakes and on the real tensors beside them; what depends on no input stays real."""

    has_values = True
    lacks_values = False
    """Whether something was asked for that the tensors beside the fakes do not tell."""

    def __init__(self, symbols: symbolic.Symbols, log: Log, known: KnownShapes) -> None:
        super().__init__()  # type: ignore[no-untyped-call,unused-ignore]
        self._symbols, self._log = symbols, log
        self.steps: Steps | None = None
        """What is computed of the inputs, where anybody wants to know."""
        self._memo = ShapeMemo(symbols, self._run_once, log, known)
        self._dims: list[dict[Any, int]] = []

    def fake_input(self, tensor: Tensor, dynamic: Collection[int]) -> Tensor:
        """A fake of an input."""
        fake, dims = self._symbols.fake(tensor, dynamic)
        self._dims.append(dims)
        fake.actual = tensor  # type: ignore[attr-defined]
        return fake

    def end(self, result: Any) -> None:
        """Notes what the model returns."""
        if self.steps is not None:
            self.steps.end(result)

    def symbols_of(self, inputs: Inputs) -> dict[Any, Any]:
        """The size that each symbol stands for, in terms of the axes' names."""
        import sympy

        names = {name: sympy.Symbol(name, integer=True, positive=True) for name in inputs.sizes()}
        return {
            symbol: axes[dim].size(names)
            for dims, axes in zip(self._dims, inputs.axes, strict=True)
            for symbol, dim in dims.items()
        }

    def actual(self, value: Any) -> Any:
        """The real tensor beside a fake, the number behind a symbolic one; anything else as it is."""
        if isinstance(value, self._symbols.kind):
            return value.actual
        return symbolic.number_of(value) if symbolic.is_symbolic(value) else value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = leaves_of((args, kwargs))
        if not any(isinstance(leaf, self._symbols.kind) or symbolic.is_symbolic(leaf) for leaf in leaves):
            return func(*args, **kwargs)
        squeezed = _squeezed_sizes(func, args, self._symbols.kind)  # before squeeze_ drops them
        real = self._run_actual(func, args, kwargs)
        result = self._pair(self._run_fakes(func, args, kwargs, real), real)
        if self.steps is not None:
            self.steps.note(func, args, kwargs, result)
        self._note_computed(leaves, result)
        if _has_open_rank(squeezed, leaves, self._symbols.kind):
            for fake in leaves_of(result):
                if isinstance(fake, self._symbols.kind) and not _fixes_rank(func, fake):
                    fake.has_open_rank = True
        self._note_rank(func, squeezed, leaves, result)
        return result

    def _run_actual(self, func: Any, args: Any, kwargs: Any) -> Any:
        """What an operator yields for the tensors beside the fakes."""
        real_args, real_kwargs = replace_leaves((args, kwargs), self._actual)
        try:
            return func(*real_args, **real_kwargs)
        except Exception:  # of any kind; the model gets it
            self._ask_before_error(func, args, kwargs)
            raise

    def _note_rank(self, func: Any, dropped: Sequence[Any], leaves: Sequence[Any], result: Any) -> None:
        """Notes which sizes decide, by being 1, the number of dimensions of what an operator yields."""
        kind = self._symbols.kind
        sizes = {size for leaf in leaves if isinstance(leaf, kind) for size in getattr(leaf, "rank_sizes", ())}
        squeezed = {size.node.expr for size in dropped if symbolic.is_symbolic(size)}
        self._log.found.drops_sizes |= bool(squeezed)
        if squeezed - sizes:
            self._log.ask_ranks(squeezed | sizes)
        if squeezed or sizes:
            for fake in leaves_of(result):
                if isinstance(fake, kind) and not _fixes_rank(func, fake):
                    fake.rank_sizes = squeezed | sizes

    def _note_computed(self, leaves: Sequence[Any], result: Any) -> None:
        """Notes the numbers that an operator is given, and the whole ones that it, as arange, makes of fractions."""
        numbers = [leaf for leaf in leaves if isinstance(leaf, (torch.SymInt, torch.SymFloat))]
        if any(isinstance(number, torch.SymFloat) for number in numbers):
            fakes = (leaf for leaf in leaves_of(result) if isinstance(leaf, self._symbols.kind))
            numbers += [size for fake in fakes for size in fake.shape if isinstance(size, torch.SymInt)]
        for number in numbers:
            self._log.computed(number.node.expr, symbolic.number_of(number))

    def control(self, func: HigherOrderOperator, args: Any, kwargs: Any) -> Any:
        """Lets the functions of a higher-order operator ask, too."""
        leaves = leaves_of((args, kwargs))
        if not any(isinstance(leaf, self._symbols.kind) or symbolic.is_symbolic(leaf) for leaf in leaves):
            return func(*args, **kwargs)
        runs: dict[str, Callable[..., Any]] = {
            "cond": self._branches,
            "while_loop": partial(self._loop, func),
            "flex_attention": flexible_attention.run,
        }
        if func.name() not in runs:
            raise NotImplementedError(f"no fakes for {func.name()}")
        self._want_values()
        if self.steps is not None:
            self.steps.is_known = False  # its functions compute without a step of their own
        with self:
            return runs[func.name()](*args, **kwargs)

    def _branches(self, condition: Any, then: Any, otherwise: Any, operands: Any = ()) -> Any:
        """A cond: both branches ask; the file has both."""
        results = then(*operands), otherwise(*operands)
        return results[0 if bool(self.actual(condition)) else 1]

    def _loop(self, func: Any, holds: Any, step: Any, carried: Any, more: Any = ()) -> Any:
        """A while_loop: what it carries keeps its shapes, so one round asks what every round asks."""
        holds(*carried, *more)
        step(*carried, *more)
        with symbolic.without_modes():
            real = func(holds, step, *replace_leaves((tuple(carried), tuple(more)), self._actual))
        return self._pair(self._memo.like(tuple(carried)), tuple(real))

    def _actual(self, value: Any) -> Any:
        actual = self.actual(value)
        return int(actual) if isinstance(value, torch.SymInt) else actual

    def _run_fakes(self, func: Any, args: Any, kwargs: Any, real: Any) -> Any:
        if not any(isinstance(leaf, Tensor) for leaf in leaves_of(real)):
            if isinstance(real, (list, tuple)) and not real:
                self._ask_of_nothing((args, kwargs))
            elif not all(isinstance(leaf, _NOT_VALUES) for leaf in leaves_of(real)):
                self._want_values()
                self._log.note_values()
                self._ask_of_sizes(func, args, kwargs)
            return real
        self._log.operator = str(func)
        try:
            fakes = self._memo.run(func, args, kwargs, real)
            self._log.note_pending()
        except Exception as error:
            if not symbolic.is_data_dependent(error):
                raise
            self._want_values()
            self._log.found.guesses.append(str(func))
            return real
        finally:
            self._log.operator = ""
            self._log.pending.clear()
        return self._with_open_sizes(fakes, (args, kwargs), real) if self._log.fixes_data else fakes

    def _want_values(self) -> None:
        """Says that what follows needs the values of the tensors beside the fakes."""

    def _ask_of_nothing(self, arguments: Any) -> None:
        """Notes the sizes that are 0: for them an operator, as unbind, yields no tensor, and Python sees how many."""
        for leaf in leaves_of(arguments):
            for size in leaf.shape if isinstance(leaf, self._symbols.kind) else ():
                if symbolic.is_symbolic(size) and symbolic.number_of(size) == 0:
                    self._log.read("number", size)

    def _ask_of_sizes(self, func: Any, args: Any, kwargs: Any) -> None:
        """Lets an operator that yields numbers, as is_same_size, ask what it asks of its sizes."""
        self._log.operator = str(func)
        try:
            self._symbols.run(func, args, kwargs)
            self._log.note_pending()
        except Exception as error:  # of values if it says so; else it has read sizes as numbers
            if not symbolic.is_data_dependent(error):
                for leaf in leaves_of((args, kwargs)):
                    for size in leaf.shape if isinstance(leaf, self._symbols.kind) else ():
                        if symbolic.is_symbolic(size):
                            self._log.read("number", size)
        finally:
            self._log.operator = ""
            self._log.pending.clear()

    def _ask_before_error(self, func: Any, args: Any, kwargs: Any) -> None:
        """Lets an operator that fails ask what it asks of its sizes."""
        self._log.operator = str(func)
        try:
            self._symbols.run(func, args, kwargs)
            self._log.found.asks_values = True  # the shapes fit, so it fails for its values
        except Exception:  # the model sees the error of the real tensors
            pass
        finally:
            self._log.operator = ""
            self._log.pending.clear()

    def _run_once(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operator; if its C++ makes numbers of sizes, torch's own Python form of it, if that does not."""
        questions = self._log.pending
        fakes = self._symbols.run(*_lighter(func, args, kwargs))
        if func in _VIEWS:
            return self._symbols.in_shape(fakes, args[1])
        python_form = symbolic.python_form(func)
        if python_form is None or not any(kind == "number" for kind, _, _ in questions):
            return fakes
        before = list(questions)
        questions.clear()
        try:
            others = self._symbols.run(python_form, args, kwargs)
        except Exception:  # whatever it raises, the operator itself has run
            others = None
        if others is not None and not any(kind == "number" for kind, _, _ in questions):
            return others
        questions[:] = before
        return fakes

    def _with_open_sizes(self, fakes: Any, arguments: Any, real: Any) -> Any:
        """Takes the sizes of a result for a matter of values, but for those that an argument has in the same place."""
        shapes = [leaf.shape for leaf in leaves_of(arguments) if isinstance(leaf, self._symbols.kind)]
        shapes = [shape for shape in shapes if any(map(symbolic.is_of_data, shape))]
        if not shapes:
            return fakes

        def reopen(fake: Any, plain: Any) -> Any:
            if not isinstance(fake, self._symbols.kind):
                return fake
            known = {
                dim
                for dim, size in enumerate(fake.shape)
                if symbolic.is_symbolic(size) or any(_has_at(shape, dim - fake.dim(), size) for shape in shapes)
            }
            return fake if len(known) == fake.dim() else self._symbols.fake_of_data(plain, known)

        return _merge(reopen, fakes, real)

    def _pair(self, fake: Any, real: Any) -> Any:
        return _merge(self._pair_leaf, fake, real)

    def _pair_leaf(self, fake: Any, real: Any) -> Any:
        if not isinstance(real, Tensor):
            return real
        if not isinstance(fake, self._symbols.kind):
            fake, _ = self._symbols.fake(real)
        self._symbols.learn_sizes(fake, real)
        fake.actual = real
        return fake


class BesideMeta(Beside):
    """The same with tensors on torch's meta device beside the fakes, which have sizes and strides, and no values.

    It ends where anything needs more than these: values, an error of the model's own, a write to a real tensor.
    """

    has_values = False

    def __init__(self, symbols: symbolic.Symbols, log: Log, known: KnownShapes) -> None:
        super().__init__(symbols, log, known)
        self._without: dict[int, tuple[Tensor, Tensor]] = {}
        """The tensors without values that stand for the model's own ones, by identity, with these."""

    def fake_input(self, tensor: Tensor, dynamic: Collection[int]) -> Tensor:
        """A fake of an input."""
        fake = super().fake_input(tensor, dynamic)
        fake.actual = self._without_values(tensor)  # type: ignore[attr-defined]
        return fake

    def actual(self, value: Any) -> Any:
        """The number behind a symbolic one; nothing tells the values behind a fake."""
        if isinstance(value, self._symbols.kind):
            self._want_values()
        return super().actual(value)

    def _want_values(self) -> None:
        self.lacks_values = True
        raise LacksValues

    def _run_actual(self, func: Any, args: Any, kwargs: Any) -> Any:
        if any(
            isinstance(leaf, Tensor) and not isinstance(leaf, self._symbols.kind)
            for leaf in _written(func, args, kwargs)
        ):
            self._want_values()
        real_args, real_kwargs = replace_leaves((args, kwargs), self._meta)
        if func is BATCH_NORM:  # torch has no kernel for it there, and its Python takes ten milliseconds
            return (torch.empty_like(real_args[0]), *(torch.empty(0) for _ in range(2)))
        try:
            found = func(*real_args, **real_kwargs)
        except Exception:  # the model's error, or there is no kernel without values: the real tensors tell
            self._want_values()
        is_device = any(isinstance(leaf, torch.device) for leaf in leaves_of(found))
        return self._symbols.run(func, args, kwargs) if is_device else found

    def _meta(self, leaf: Any) -> Any:
        """What an operator gets for an argument."""
        if isinstance(leaf, self._symbols.kind):
            return leaf.actual
        if isinstance(leaf, Tensor):
            if id(leaf) not in self._without:
                self._without[id(leaf)] = leaf, self._without_values(leaf)
            known, meta = self._without[id(leaf)]
            return meta if known.shape == meta.shape else self._without_values(leaf)
        return _META if isinstance(leaf, torch.device) else self._actual(leaf)

    def _pair_leaf(self, fake: Any, real: Any) -> Any:
        if not isinstance(real, Tensor) or real.device == _META:
            if isinstance(real, Tensor) and not isinstance(fake, self._symbols.kind):
                self._want_values()  # there is no fake, and a tensor on another device is none
            return super()._pair_leaf(fake, real)
        made = super()._pair_leaf(fake, real)
        made.actual = self._without_values(real)
        return made

    def _without_values(self, tensor: Tensor) -> Tensor:
        is_plain = tensor.layout is torch.strided and not tensor.is_quantized and type(tensor) in _PLAIN
        if not is_plain or tensor.is_conj() or tensor.is_neg():
            self._want_values()
        with symbolic.without_modes():
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=_META)


_META = torch.device("meta")

_PLAIN = (Tensor, torch.nn.Parameter)


def _written(func: Any, args: Any, kwargs: Any) -> list[Any]:
    """The arguments that an operator writes."""
    if not func._schema.is_mutable:
        return []
    given = dict(zip((one.name for one in func._schema.arguments), args, strict=False)) | kwargs
    written = {one.name for one in func._schema.arguments if one.alias_info is not None and one.alias_info.is_write}
    return leaves_of([value for name, value in given.items() if name in written])


def _lighter(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    """A call that needs less time than an operator's, with results of the same shapes and the same questions."""
    if func is torch.ops.aten.grid_sampler_2d.default:  # torch writes the 16 reads of mode="bicubic" as 1,000 operators
        return func, (*args[:2], _NEAREST, *args[3:]), kwargs
    if func is torch.ops.aten.unfold_backward.default:
        # Torch adds it up window by window. Nothing is asked: istft and autograd, which call it, know the sizes.
        sizes = args[1] if len(args) > 1 else kwargs["input_sizes"]
        return torch.ops.aten.new_empty.default, (args[0], sizes), {}
    return func, args, kwargs


_NEAREST = 1
"""The interpolation of grid_sampler_2d that reads one pixel."""


def _merge(merge: Callable[[Any, Any], Any], fake: Any, real: Any) -> Any:
    """What an operator yields, with ``merge(fake, real)`` in place of each tensor."""
    merged = iter([merge(one, other) for one, other in zip(leaves_of(fake), leaves_of(real), strict=True)])
    return replace_leaves(fake, lambda _: next(merged))


def _has_open_rank(squeezed: Sequence[Any], leaves: Sequence[Any], kind: Any) -> bool:
    """Whether values decide the number of dimensions of what an operator yields, or of what it is given."""
    if any(isinstance(leaf, kind) and getattr(leaf, "has_open_rank", False) for leaf in leaves):
        return True
    return any(map(symbolic.is_of_data, squeezed))


def _squeezed_sizes(func: Any, args: Any, kind: Any) -> Sequence[Any]:
    """The sizes that an operator drops where they are 1."""
    if getattr(func, "overloadpacket", None) not in _SQUEEZES or not isinstance(args[0], kind) or not args[0].shape:
        return ()
    shape = args[0].shape
    dims = args[1] if len(args) > 1 else range(len(shape))
    return [shape[dim] for dim in ([dims] if isinstance(dims, int) else dims)]


def _fixes_rank(func: Any, fake: Tensor) -> bool:
    """Whether an operator yields the same number of dimensions whatever it is given."""
    names = {argument.name for argument in func._schema.arguments}
    return bool(names & {"size", "shape"}) or (not fake.dim() and "dim" not in names)


_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default, torch.ops.aten.reshape.default)
"""Operators that are given the shape of what they yield."""

_SQUEEZES = (torch.ops.aten.squeeze, torch.ops.aten.squeeze_)

_NOT_VALUES = (torch.device, torch.dtype, torch.layout, torch.memory_format)
"""What operators may yield that is no matter of values."""


def _has_at(shape: Sequence[Any], place: int, size: int) -> bool:
    """Whether a shape has this number at a place that is counted from the end."""
    return len(shape) >= -place and type(shape[place]) is int and shape[place] == size
