"""F.adaptive_max_pool3d with return_indices -> maxima and their places over a table of windows.

Math:   torch_onnx_compat.functional.adaptive_max_pool.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool3d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.adaptive_max_pool import (
    adaptive_max_pool_with_indices,
    has_equal_windows,
    outputs_of,
)


@rewrite(
    nn.functional.adaptive_max_pool3d_with_indices,
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def adaptive_max_pool3d_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> tuple[Tensor, Tensor]:
    """Pools (N, C, D, H, W) or (C, D, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes right.
    """
    outputs = outputs_of(output_size, 3)
    if input.dim() == 5 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports right")
    return adaptive_max_pool_with_indices(input, outputs)
