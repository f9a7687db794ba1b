"""F.adaptive_avg_pool1d, nn.AdaptiveAvgPool1d -> a product with a pooling matrix.

Math:   torch_onnx_compat.functional.adaptive_avg_pool: averaging the windows of an axis is a product with a matrix.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveAvgPool1d.html
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
    nn.functional.adaptive_avg_pool1d,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/42653",
)
def adaptive_avg_pool1d_to_matmul(input: Tensor, output_size: Any) -> Tensor:
    """Pools (N, C, L) or (C, L) of any length; stock fails or errs unless a fixed output divides a fixed length.

    Declines: what stock writes right, i.e. batches pooled to a single cell or by equal windows.
    """
    outputs = outputs_of(output_size, 1)
    batched = input.dim() == 3
    if batched and is_single_cell(outputs):
        decline("a single cell is a mean, which torch exports for every size")
    windows = windows_of(input, outputs)
    if batched and windows is not None and input.dtype != torch.float64:  # onnxruntime pools no float64
        decline("the output divides the input, which torch exports as AveragePool")
    return adaptive_avg_pool(input, outputs)
