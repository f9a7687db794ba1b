"""Models that torch.ao converted to eight bits, eager or by FX, and their layers: float tensors on the same steps.

The layers of torch.ao hold their weights packed, which torch.export cannot read, and pass quantized tensors on, which
ONNX does not have.
"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.nn import functional

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.quantized import OnFloats, QuantizedWeight, Steps, dynamic_linear, floats

_LAYERS = "torch.ao.nn.quantized.modules"
_FUSED = "torch.ao.nn.intrinsic.quantized.modules"
_REFERENCE = "torch.ao.nn.quantized.reference.modules"
_CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_SEEN: "WeakSet[nn.Module]" = WeakSet()
"""Models on floats, inside which nothing is to be done again."""


@rewrite("module:*", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def quantized_model_on_floats(model: nn.Module) -> nn.Module:
    """Runs a model with quantized tensors on floats that lie on their steps.

    Math: a quantized tensor stands for (q - zero point) * scale; what makes a new one is rounded to its steps.
    Source: https://docs.pytorch.org/docs/stable/quantization.html
    """
    if model in _SEEN or not _makes_quantized(model):
        return NotImplemented
    _SEEN.update(model.modules())
    for graph in [m for m in model.modules() if isinstance(m, torch.fx.GraphModule)]:
        _fix_steps(graph)
    inner = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:
        with OnFloats():
            return inner(*args, **kwargs)

    model.forward = forward  # the twin's: the caller's model is another object
    return model


def _makes_quantized(model: nn.Module) -> bool:
    if any(type(m).__module__.startswith((_LAYERS, _FUSED, _REFERENCE)) for m in model.children()):
        return True
    if not isinstance(model, torch.fx.GraphModule):
        return any(_makes_quantized(m) for m in model.children())
    return any(node.target in (torch.quantize_per_tensor, torch.quantize_per_channel) for node in model.graph.nodes)


def _fix_steps(model: torch.fx.GraphModule) -> None:
    """Makes Python numbers of the buffers that are scales and zero points: no exporter could read them later."""
    names = {
        str(argument.target)
        for node in model.graph.nodes
        if node.target is torch.quantize_per_tensor
        or str(getattr(node.target, "_qualified_op_name", "")).startswith("quantized::")
        for argument in node.args
        if isinstance(argument, torch.fx.Node) and argument.op == "get_attr"
    }
    for name in names & set(model._buffers):
        buffer = model._buffers[name]
        if buffer is not None and buffer.numel() == 1:
            del model._buffers[name]
            setattr(model, name, buffer.item())


class FloatLayer(nn.Module):
    """A layer with a weight in eight bits that computes in float32, and rounds its result to the steps it had.

    Args:
        weight: The quantized weight.
        bias: (C,) or None.
        compute: The layer's function of input, weight and bias.
        steps: Of the result; None where it stays float.
        activation: What follows before the rounding.
    """

    bias: Tensor | None

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        compute: Callable[[Tensor, Tensor, Tensor | None], Tensor],
        steps: Steps | None,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.weight = QuantizedWeight(weight)
        self.register_buffer("bias", None if bias is None else bias.detach().float())
        self.compute, self.steps, self.activation = compute, steps, activation

    def forward(self, x: Tensor) -> Tensor:
        """The layer's result."""
        found = self.compute(floats(x), self.weight(), self.bias)
        if self.activation is not None:
            found = self.activation(found)
        return found if self.steps is None else self.steps.round(found)


@rewrite(
    (
        *(f"module:{_LAYERS}.conv.{name}" for name in _CONVOLUTIONS),
        *(f"module:{_FUSED}.conv_relu.ConvReLU{d}d" for d in (1, 2, 3)),
        *(f"module:{_REFERENCE}.conv.{name}" for name in _CONVOLUTIONS),
    ),
    needed_on=("dynamo",),
    exactness=Exactness.ROUNDING,
)
def quantized_convolution_on_floats(module: Any) -> nn.Module:
    """Writes a convolution in eight bits as one in float32 with dequantized weights and a rounding.

    Declines: padding that is not zeros.

    Math: round((conv(x, (w - zero point) * scale) + bias) / step) * step.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.Conv2d.html
    """
    if module.padding_mode != "zeros":
        decline(f"wanted padding with zeros, got {module.padding_mode!r}")
    kind, dims = type(module).__name__, int(type(module).__name__[-2])
    options = {"stride": module.stride, "padding": module.padding, "dilation": module.dilation, "groups": module.groups}
    if "Transpose" in kind:
        function: Any = getattr(functional, f"conv_transpose{dims}d")
        options["output_padding"] = module.output_padding
    else:
        function = getattr(functional, f"conv{dims}d")
    compute = partial(_convolved, function, options)
    return FloatLayer(*_weights(module), compute, _steps(module), torch.relu if "ReLU" in kind else None)


