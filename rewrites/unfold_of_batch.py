"""F.unfold, nn.Unfold, of a single image -> that of a batch of one.

Math:   the batch axis is added and taken away again.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite


@rewrite(nn.functional.unfold, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def unfold_of_batch(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Windows of an image (C, H, W) as columns; stock writes a file that does not load."""
    if input.dim() == 4:
        return NotImplemented  # type: ignore[no-any-return]
    return nn.functional.unfold(input.unsqueeze(0), kernel_size, dilation, padding, stride).squeeze(0)
