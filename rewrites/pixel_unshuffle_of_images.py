"""pixel_unshuffle, nn.PixelUnshuffle, of anything but (N, C, H, W) -> that of a batch of images.

Math:   all axes before the last three are batch axes.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelUnshuffle.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.pixel_unshuffle, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def pixel_unshuffle_of_images(input: Tensor, downscale_factor: int) -> Tensor:
    """Takes (C, H, W) and (..., C, H, W), for which stock TorchScript has no symbolic."""
    if input.dim() == 4:
        return NotImplemented  # type: ignore[no-any-return]
    if input.dim() == 3:
        return torch.pixel_unshuffle(input.unsqueeze(0), downscale_factor).squeeze(0)
    images = torch.pixel_unshuffle(input.flatten(0, -4), downscale_factor)
    return images.reshape((*input.shape[:-3], *images.shape[1:]))
