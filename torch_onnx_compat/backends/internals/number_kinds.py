"""What a model is told that a size is while it is captured, where it asks: an int, a float, a bool, as in eager torch.

A size is a symbolic number then, or a tensor of a trace. ``isinstance``, ``hasattr``, ``getattr`` and ``type`` have no
hook: names in the namespaces of the model's own code stand for them. A pattern of a class, ``case int(size)``, and
``size.__class__`` read the class as an attribute. The attributes that Python's numbers have and a symbolic one lacks
are there, too, or an error that ``getattr`` does not take for an answer.
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
def told_as_numbers(modules: Iterable[str], kind_of: Callable[[Any], type | None] = kind_of_symbol) -> Iterator[None]:
    """While active, a model that asks whether a size is an int, or a float, is told so as in eager torch.

    Args:
        modules: The Python modules whose code is told so; torch itself has to tell the two apart. numpy's are, too.
        kind_of: The type of the number that a value stands for; None if it stands for none.
    """
    ask = partial(_answer, kind_of)
    told: dict[str, Any] = {
        "isinstance": _stand_in(isinstance, lambda value, kind: ask(isinstance, value, kind)),
        "hasattr": _stand_in(hasattr, lambda value, name: ask(hasattr, value, name)),
        "getattr": _stand_in(getattr, partial(_get_attribute, kind_of)),
        "type": _type(kind_of),
    }
    of_torch = {"is_tensor": _stand_in(pythons_own(torch.is_tensor), lambda obj: ask(isinstance, obj, Tensor))}
    scopes = namespaces_of(modules)
    of_model = frozenset(map(id, scopes))
    # A run without numbers may be made while a model is captured, and has its own answers.
    changed = [
        *((vars(torch), name, stand_in, vars(torch)[name]) for name, stand_in in of_torch.items()),
        *((scope, name, told[own], scope.get(name)) for scope in scopes for name, own in _names_in(scope).items()),
    ]
    try:
        for scope, name, stand_in, _ in changed:
            scope[name] = stand_in
        with _told_classes(kind_of, of_model):
            yield
    finally:
        for scope, name, _, before in changed:
            if before is None:
                scope.pop(name, None)
            else:
                scope[name] = before


def namespaces_of(modules: Iterable[str]) -> list[dict[str, Any]]:
    """The namespaces of some modules and of numpy, that ask for kinds."""
    found = (sys.modules.get(name) for name in (*modules, *_NUMPYS))
    return [vars(module) for module in found if isinstance(module, types.ModuleType)]


def _names_in(scope: dict[str, Any]) -> dict[str, str]:
    """The names in a module's namespace that mean one of Python's functions which tell a kind, with its own name."""
    own = {n: n for n in _ASKING.values() if n not in scope or pythons_own(scope[n]) is not scope[n]}
    return own | {name: _ASKING[id(value)] for name, value in scope.items() if id(value) in _ASKING}


_ASKING = {id(isinstance): "isinstance", id(hasattr): "hasattr", id(getattr): "getattr", id(type): "type"}
"""Python's functions that tell what kind of value something is, by identity."""


_NUMPYS = ("numpy._core.numeric", "numpy.core.numeric")
"""Where ``numpy.isscalar`` is, from numpy 2 on and before."""


def pythons_own(function: Any) -> Any:
    """Python's function, where a capture has put another in its place: ``max`` and ``min`` are torch.export's."""
    if isinstance(function, functools.partial):
        return function.keywords.get("real_callable", function)
    return vars(function).get(_OWN, function) if isinstance(function, (types.FunctionType, type)) else function


_OWN = "torch_onnx_compat_pythons_own"


@contextmanager
def _told_classes(kind_of: Callable[[Any], type | None], scopes: Collection[int]) -> Iterator[None]:
    """While active, the model's statements read a number's class where they read a symbolic one's ``__class__``.

    Args:
        kind_of: The class of the number that a symbolic one stands for.
        scopes: The identities of the namespaces of the model's code.
    """

    def read(symbolic_number: Any, name: str) -> Any:
        frame = sys._getframe(1)
        if name == "__class__" and reads_class(frame, scopes):
            return kind_of(symbolic_number) or object.__getattribute__(symbolic_number, name)
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


def reads_class(frame: types.FrameType, scopes: Collection[int]) -> bool:
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


def _answer(kind_of: Callable[[Any], type | None], question: Callable[..., bool], value: Any, *args: Any) -> bool:
    """What `isinstance`, or `hasattr`, says of a value to a model whose sizes are numbers."""
    number = kind_of(value)
    return question(value if number is None else number(), *args)


def _get_attribute(kind_of: Callable[[Any], type | None], value: Any, name: str, *default: Any) -> Any:
    """What `getattr` gives to a model whose sizes are numbers."""
    number = kind_of(value)
    if number is None:
        return getattr(value, name, *default)
    if not hasattr(number, name):
        return getattr(number(), name, *default)
    if name == "__class__":
        return number
    return getattr(value, name) if hasattr(value, name) else attribute_of_number(value, name)


def _stand_in(own: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that `pythons_own` knows."""
    vars(function)[_OWN] = own
    return function


def _type(kind_of: Callable[[Any], type | None]) -> type:
    """`type`, for such a model: all that it does is what `type` does, but for a size."""

    class LikeType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            number = kind_of(args[0]) if len(args) == 1 else None
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
