"""F.fractional_max_pool2d, nn.FractionalMaxPool2d with given samples -> maxima over windows read by a table.

Math:   torch_onnx_compat.functional.fractional_max_pool.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.FractionalMaxPool2d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.fractional_max_pool import fractional_max_pool2d


@rewrite(nn.functional.fractional_max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def fractional_max_pool2d_to_gather(
    input: Tensor,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """Pools (N, C, H, W) or (C, H, W); neither exporter has an operator for it.

    Declines: samples that torch would draw, and heights and widths that vary.
    """
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, _random_samples, indices=False)[0]
