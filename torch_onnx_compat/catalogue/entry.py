"""What a catalogue entry is: a frozen declaration of what it replaces, when it is needed, and its body."""

from __future__ import annotations

import enum
import functools
import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from torch_onnx_compat.errors import CompatError, EntryFailed
from torch_onnx_compat.places import short

Exporter = Literal["torchscript", "dynamo"]
EXPORTERS: tuple[Exporter, ...] = ("torchscript", "dynamo")

MIN_OPSET = 11
"""Lowest opset that export_compat writes; below it Clip, Pad and Resize lack the inputs that torch's lowerings need."""

ADMITS = "allow_approximate=True admits it"
"""What the reason of an entry says that is left out for its error."""


class Exactness(enum.Enum):
    """How close an entry's result is to eager torch."""

    BITWISE = "bitwise"
    """Equal bit for bit."""
    ROUNDING = "rounding"
    """The same real-number formula, evaluated in another order: a few units in the last place."""
    APPROXIMATE = "approximate"
    """Another formula, with the error that the entry states; applied only when the caller allows it."""


class Declined(Exception):
    """Raised by `decline`; turned into a note by whoever called the entry's body."""


def decline(reason: str) -> NoReturn:
    """Refuses to apply the entry that is running, e.g. ``decline("output_size must be 1, got 3")``.

    Args:
        reason: What was wanted and what was found. It appears in the plan after the entry's name.

    Raises:
        Declined: Always.
    """
    raise Declined(reason)


@dataclass(frozen=True)
class Operator:
    """An ONNX operator, perhaps only with certain attribute values: ``Operator("Resize", mode="cubic")``.

    Args:
        op_type: Name in the default ONNX domain.
        attributes: Values that the attributes must have for the operator to be meant.
    """

    op_type: str
    attributes: Mapping[str, Any]

    def __init__(self, op_type: str, **attributes: Any) -> None:
        object.__setattr__(self, "op_type", op_type)
        object.__setattr__(self, "attributes", attributes)

    def __hash__(self) -> int:
        return hash((self.op_type, tuple(sorted(self.attributes.items()))))

    def __str__(self) -> str:
        inner = ", ".join(f"{k}={v!r}" for k, v in self.attributes.items())
        return f"{self.op_type}({inner})" if inner else self.op_type


@dataclass(frozen=True)
class Need:
    """When an entry is wanted. Any one of the three suffices; none of them means only by `include`."""

    exporters: frozenset[Exporter] = frozenset()
    """The exporters that fail, or err, without the entry."""
    avoids: tuple[Operator, ...] = ()
    """The ONNX operators that stock torch emits here and the entry does not."""
    always: bool = False
    """The entry is right and no slower everywhere."""
    fixed_in: str = ""
    """The torch version from which on stock torch is right, e.g. 2.7; empty while none is."""

    def __str__(self) -> str:
        parts = []
        if self.always:
            parts.append("always")
        if self.exporters:
            parts.append("for " + " and ".join(sorted(self.exporters)))
        if self.avoids:
            parts.append("to avoid " + ", ".join(map(str, self.avoids)))
        if self.fixed_in:
            parts.append(f"before torch {self.fixed_in}")
        return ", ".join(parts) or "when included by name"


NUMPYS_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
"""Names of arguments that torch's functions take beside their own.

Source: numpy_compatibility_arg_names in torch's csrc/utils/python_arg_parser.cpp
"""


@functools.lru_cache(maxsize=1024)
def _parameters(body: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(body).parameters)


