"""F.pad(mode="circular") by less than nothing -> a crop, then padding by what is left.

Math:   negative padding takes elements away before the others are repeated.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.pad.html
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.nn.functional.pad, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def circular_pad_of_crop(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Crops and wraps around; stock TorchScript repeats what negative padding takes away."""
    if mode != "circular" or not any(type(width) is int and width < 0 for width in pad):
        return NotImplemented  # type: ignore[no-any-return]
    pad_by = torch.nn.functional.pad
    cropped = [width if type(width) is int and width < 0 else 0 for width in pad]
    kept = pad_by(input, cropped)
    return pad_by(kept, [0 if less else width for width, less in zip(pad, cropped, strict=True)], mode="circular")
