"""F.max_pool2d of (C, H, W) -> that of (1, C, H, W).

Math:   a batch of one.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, decline, rewrite


@rewrite(nn.functional.max_pool2d, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def max_pool2d_unbatched(input: Tensor, *windows: Any, **options: Any) -> Tensor:
    """Pools an image without a batch axis, for which stock TorchScript writes a file that does not load.

    Declines: integers, which onnxruntime does not pool.
    """
    if not input.is_floating_point():
        decline(f"{str(input.dtype)[6:]} cannot be pooled in onnxruntime; convert to float32 before")
    if input.dim() != 3:
        return NotImplemented  # type: ignore[no-any-return]
    pooled: Tensor = nn.functional.max_pool2d(input.unsqueeze(0), *windows, **options).squeeze(0)
    return pooled
