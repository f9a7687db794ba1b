"""aten::grid_sampler -> GridSample as it was before opset 20: images only.

Schema: grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor
Source: https://onnx.ai/onnx/operators/text_diff_GridSample_16_20.html
"""

from torch_onnx_compat import Exactness, Ops, Value, decline, symbolic

_MODES = ("bilinear", "nearest", "bicubic")  # in the order of torch's enumeration, as are the paddings
_PADDINGS = ("zeros", "border", "reflection")


@symbolic("aten::grid_sampler", needed_on=("dynamo",), opset=(16, 19), exactness=Exactness.ROUNDING)
def grid_sampler_16(
    op: Ops, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """Samples an image (N, C, H, W) at coordinates in [-1, 1].

    Declines: volumes, for which stock dynamo writes a node that the operator's specification does not cover.
    """
    rank = op.rank(input)
    if rank != 4:
        decline(f"an input of {rank} axes needs opset 20 or later, or the rewrite 'grid_sample_3d_to_gather'")
    return op.GridSample(
        input,
        grid,
        mode=_MODES[interpolation_mode],
        padding_mode=_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )
