"""torch.chunk of a quantized tensor -> that of its numbers, quantized again.

Math:   rounding to a step gives a number that is one back.
Source: https://docs.pytorch.org/docs/stable/generated/torch.chunk.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.chunk, needed_on=("torchscript",), exactness=Exactness.BITWISE)
def chunk_of_quantized(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of a tensor of one scale, which stock TorchScript takes apart as if it were its integers alone."""
    if not input.is_quantized or input.qscheme() is not torch.per_tensor_affine:
        return NotImplemented  # type: ignore[no-any-return]
    pieces = input.dequantize().chunk(chunks, dim)
    return tuple(
        torch.quantize_per_tensor(piece, input.q_scale(), input.q_zero_point(), input.dtype) for piece in pieces
    )