def _with_torchs_names(body: Callable[..., Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by the names that a body has for them: ``keepdim`` for numpy's ``keepdims``."""
    own = _parameters(body)
    names = {name: name if name in own else NUMPYS_NAMES.get(name, name) for name in kwargs}
    return {names[name] if names[name] in own else name: value for name, value in kwargs.items()}


@dataclass(frozen=True)
class Entry:
    """What symbolics and rewrites have in common."""

    name: str
    body: Callable[..., Any]
    need: Need
    opset: tuple[int, int]
    """First and last ONNX opset for which the body is right, both included."""
    targets: frozenset[str]
    """Targets the entry is meant for; empty means any."""
    exactness: Exactness
    error: float
    """For APPROXIMATE entries the largest relative error, as their source states it; otherwise 0."""
    source: str
    """Where the mathematics or the operator's definition can be read."""
    issue: str
    """The upstream issue that makes the entry necessary, if there is one."""
    owner: str = field(kw_only=True)
    """Module that registered the entry."""

    @property
    def summary(self) -> str:
        """First line of the body's docstring."""
        return (self.body.__doc__ or "").strip().partition("\n")[0]

    def run(self, place: Callable[[], str], /, *args: Any, **kwargs: Any) -> Any:
        """Calls the body.

        Args:
            place: Says where in the model; asked only if the body fails.
            args: What the body takes.
            kwargs: The same by name.

        Raises:
            Declined: The body declined.
            EntryFailed: It failed; says where.
        """
        if NUMPYS_NAMES.keys() & kwargs.keys():
            kwargs = _with_torchs_names(self.body, kwargs)
        try:
            return self.body(*args, **kwargs)
        except (Declined, CompatError):
            raise
        except Exception as error:
            if isinstance(error, TypeError) and not _takes(self.body, args, kwargs):
                decline("it does not take so many arguments, or not by these names")
            raise EntryFailed(
                f"{place() or 'the model'}: entry {self.name!r} ({self._line_of(error)}) failed with "
                f"{type(error).__name__}: {error}; mend it, or exclude it with exclude=[{self.name!r}].",
                self.name,
            ) from error

    def _line_of(self, error: BaseException) -> str:
        """Where in the body's file an error was raised."""
        file = inspect.unwrap(self.body).__code__.co_filename
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        return short(file, lines[-1]) if lines else self.owner

    def covers(self, opset: int, target: str) -> bool:
        """Whether the entry is meant for this opset and target at all."""
        return self.opset[0] <= opset <= self.opset[1] and (not self.targets or target in self.targets)


@dataclass(frozen=True)
class Symbolic(Entry):
    """How one torch operator is written in ONNX operators; one body for both exporters."""

    op: str
    """Qualified torch operator, e.g. ``aten::fmod``; all its overloads are meant."""


RewriteKind = Literal["module", "function", "attribute"]


@dataclass(frozen=True)
class Rewrite(Entry):
    """How one module class, torch function or Python function is replaced by an equivalent that exports."""

    kind: RewriteKind
    match: tuple[Any, ...]
    """Classes, torch functions, or dotted names that are looked up only when their module is loaded."""

    @property
    def replaces(self) -> str:
        """The replaced things' dotted names."""
        return ", ".join(map(qualified_name, self.match))

    def run(self, place: Callable[[], str], /, *args: Any, **kwargs: Any) -> Any:
        """As any entry's, without ``out=``: no torch function that writes into a tensor of the caller's is replaced."""
        if self.kind == "function" and kwargs.pop("out", None) is not None:
            decline("out must be None, got a tensor")
        return super().run(place, *args, **kwargs)


@dataclass(frozen=True)
class Machinery(Entry):
    """A rewrite that a package of its own carries out; the catalogue lists it like any other, and says where it is."""

    package: str
    """Where to read on."""


def _takes(function: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def qualified_name(match: Any) -> str:
    """The name by which users call what a rewrite replaces."""
    if isinstance(match, str):
        return match
    name = getattr(match, "__qualname__", "") or match.__name__  # an operator has the latter alone
    return _public_names().get(id(match)) or f"{getattr(match, '__module__', 'torch')}.{name}"


@functools.cache
def _public_names() -> dict[int, str]:
    """Names by which users call torch's functions; many hold another name, or none, themselves."""
    import torch  # not at the top: the command line reads what stands above, and is to start fast

    spaces = (torch.nn.functional, torch.special, torch.fft, torch.linalg, torch.Tensor, torch)
    return {
        id(getattr(space, name)): f"torch.Tensor.{name}" if space is torch.Tensor else f"{space.__name__}.{name}"
        for space in spaces
        for name in (dir(space) if space is torch.Tensor else vars(space))
        if callable(getattr(space, name))
    }
