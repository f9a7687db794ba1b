"""F.adaptive_avg_pool3d, nn.AdaptiveAvgPool3d -> an ordinary pool, or products with pooling matrices.

Math:   torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool3d.html
"""

from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.adaptive_avg_pool import (
    adaptive_avg_pool,
    is_single_cell,
    outputs_of,
    windows_of,
)


@rewrite(
    nn.functional.adaptive_avg_pool3d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool3d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock dynamo has no 3-D adaptive pool at all.

    Declines: batches pooled to a single cell, which stock writes as one right node.
    """
    outputs = outputs_of(output_size, 3)
    batched = input.dim() == 5
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        return nn.functional.avg_pool3d(input, windows)
    return adaptive_avg_pool(input, outputs)
