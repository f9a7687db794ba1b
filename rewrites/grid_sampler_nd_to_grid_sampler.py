"""torch.grid_sampler_2d, torch.grid_sampler_3d -> torch.grid_sampler.

Math:   torch.grid_sampler calls one of the two, by the number of axes, and is the one that the exporters know.
Source: ATen/native/GridSampler.cpp
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(
    (torch.grid_sampler_2d, torch.grid_sampler_3d), needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE
)
def grid_sampler_nd_to_grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Calls the operator that the exporters know; TorchScript refuses both of these, dynamo the second."""
    return torch.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)
