"""torchvision::roi_pool -> MaxRoiPool.

Math:   the largest value of each of the cells of a region, whose corners are rounded to whole pixels.
Schema: roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width)
        -> (Tensor, Tensor)
Source: https://onnx.ai/onnx/operators/onnx__MaxRoiPool.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("torchvision::roi_pool", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def roi_pool(
    op: Ops, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """Pools regions (K, 5) into (K, C, P, Q); torch's lowering takes other arguments than the operator has.

    The second result, the places of the maxima, is for the backward pass; zeros stand for it.
    """
    pooled = op.MaxRoiPool(input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale)
    zero = op.constant(0, torch.int32)
    return pooled, op.Expand(zero, op.Shape(pooled))
