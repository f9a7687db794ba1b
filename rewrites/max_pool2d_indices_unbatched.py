"""F.max_pool2d_with_indices of (C, H, W) -> that of (1, C, H, W).

Math:   a batch of one; indices count within a channel.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite


@rewrite(nn.functional.max_pool2d_with_indices, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def max_pool2d_indices_unbatched(input: Tensor, *windows: Any, **options: Any) -> tuple[Tensor, Tensor]:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load."""
    if input.dim() != 3:
        return NotImplemented  # type: ignore[no-any-return]
    values, indices = nn.functional.max_pool2d_with_indices(input.unsqueeze(0), *windows, **options)
    return values.squeeze(0), indices.squeeze(0)
