"""torch.fft.rfftfreq -> the numbers from 0 up, over the length.

Math:   k / (n d) for k = 0, ..., floor(n / 2).
Source: https://docs.pytorch.org/docs/stable/generated/torch.fft.rfftfreq.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.fft.rfftfreq, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def rfftfreq_to_arange(n: Any, d: Any = 1.0, *, out: Tensor | None = None, **options: Any) -> Tensor:
    """Frequencies of rfft's results; stock dynamo has no translation of it."""
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    dtype = options.get("dtype") or torch.get_default_dtype()
    result: Tensor = torch.arange(n // 2 + 1, device=options.get("device")).to(dtype) * (1 / (n * d))
    return result
