"""The inputs of a file from arguments given as forward takes them: by position, by keyword, nested, complex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.inputs.inputs import Inputs, forward_parameters


@dataclass(frozen=True)
class Signature:
    """How forward was called for the export, without the tensors.

    Attributes:
        parameters: Positional parameters in order.
        names: The file's inputs.
        paths: Where in the arguments each of them lies; the first part is the parameter.
        paired: Numbers of the inputs (..., 2) that hold the parts of a complex argument.
        constants: What else the arguments held, by path: it is part of the file.
        left_out: Parameters that were left at their defaults.
    """

    parameters: tuple[str, ...]
    names: tuple[str, ...]
    paths: tuple[tree.Path, ...]
    paired: frozenset[int]
    constants: Mapping[tree.Path, Any]

    left_out: frozenset[str] = frozenset()

    @classmethod
    def of(cls, inputs: Inputs, model: nn.Module) -> Signature:
        """The signature of an example of a model's inputs."""
        args, kwargs = inputs.call()
        named = dict(zip(inputs.parameters, args, strict=False)) | kwargs
        defaults = {
            p.name: None if p.default is p.empty else p.default
            for p in forward_parameters(model)
            if p.name not in named and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        }
        constants = dict(tree.constants({**defaults, **named}))
        return cls(inputs.parameters, inputs.names, inputs.paths, inputs.paired, constants, frozenset(defaults))

    def feeds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The file's inputs by name, complex ones as pairs.

        Args:
            args: Positional arguments of forward.
            kwargs: Keyword arguments.

        Raises:
            CompatError: A tensor is missing, or is none, or there is one that the file does not take, or another value
                than the one that is part of the file.
        """
        named = tree.with_tensors(self._by_name(args, kwargs))
        leaves, _ = tree.flatten(named)
        given = dict(leaves)
        self._check_constants(named)
        for path in given:
            if path not in self.paths:
                raise CompatError(
                    f"the file has no input for {tree.qualified_name(path)!r}, which was no tensor at the export; "
                    f"it takes {', '.join(self.names)}."
                )
        missing = [tree.qualified_name(path) for path in self.paths if path not in given]
        if missing:
            raise CompatError(
                f"{len(given)} tensors were given; the file takes {len(self.names)}: {', '.join(self.names)}. "
                f"Missing: {', '.join(missing)}."
            )
        tensors = [given[path] for path in self.paths]
        return {
            name: torch.view_as_real(tensor.resolve_conj()) if number in self.paired else tensor
            for number, (name, tensor) in enumerate(zip(self.names, tensors, strict=True))
        }

    def _by_name(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.parameters):
            raise CompatError(
                f"{len(args)} positional arguments were given; forward takes {len(self.parameters)}: "
                f"{', '.join(self.parameters)}."
            )
        named = dict(zip(self.parameters, args, strict=False))
        known = {*self.parameters, *self.left_out, *(str(path[0]) for path in (*self.paths, *self.constants))}
        for name, value in kwargs.items():
            if name in named:
                raise CompatError(f"{name!r} was given twice, by position and by keyword.")
            if name not in known:
                raise unknown_name("argument", name, known)
            named[name] = value
        return named

    def _check_constants(self, named: Mapping[str, Any]) -> None:
        for path, value in tree.constants(named):
            name = tree.qualified_name(path)
            if path in self.paths:
                raise CompatError(f"{name!r} is a {type(value).__name__}; the file takes a tensor.")
            if path not in self.constants:
                raise CompatError(
                    f"{name}={value!r}: the file holds the default, as it was exported without {name}; export again."
                )
            if not _is_equal(value, self.constants[path]):
                raise CompatError(
                    f"{name}={value!r}: the file holds {name}={self.constants[path]!r}; export again for another value."
                )


def feeds_by_name(names: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Tensor]:
    """The inputs of a file whose own names are all that is known: positional tensors in order, keywords by name.

    Args:
        names: The file's inputs.
        args: Tensors, perhaps nested, for the first of them.
        kwargs: Tensors by name, or nested ones in the file's order.

    Raises:
        CompatError: There are too few or too many tensors.
    """
    (first, _), (last, _) = (tree.flatten(tree.with_tensors(given)) for given in (tuple(args), dict(kwargs)))
    if len(first) + len(last) != len(names):
        raise CompatError(
            f"{len(first) + len(last)} tensors were given; the file takes {len(names)}: {', '.join(names)}."
        )
    feeds = dict(zip(names, (tensor for _, tensor in first), strict=False))
    left = [name for name in names if name not in feeds]
    by_name = all(len(path) == 1 and path[0] in left for path, _ in last)
    feeds |= {str(path[0]) if by_name else name: tensor for name, (path, tensor) in zip(left, last, strict=True)}
    return feeds


def _is_equal(one: Any, other: Any) -> bool:
    """Whether two constants are the same; those without an answer count as the same."""
    try:
        return bool(one is other or one == other)
    except Exception:  # whatever a constant's own comparison raises
        return True
