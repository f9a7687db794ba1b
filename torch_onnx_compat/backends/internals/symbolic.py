"""Tensors without values and sizes without numbers: torch's fake tensors, with a shape environment that never decides.

torch's own environment takes the answer to a question, ``h == 224``, for a fact and asks no more about that axis. Here
every question is answered from the example and forgotten, so the next one is asked too.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals import expressions
from torch_onnx_compat.backends.internals.canonical import canonical
from torch_onnx_compat.places import is_user_file

Asked = Callable[[Any, Any], Any]
"""Told of each question, a sympy expression and its value at the example's sizes; returns the answer."""


class Symbols:
    """One set of symbolic sizes, and the fake tensors that have them.

    Args:
        asked: Told of each question.
    """

    def __init__(self, asked: Asked) -> None:
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        self.kind: Any = FakeTensor
        self.environment: Any = _environment(asked)
        self.mode: Any = FakeTensorMode(
            shape_env=self.environment, allow_non_fake_inputs=True, static_shapes=False, allow_fallback_kernels=False
        )
        self.mode.cache_enabled = False  # no two calls of one run have the same symbols; the keys cost a third of it

    def fake(self, tensor: Tensor, dynamic: Collection[int] = ()) -> tuple[Tensor, dict[Any, int]]:
        """A fake of a tensor, and the dimension that each symbol of its shape stands for.

        Args:
            tensor: Any plain tensor.
            dynamic: Dimensions whose sizes are symbols.
        """
        from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

        if not dynamic:
            with without_modes():
                return self.mode.from_tensor(tensor, static_shapes=True), {}
        kinds = [DimDynamic.DYNAMIC if dim in dynamic else DimDynamic.STATIC for dim in range(tensor.dim())]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        with without_modes():
            shape = self.mode.from_tensor(tensor, symbolic_context=context).shape
        # A tensor of its own: the memory of the one above is as large as the example's, whatever its shape.
        fake = self.run(torch.empty, (tuple(shape),), {"dtype": tensor.dtype, "device": tensor.device})
        return fake, {shape[dim].node.expr: dim for dim in dynamic}

    def fake_of_data(self, tensor: Tensor, fixed: Collection[int]) -> Tensor:
        """A fake whose sizes are symbols for what values decide.

        Args:
            tensor: Any plain tensor.
            fixed: Dimensions whose sizes are numbers.
        """
        import sympy

        shape: list[Any] = list(tensor.shape)
        for dim in set(range(tensor.dim())) - set(fixed):
            symbol = self.environment.create_unbacked_symint()
            self.environment.data_sizes[symbol.node.expr] = sympy.Integer(shape[dim])
            shape[dim] = symbol
        fake: Tensor = self.run(torch.empty, (tuple(shape),), {"dtype": tensor.dtype, "device": tensor.device})
        return fake

    def size(self, expression: Any) -> Any:
        """A size that is made of those of this set; a number if it has no symbol."""
        if not getattr(expression, "free_symbols", None):
            return int(expression)
        return self.environment.create_symintnode(expression, hint=int(self.environment.number(expression)))

    def fake_of(self, shape: Sequence[Any], strides: Sequence[Any], dtype: torch.dtype, device: Any) -> Tensor:
        """A fake with sizes and strides that formulas tell."""
        sizes, steps = ([self.size(one) for one in values] for values in (shape, strides))
        made: Tensor = self.run(torch.empty_strided, (sizes, steps), {"dtype": dtype, "device": device})
        return made

    def run(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What an operator yields for fakes: fakes of the right shapes."""
        with self.mode:
            return function(*args, **kwargs)

    def another(self, fake: Tensor) -> Tensor:
        """Another fake of the same shape, as detach makes it; torch's own way there, without its dispatch."""
        from torch._subclasses import fake_impls

        made: Tensor = fake_impls.fast_detach(self.mode, fake)  # type: ignore[arg-type, unused-ignore]
        return made

    def in_shape(self, fake: Tensor, shape: Sequence[Any]) -> Tensor:
        """A fake in the shape that was asked for.

        torch computes a part of it, as the quotient of a size and its other parts; quotients of quotients grow.
        """
        if all(type(size) is int for size in shape) or any(_is_same_size(-1, size) for size in shape):
            return fake
        if all(_is_same_size(one, other) for one, other in zip(fake.shape, shape, strict=True)):
            return fake
        options = {"dtype": fake.dtype, "device": fake.device}
        made: Tensor = self.run(torch.empty_strided, (tuple(shape), fake.stride()), options)
        return made

    def learn_sizes(self, fake: Tensor, real: Tensor) -> None:
        """Takes the sizes of what values decide from the real tensor beside a fake."""
        import sympy

        sizes: Sequence[Any] = fake.shape
        for size, number in zip(sizes, real.shape, strict=True):
            if is_of_data(size) and size.node.expr.is_Symbol:
                self.environment.data_sizes.setdefault(size.node.expr, sympy.Integer(number))


PLAIN_KINDS: dict[type, type] = {torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}
"""What eager torch has in place of each kind of symbolic number."""


def _is_same_size(one: Any, other: Any) -> bool:
    """Whether two sizes are one expression; asks nothing."""
    a, b = (size.node.expr if is_symbolic(size) else size for size in (one, other))
    return bool(a == b)


def is_of_data(size: Any) -> bool:
    """Whether values decide a size."""
    return is_symbolic(size) and bool(expressions.data_symbols(size.node.expr))


def is_symbolic(value: Any) -> bool:
    """Whether a value is a symbolic number."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def fixed_number(value: Any) -> int | None:
    """What a symbolic number is at every size; None if that varies."""
    expression = value.node.expr
    return int(expression) if getattr(expression, "is_number", False) else None


def number_of(value: Any) -> Any:
    """A symbolic number at the example's sizes; asks nothing."""
    node = value.node
    if node.hint is not None:
        return node.hint
    return node.shape_env.number(node.expr)


def is_data_dependent(error: BaseException) -> bool:
    """Whether an operator's error says that its fake cannot do without values, or that there is none."""
    from torch._subclasses import fake_tensor

    names = (
        "DataDependentOutputException",
        "DynamicOutputShapeException",
        "UnsupportedOperatorException",
        "UnsupportedFakeTensorException",
    )
    kinds = tuple(getattr(fake_tensor, name) for name in names if hasattr(fake_tensor, name))
    return isinstance(error, (*kinds, NotImplementedError))


def python_kernels() -> AbstractContextManager[None]:
    """While active, composite operators run in Python where torch has written them so, as torch.export runs them."""
    from torch._dispatch.python import enable_python_dispatcher

    context: AbstractContextManager[None] = enable_python_dispatcher()
    return context


def python_form(operator: Any) -> Callable[..., Any] | None:
    """The Python function in which torch has written an operator again; None if it has not."""
    from torch._decomp import decomposition_table

    return decomposition_table.get(operator)


def is_asked_by_python(stack: Iterable[types.FrameType]) -> bool:
    """Whether Python asks a symbolic number, and not C++ within an operator.

    Args:
        stack: The frames of the question, the innermost first.
    """
    for frame in stack:
        if frame.f_code.co_filename == torch.__file__ and frame.f_code.co_name.startswith("__"):
            return True  # SymBool.__bool__, SymInt.__index__ and the like
        if is_user_file(frame.f_code.co_filename):
            return False
    return False


@contextmanager
def without_modes() -> Iterator[None]:
    """Runs plain torch, below every dispatch mode."""
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        yield


@contextmanager
def without_values() -> Iterator[None]:
    """Runs torch on plain sizes, below every mode, with tensors that have no values."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with without_modes(), FakeTensorMode(allow_non_fake_inputs=True):
        yield


_LARGE = 4096
"""What a size counts as while the operator that makes it runs: neither 0 nor 1."""


class _Placeless:
    """Does not look for the places where symbols are made: nobody asks, and torch imports a compiler to find them."""

    def _get_stack_summary(self, is_debug: bool = False, framework_loc: Any = None) -> tuple[Any, str]:
        from torch._guards import SLoc

        return SLoc("", None), ""


class _Short(_Placeless):
    """Has one short form for all sizes that are the same, and computes the range of each once."""

    def replace(self, expr: Any) -> Any:
        """An expression as torch goes on to compute with it: every symbolic number is read through this."""
        return canonical(super().replace(expr))  # type: ignore[misc]

    def bound_sympy(self, expr: Any, size_oblivious: bool = False) -> Any:
        """The range of an expression; every remainder asks for that of its parts."""
        ranges: Any = self.var_to_range  # type: ignore[attr-defined]
        symbols = sorted(expr.free_symbols, key=str)
        if size_oblivious or not all(symbol in ranges for symbol in symbols):
            return super().bound_sympy(expr, size_oblivious)  # type: ignore[misc]
        return expressions.bounds_of(expr, tuple((symbol, ranges[symbol]) for symbol in symbols))


def _environment(asked: Asked) -> Any:
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from torch_onnx_compat.tracing import hints_of

    class Environment(_Short, ShapeEnv):  # type: ignore[misc]
        """Answers from the example, or as whoever is told of the question wants, and learns nothing from it."""

        def number(self, expression: Any) -> Any:
            """An expression at the example's sizes."""
            known = self.__dict__.setdefault("_numbers", {})
            if expression not in known:
                found = sympy.sympify(expression).xreplace({**hints_of(self), **self.data_sizes})
                if found.free_symbols:
                    return found  # while the operator that makes the size still runs
                known[expression] = found
            return known[expression]

        @property
        def data_sizes(self) -> dict[Any, Any]:
            """The example's sizes of what values decide, by symbol."""
            known: dict[Any, Any] = self.__dict__.setdefault("_data_sizes", {})
            return known

        def evaluate_expr(
            self,
            orig_expr: Any,
            hint: Any = None,
            fx_node: Any = None,
            size_oblivious: bool = False,
            fallback_value: Any = None,
            **kwargs: Any,
        ) -> Any:
            """The answer at the example's sizes; while an operator makes a size that values decide, torch's guess."""
            if getattr(orig_expr, "is_number", True) or orig_expr in (sympy.true, sympy.false):
                return orig_expr
            value = self.number(orig_expr)
            if not (value.is_number or value in (sympy.true, sympy.false)):
                large = dict.fromkeys(value.free_symbols, sympy.Integer(_LARGE))
                return value.xreplace(large) if fallback_value is None else fallback_value
            return asked(orig_expr, value)

    made = Environment(
        duck_shape=False, specialize_zero_one=False, allow_scalar_outputs=False, allow_dynamic_output_shape_ops=True
    )
    made._replacements_version_counter = 1  # at 0, torch 2.14 does not ask `replace`
    return made
