"""grid_sample -> Gather, for opsets and engines without GridSample.

Math:   torch_onnx_compat.functional.grid_sample.
Source: https://pytorch.org/docs/stable/generated/torch.nn.functional.grid_sample.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.grid_sample import MODES, PADDINGS, grid_sample


# F.grid_sample calls torch.grid_sampler; the other two have its signature.
@rewrite(
    (torch.grid_sampler, torch.grid_sampler_2d, torch.grid_sampler_3d),
    avoids=("GridSample",),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/NVIDIA/TensorRT/issues/4646",
)
def grid_sample_to_gather(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Samples an image or volume by reading cells and weighting them.

    Coordinates that are NaN or infinite give what eager torch gives on a CPU.
    """
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)
