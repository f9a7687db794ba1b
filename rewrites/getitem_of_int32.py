"""x[i] with an index of int32 -> x[i] with one of int64.

Math:   the same numbers. GatherND takes int64 only.
Source: https://onnx.ai/onnx/operators/onnx__GatherND.html
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.Tensor.__getitem__, needed_on=("dynamo",), exactness=Exactness.BITWISE)
def getitem_of_int32(self: Tensor, key: Any) -> Tensor:
    """Reads at places; stock dynamo hands the index on as it is, into files that no engine loads."""
    keys = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(k, Tensor) and k.dtype == torch.int32 and k.dim() for k in keys):
        return NotImplemented  # type: ignore[no-any-return]
    wide = tuple(k.to(torch.int64) if isinstance(k, Tensor) and k.dtype == torch.int32 else k for k in keys)
    return self[wide]
