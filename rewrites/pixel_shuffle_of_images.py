"""pixel_shuffle, nn.PixelShuffle, of anything but (N, C, H, W) -> that of a batch of images.

Math:   all axes before the last three are batch axes.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.PixelShuffle.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.pixel_shuffle, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def pixel_shuffle_of_images(input: Tensor, upscale_factor: int) -> Tensor:
    """Takes (C, H, W) and (..., C, H, W), for which stock TorchScript has no symbolic."""
    if input.dim() == 4:
        return NotImplemented  # type: ignore[no-any-return]
    if input.dim() == 3:
        return torch.pixel_shuffle(input.unsqueeze(0), upscale_factor).squeeze(0)
    images = torch.pixel_shuffle(input.flatten(0, -4), upscale_factor)
    return images.reshape((*input.shape[:-3], *images.shape[1:]))
