"""Layers of torch.ao that round to the steps of an integer type while a model is trained for quantization."""

from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite

_FOLDER = "module:torch.ao.quantization.fake_quantize"


class FixedFakeQuantize(nn.Module):
    """Rounds a tensor to fixed steps: one size for all, or one for each channel.

    Args:
        layer: A FakeQuantize that observes no more.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.limits = int(layer.activation_post_process.quant_min), int(layer.activation_post_process.quant_max)
        self.axis = int(layer.ch_axis) if layer.is_per_channel else None
        scale, zero_point = layer.scale.detach().float(), layer.zero_point.detach()
        if self.axis is None:
            self.step, self.zero = scale.item(), int(zero_point.item())
        else:
            self.register_buffer("scale", scale)
            self.register_buffer("zero_point", zero_point.to(torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        """Rounds a tensor of any shape."""
        if self.axis is None:
            return torch.fake_quantize_per_tensor_affine(x, self.step, self.zero, *self.limits)
        return torch.fake_quantize_per_channel_affine(x, self.scale, self.zero_point, self.axis, *self.limits)


# The fused operator writes to its observer's state, and neither exporter has it.
@rewrite(
    (f"{_FOLDER}.FakeQuantize", f"{_FOLDER}.FusedMovingAvgObsFakeQuantize"),
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
)
def fixed_fake_quantize(module: Any) -> nn.Module:
    """Fixes the steps of a layer that observes no more.

    Declines: a layer that still observes, since each run of the model changes its steps.

    Math: (clamp(round(x / scale) + zero_point, least, most) - zero_point) * scale.
    Source: https://docs.pytorch.org/docs/stable/generated/torch.ao.quantization.fake_quantize.FakeQuantize.html
    """
    if int(module.observer_enabled[0]):
        decline("it still observes, so that each run changes it: model.apply(torch.ao.quantization.disable_observer)")
    return FixedFakeQuantize(module) if int(module.fake_quant_enabled[0]) else nn.Identity()
