"""A model with example inputs, and the two ways to change those: another picture size, given shapes."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.functional import interpolate
from torch.utils._pytree import tree_map_only

from torch_onnx_compat.check.options import Verify
from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.inputs.inputs import forward_parameters

SEED = 0
DEFAULT = "DEFAULT"
"""The name of the weights that a library prefers."""
Size = tuple[int, int]
"""Height and width in pixels."""


@dataclass(frozen=True)
class Sample:
    """A model in eval mode, with inputs that it accepts."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Mapping[str, Mapping[int, str | Dim | tuple[str, int, int | None]]] = field(default_factory=dict)
    """Axes that may vary, as `export_compat` takes them: ``{"image": {0: "batch"}}``."""
    note: str = ""
    """What a reader should know about the model or its numbers, one sentence."""
    random: str = ""
    """Which of its weights are random although trained ones exist, such as ``all`` or ``the decoder's``; else empty."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """What the model's library knows of it, for the file's metadata: names of classes, how pictures are prepared."""
    verify: Verify = field(default_factory=Verify)
    """How a file's outputs are compared with the model's: tolerances, and whether its inputs may be drawn at random."""

    @property
    def input_names(self) -> list[str]:
        """Names of the forward's parameters, in order; ``*args`` and ``**kwargs`` have none."""
        return _parameters(self.model, positional=True) + _parameters(self.model, positional=False)

    @property
    def inputs(self) -> dict[str, Any]:
        """Example inputs by the name of the forward's parameter."""
        return {**dict(zip(self.input_names, self.args, strict=False)), **self.kwargs}

    def at_size(self, size: Size) -> Sample:
        """The same with every tensor (..., H, W) of three or more axes resampled to another height and width."""
        args, kwargs = tree_map_only(Tensor, lambda image: _resample(image, size), (self.args, dict(self.kwargs)))
        return replace(self, args=args, kwargs=kwargs)

    def with_shapes(self, shapes: Mapping[str, Sequence[int]]) -> Sample:
        """The same with some inputs replaced by random tensors of the given shapes.

        Args:
            shapes: Shapes by the name of the forward's parameter. A tensor that is there already lends its dtype, and
                an integer one its range; others are float32 from a normal distribution.

        Raises:
            CompatError: The forward has no parameter of such a name.
        """
        generator = torch.Generator().manual_seed(SEED)
        inputs = self.inputs
        for name, shape in shapes.items():
            if name not in self.input_names:
                raise unknown_name("input", name, self.input_names)
            inputs[name] = _random_like(inputs.get(name), tuple(shape), generator)
        return self._with_inputs(inputs)

    def positional(self) -> Sample:
        """The same with every input by position that can be: the forward's first parameters, as most people call it."""
        return self._with_inputs(self.inputs)

    def _with_inputs(self, inputs: dict[str, Any]) -> Sample:
        names = _parameters(self.model, positional=True)
        args = tuple(inputs.pop(name) for name in takewhile(inputs.__contains__, names))
        return replace(self, args=args + self.args[len(names) :], kwargs=inputs)

    def validate(self, where: str) -> Sample:
        """Itself.

        Raises:
            CompatError: The forward has a parameter without default that the example inputs leave out, or lacks one
                that they name.
        """
        signature = inspect.Signature(
            [p.replace(annotation=inspect.Parameter.empty) for p in forward_parameters(self.model)]
        )
        try:
            signature.bind(*self.args, **self.kwargs)
        except TypeError as error:
            factory = "return (model, args) from the factory, or " if ":" in where else ""
            raise CompatError(
                f"{where}: the example inputs do not fit forward{signature}: {error}; {factory}give --shape "
                f"NAME=1x3x224x224."
            ) from error
        return self


def image_sample(model: nn.Module, image: Tensor, axes: Mapping[int, str | Dim], note: str = "") -> Sample:
    """A model of one picture or clip, with the axes that may vary under the name its forward gives to the picture."""
    sample = Sample(model, (image,), note=note)
    return replace(sample, dynamic={sample.input_names[0]: dict(axes)})


def _parameters(model: nn.Module, *, positional: bool) -> list[str]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wanted = kinds if positional else (inspect.Parameter.KEYWORD_ONLY,)
    return [p.name for p in forward_parameters(model) if p.kind in wanted]


def _resample(image: Tensor, size: Size) -> Tensor:
    if image.ndim < 3:
        return image
    planes = image.reshape(-1, 1, *image.shape[-2:]).float()
    at_size = interpolate(planes, size=size, mode="bilinear", align_corners=False)
    return at_size.reshape(*image.shape[:-2], *size).to(image.dtype)


def _random_like(example: Any, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    if not isinstance(example, Tensor) or example.is_floating_point():
        dtype = example.dtype if isinstance(example, Tensor) else torch.float32
        return torch.randn(shape, generator=generator).to(dtype)
    low, high = int(example.min()), int(example.max())
    return torch.randint(low, high + 1, shape, generator=generator).to(example.dtype)