def _convolved(function: Any, options: dict[str, Any], x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = function(x, weight, bias, **options)
    return found


@rewrite(
    (
        f"module:{_LAYERS}.linear.Linear",
        f"module:{_FUSED}.linear_relu.LinearReLU",
        f"module:{_FUSED}.linear_relu.LinearLeakyReLU",
        f"module:{_FUSED}.linear_relu.LinearTanh",
        f"module:{_REFERENCE}.linear.Linear",
    ),
    needed_on=("dynamo",),
    exactness=Exactness.ROUNDING,
)
def quantized_linear_on_floats(module: Any) -> nn.Module:
    """Writes a linear layer in eight bits as one in float32 with dequantized weights and a rounding.

    Math: round((x (w - zero point)^T * scale + bias) / step) * step.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.Linear.html
    """
    activations: dict[str, Any] = {"LinearReLU": torch.relu, "LinearTanh": torch.tanh}
    activation = activations.get(type(module).__name__)
    if type(module).__name__ == "LinearLeakyReLU":
        activation = partial(functional.leaky_relu, negative_slope=module.negative_slope)
    return FloatLayer(*_weights(module), functional.linear, _steps(module), activation)


def _weights(module: Any) -> tuple[Tensor, Tensor | None]:
    if callable(module.weight):
        return module.weight(), module.bias()
    return module.get_quantized_weight(), module.bias


def _steps(module: Any) -> Steps | None:
    """Of the result; a reference layer has none."""
    if not hasattr(module, "scale") or not callable(module.weight):
        return None
    return Steps(float(module.scale), int(module.zero_point))


class FloatFunctions(nn.Module):
    """Adds, multiplies and joins tensors on steps, and rounds to the result's.

    Args:
        steps: Of the result.
    """

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum."""
        return self.steps.round(floats(x) + floats(y))

    def add_relu(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum, cut at zero."""
        return self.steps.round(torch.relu(floats(x) + floats(y)))

    def mul(self, x: Tensor, y: Tensor) -> Tensor:
        """The product, element by element."""
        return self.steps.round(floats(x) * floats(y))

    def matmul(self, x: Tensor, y: Tensor) -> Tensor:
        """The product of matrices."""
        return self.steps.round(floats(x) @ floats(y))

    def cat(self, x: list[Tensor], dim: int = 0) -> Tensor:
        """The tensors, joined along an axis."""
        return self.steps.round(torch.cat([floats(part) for part in x], dim))

    def add_scalar(self, x: Tensor, y: float) -> Tensor:
        """The sum with a number."""
        return torch.ops.quantized.add_scalar(x, y)

    def mul_scalar(self, x: Tensor, y: float) -> Tensor:
        """The product with a number."""
        return torch.ops.quantized.mul_scalar(x, y)


@rewrite(f"module:{_LAYERS}.functional_modules.QFunctional", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def quantized_functions_on_floats(module: Any) -> nn.Module:
    """Writes sums, products and joins of quantized tensors in floats with a rounding.

    Declines: an activation behind them that is observed.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.QFunctional.html
    """
    if not isinstance(module.activation_post_process, nn.Identity):
        decline("something observes its results")
    return FloatFunctions(Steps(float(module.scale), int(module.zero_point)))


class FixedQuantize(nn.Module):
    """Rounds a float tensor to steps that are known."""

    def __init__(self, steps: Steps) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: Tensor) -> Tensor:
        """Rounds a tensor of any shape."""
        return self.steps.round(x)


@rewrite(f"module:{_LAYERS}.Quantize", needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def quantize_on_floats(module: Any) -> nn.Module:
    """Rounds to the steps of a Quantize layer; its scale is a buffer, which torch.export cannot read as a number.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.QuantStub.html
    """
    return FixedQuantize(Steps(float(module.scale), int(module.zero_point), module.dtype))


# Layers whose inputs are quantized at run time


class DynamicLayer(nn.Module):
    """A linear layer that finds the steps of its input at run time.

    Args:
        weight: (N, K), qint8, zero points 0.
        bias: (N,) or None.
        most: The largest number that the input is rounded to.
        has_relu: Whether negative results become zero.
    """

    weight: Tensor
    scales: Tensor

    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None, most: int, *, has_relu: bool) -> None:
        super().__init__()
        is_tensorwise = weight.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric)
        scales = torch.tensor(weight.q_scale()) if is_tensorwise else weight.q_per_channel_scales()
        self.register_buffer("weight", weight.int_repr())
        self.register_buffer("scales", scales.float())
        self.register_buffer("bias", None if bias is None else bias.detach().float())
        self.most, self.has_relu = most, has_relu

    def forward(self, x: Tensor) -> Tensor:
        """(..., K) to (..., N)."""
        found = dynamic_linear(x, self.weight, self.scales, self.bias, self.most)
        return torch.relu(found) if self.has_relu else found


@rewrite(
    (
        "module:torch.ao.nn.quantized.dynamic.modules.linear.Linear",
        "module:torch.ao.nn.intrinsic.quantized.dynamic.modules.linear_relu.LinearReLU",
    ),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def dynamic_linear_in_integers(module: Any) -> nn.Module:
    """Writes a linear layer whose input is quantized at run time with a product of whole numbers.

    A weight in float16 is widened.

    Declines: weights with zero points.

    Math:   q = clamp(round(x / s) + z, 0, 127), (q w^T - z sum(w)) * s * scale + bias; s and z from the range of x.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.nn.quantized.dynamic.Linear.html
    """
    weight, bias = module.weight(), module.bias()
    has_relu = type(module).__name__ == "LinearReLU"
    if not weight.is_quantized:
        plain = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
        plain.weight = nn.Parameter(weight.detach().half().float())
        if bias is not None:
            plain.bias = nn.Parameter(bias.detach().float())
        return nn.Sequential(plain, nn.ReLU()) if has_relu else plain
    zeros = (
        weight.q_per_channel_zero_points()
        if weight.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric)
        else torch.tensor(weight.q_zero_point())
    )
    if bool(zeros.any()):
        decline("wanted weights whose zero points are 0, as torch's own observers give them")
    reduces = module.version is None or module.version >= 4
    return DynamicLayer(weight, bias, 127 if reduces else 255, has_relu=has_relu)
