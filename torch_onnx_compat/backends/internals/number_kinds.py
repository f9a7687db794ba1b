"""What a model is told that a symbolic number is, where it asks: an int, a float, a bool, as in eager torch.

``isinstance``, ``hasattr`` and ``type`` have no hook: names in the namespaces of the model's own code stand for them. A
pattern of a class, ``case int(size)``, and ``size.__class__`` read the number's attribute. The attributes that
Python's numbers have and a symbolic one lacks are there, too, or an error that ``getattr`` does not take for an answer.
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.backends.internals.symbolic import PLAIN_KINDS
from torch_onnx_compat.errors import CompatError


def kind_of_symbol(value: Any) -> type | None:
    """What eager torch has in the place of a symbolic number: int, float or bool; None for anything else."""
    return PLAIN_KINDS.get(type(value))


@contextmanager
def told_as_numbers(
    modules: Iterable[str],
    is_told: Callable[[Any], bool] = lambda number: True,
    kind_of: Callable[[Any], type | None] = kind_of_symbol,
) -> Iterator[None]:
    """While active, a model that asks whether a symbolic number is an int, or a float, is told so as in eager torch.

    Args:
        modules: The Python modules whose code is told so; torch itself has to tell the two apart. numpy's are, too.
        is_told: Of which symbolic numbers; asked where a number's answer is another one than the symbol's.
        kind_of: The type of the number that a value stands for; None if it stands for none.
    """

    def number_of(value: Any) -> type | None:
        number = kind_of(value)
        return number if number is not None and is_told(value) else None

    ask = partial(_answer, kind_of, is_told)
    told: dict[str, Any] = {
        "isinstance": _stand_in(isinstance, lambda value, kind: ask(isinstance, value, kind)),
        "hasattr": _stand_in(hasattr, lambda value, name: ask(hasattr, value, name)),
        "type": _type(number_of),
    }
    of_torch = {"is_tensor": _stand_in(pythons_own(torch.is_tensor), lambda obj: ask(isinstance, obj, Tensor))}
    found = (sys.modules.get(name) for name in (*modules, *_NUMPYS))
    scopes = [vars(module) for module in found if isinstance(module, types.ModuleType)]
    of_model = frozenset(map(id, scopes))
    # A run without numbers may be made while a model is captured, and has its own answers.
    changed = [
        *((vars(torch), name, stand_in, vars(torch)[name]) for name, stand_in in of_torch.items()),
        *(
            (scope, name, stand_in, scope.get(name))
            for scope in scopes
            for name, stand_in in told.items()
            if name not in scope or pythons_own(scope[name]) is not scope[name]
        ),
    ]
    try:
        for scope, name, stand_in, _ in changed:
            scope[name] = stand_in
        with _told_classes(number_of, of_model):
            yield
    finally:
        for scope, name, _, before in changed:
            if before is None:
                scope.pop(name, None)
            else:
                scope[name] = before


_NUMPYS = ("numpy._core.numeric", "numpy.core.numeric")
"""Where ``numpy.isscalar`` is, from numpy 2 on and before."""


def pythons_own(function: Any) -> Any:
    """Python's function, where a capture has put another in its place: ``max`` and ``min`` are torch.export's."""
    if isinstance(function, functools.partial):
        return function.keywords.get("real_callable", function)
    return vars(function).get(_OWN, function) if isinstance(function, (types.FunctionType, type)) else function


_OWN = "torch_onnx_compat_pythons_own"


@contextmanager
def _told_classes(number_of: Callable[[Any], type | None], scopes: Collection[int]) -> Iterator[None]:
    """While active, the model's statements read a number's class where they read a symbolic one's ``__class__``.

    Args:
        number_of: The class of the number that a symbolic one stands for; None if that is not told.
        scopes: The identities of the namespaces of the model's code.
    """

    def read(symbolic_number: Any, name: str) -> Any:
        frame = sys._getframe(1)
        if name == "__class__" and _reads_class(frame, scopes):
            return number_of(symbolic_number) or object.__getattribute__(symbolic_number, name)
        try:
            return object.__getattribute__(symbolic_number, name)
        except AttributeError:
            if id(frame.f_globals) in scopes and _is_lacking(symbolic_number, name):
                return attribute_of_number(symbolic_number, name)
            raise

    before = {kind: vars(kind).get("__getattribute__") for kind in PLAIN_KINDS}
    for kind in PLAIN_KINDS:
        kind.__getattribute__ = read  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        for kind, own in before.items():
            if own is None:
                del kind.__getattribute__
            else:
                kind.__getattribute__ = own  # type: ignore[method-assign]


def _reads_class(frame: types.FrameType, scopes: Collection[int]) -> bool:
    """Whether a statement of the model's reads an attribute in a frame, and no `isinstance` in C."""
    asking = frame.f_back if frame.f_globals is vars(functools) else frame  # singledispatch asks for its caller
    is_of_model = asking is not None and id(asking.f_globals) in scopes
    return is_of_model and frame.f_code.co_code[frame.f_lasti] in _READS_CLASS


def _is_lacking(symbolic_number: Any, name: str) -> bool:
    """Whether the number has an attribute of this name in eager torch."""
    return not name.startswith("_") and hasattr(PLAIN_KINDS[type(symbolic_number)], name)


def attribute_of_number(number: Any, name: str) -> Any:
    """An attribute that Python's numbers have, of what stands for one and lacks it.

    Raises:
        CompatError: It has no form. An AttributeError would be taken for an answer by ``getattr(size, name, 0)``.
    """
    known = {"real": number, "imag": 0, "numerator": number, "denominator": 1, "conjugate": lambda: number}
    if name in known:
        return known[name]
    raise CompatError(f"the model reads .{name} of a size, which no file computes; write it as arithmetic.")


_READS_CLASS = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "MATCH_CLASS"))
"""What reads ``__class__`` for a statement; `isinstance` in C reads it for whoever calls that."""


def _answer(
    kind_of: Callable[[Any], type | None],
    is_told: Callable[[Any], bool],
    question: Callable[..., bool],
    value: Any,
    *args: Any,
) -> bool:
    """What `isinstance`, or `hasattr`, says of a value to a model whose symbolic numbers are numbers."""
    number = kind_of(value)
    if number is None:
        return question(value, *args)
    of_number = question(number(), *args)
    try:
        of_value = question(value, *args)
    except CompatError:  # it has no form of an attribute of numbers
        return of_number
    return of_number if of_value == of_number or is_told(value) else of_value


def _stand_in(own: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that `pythons_own` knows."""
    vars(function)[_OWN] = own
    return function


def _type(number_of: Callable[[Any], type | None]) -> type:
    """`type`, for such a model: all that it does is what `type` does, but for a symbolic number."""

    class LikeType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            number = number_of(args[0]) if len(args) == 1 else None
            return type(*args, **kwargs) if number is None else number

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, type)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, type)

    class Type(type, metaclass=LikeType):
        def __class_getitem__(cls, item: Any) -> Any:
            return type[item]

    setattr(Type, _OWN, type)
    return Type
