"""torch.fft.fftfreq -> the numbers from 0 up, less the length in the second half, over the length.

Math:   k / (n d) for k = 0, ..., ceil(n / 2) - 1, -floor(n / 2), ..., -1.
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.fftfreq.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.fft.fftfreq, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def fftfreq_to_where(n: Any, d: Any = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """Frequencies of fft's results; stock dynamo has no translation of it."""
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    numbers = torch.arange(n, device=options.get("device"))
    signed = torch.where(numbers < (n + 1) // 2, numbers, numbers - n)
    result: Tensor = signed.to(options.get("dtype") or torch.get_default_dtype()) * (1 / (n * d))
    return result
