"""aten::grid_sampler -> GridSample as it was before opset 20: images only.

Schema: grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
Source: https://onnx.ai/onnx/operators/text_diff_GridSample_16_20.html
"""

from torch_onnx_compat import Exactness, Ops, Value, symbolic
from torch_onnx_compat.errors import UnsupportedError

_MODES = ("bilinear", "nearest", "bicubic")  # in the order of torch's enumeration, as are the paddings
_PADDINGS = ("zeros", "border", "reflection")


@symbolic("aten::grid_sampler", needed_on=("dynamo",), opset=(16, 19), exactness=Exactness.ROUNDING)
def grid_sampler_16(
    op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Samples an image (N, C, H, W) at coordinates in [-1, 1].

    Raises:
        UnsupportedError: The input is a volume. To decline it would let dynamo write a node for it that the operator's
            specification does not cover.
    """
    if op.rank(input) == 5:
        raise UnsupportedError(
            f"aten::grid_sampler of a volume needs opset 20 or later, got {op.opset}; raise opset_version, or do not "
            f"exclude 'grid_sample_3d_to_gather'."
        )
    return op.GridSample(
        input,
        grid,
        mode=_MODES[interpolation_mode],
        padding_mode=_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )
