"""grid_sample of a volume -> Gather, for opsets whose GridSample takes images only.

Math:   torch_onnx_compat.functional.grid_sample.
Source: https://onnx.ai/onnx/operators/onnx__GridSample.html: volumes are new in opset 20
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.grid_sample import MODES, PADDINGS, grid_sample


# F.grid_sample calls torch.grid_sampler; the other has its signature.
@rewrite(
    (torch.grid_sampler, torch.grid_sampler_3d),
    needed_on=("torchscript", "dynamo"),
    opset=(16, 19),
    exactness=Exactness.ROUNDING,
    issue="https://github.com/pytorch/pytorch/issues/100790",
)
def grid_sample_3d_to_gather(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """Samples a volume by reading cells and weighting them.

    The TorchScript exporter refuses volumes at these opsets, dynamo writes a GridSample that no specification covers.

    Declines: images (N, C, H, W), for which there is GridSample.
    """
    if input.dim() != 5:
        decline(f"wanted a volume (N, C, D, H, W), got {input.dim()} axes")
    return grid_sample(input, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)
