"""F.adaptive_avg_pool2d, nn.AdaptiveAvgPool2d -> an ordinary pool, or products with pooling matrices.

Math:   torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool2d.html
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
    nn.functional.adaptive_avg_pool2d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool2d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: what stock writes as one right node, i.e. batches pooled to a single cell or by equal windows.
    """
    outputs = outputs_of(output_size, 2)
    batched = input.dim() == 4
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        if None not in outputs:
            decline("the output divides the input, which torch exports as AveragePool")
        return nn.functional.avg_pool2d(input, windows)
    return adaptive_avg_pool(input, outputs)
