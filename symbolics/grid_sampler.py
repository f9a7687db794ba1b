"""aten::grid_sampler -> GridSample, images and volumes.

Schema: grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
Source: https://onnx.ai/onnx/operators/onnx__GridSample.html (opset 20)
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic

_MODES = ("linear", "nearest", "cubic")  # in the order of torch's enumeration, as are the paddings
_PADDINGS = ("zeros", "border", "reflection")


# Needed nowhere: both exporters of torch 2.15 write the same node. It is the form that include=["grid_sampler"] pins.
@symbolic("aten::grid_sampler", opset=(20, 99), exactness=Exactness.ROUNDING)
def grid_sampler(
    op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Samples an image (N, C, H, W) or volume (N, C, D, H, W) at coordinates in [-1, 1]."""
    return op.GridSample(
        input,
        grid,
        mode=_MODES[interpolation_mode],
        padding_mode=_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )
