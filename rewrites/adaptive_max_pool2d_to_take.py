"""F.adaptive_max_pool2d, nn.AdaptiveMaxPool2d -> maxima over a table of windows.

Math:   torch_onnx_compat.functional.adaptive_max_pool.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.AdaptiveMaxPool2d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.adaptive_max_pool import adaptive_max_pool, has_equal_windows, outputs_of


@rewrite(nn.functional.adaptive_max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def adaptive_max_pool2d_to_take(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W) of any size; stock fails or errs unless fixed outputs divide fixed sizes.

    Declines: batches whose fixed sizes the outputs divide, which stock writes as one right node.
    """
    outputs = outputs_of(output_size, 2)
    if input.dim() == 4 and has_equal_windows(input, outputs):
        decline("the output divides the input, which torch exports as MaxPool")
    return adaptive_max_pool(input, outputs)
