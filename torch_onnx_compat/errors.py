"""The errors a caller can meet. A message says where, what was found, what was wanted and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch_onnx_compat.check.compare import Comparison
    from torch_onnx_compat.check.localisation import Localisation


class CompatError(Exception):
    """Base of every error this package raises on purpose."""

    names_remedy = False
    """Whether the message says what to do, so that none of the known causes is added to it."""


class ArgumentError(CompatError):
    """An argument is wrong, or what it names cannot be read; the model has no part in it."""


class ClashError(CompatError):
    """Two catalogue entries claim the same operator or module equally specifically."""


class UnsupportedError(CompatError):
    """The model cannot be written for this exporter, opset or target; the message names the obstacle."""


class EntryFailed(UnsupportedError):
    """The body of an entry raised an error that it did not mean to raise.

    Attributes:
        entry: Its name.
    """

    def __init__(self, message: str, entry: str) -> None:
        super().__init__(message)
        self.entry = entry


class RandomModel(CompatError):
    """Random numbers decide what the model computes, so no file can be proven."""


class VerificationError(CompatError):
    """The exported file does not compute what the original model computes.

    Attributes:
        table: One row per case and output, in the order in which they were compared.
        inputs: What the last case ran on, an Inputs.
        place: Where the file first differs from the model, where that was found.
    """

    def __init__(self, message: str, table: tuple[Comparison, ...] = (), inputs: Any = None) -> None:
        super().__init__(message)
        self.table = table
        self.inputs = inputs
        self.place: Localisation | None = None


class InvalidFile(VerificationError):
    """The exported file is no valid ONNX, since its opset lacks an element type that a later one has.

    Attributes:
        least_opset: The first opset that has it.
    """

    names_remedy = True

    def __init__(self, message: str, least_opset: int) -> None:
        super().__init__(message)
        self.least_opset = least_opset


def causes(error: BaseException, *, contexts: bool = False) -> Iterator[BaseException]:
    """The error, what caused it, what caused that, and so on; each once, though causes may form a ring.

    Args:
        error: Where to begin.
        contexts: Whether what was being handled counts as a cause where none was stated.
    """
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or (cause.__context__ if contexts else None)


def with_lines(error: CompatError, lines: Iterable[str]) -> CompatError:
    """The same error with further lines in its message."""
    error.args = ("\n  ".join((str(error), *lines)), *error.args[1:])
    return error


def unknown_name(kind: str, name: str, known: Iterable[str]) -> ArgumentError:
    """Builds the error for a misspelt name: what was given, what was perhaps meant, what exists."""
    return ArgumentError(f"unknown {kind} {name!r}; {hint_for(name, known)}")


def hint_for(name: str, known: Iterable[str]) -> str:
    """What was perhaps meant with a misspelt name, or what exists."""
    names = sorted(known)
    begun = [other for other in names if name and other.lower().startswith(name.lower())]
    close = begun or get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names) or 'none'}."
