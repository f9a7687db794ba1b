"""pack_padded_sequence -> the padded sequences themselves, and their lengths.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pack_padded_sequence.html
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import Lengths


# torch.export cannot capture the packing; TorchScript loses padding_value and total_length, or freezes the lengths.
@rewrite(
    "torch.nn.utils.rnn.pack_padded_sequence",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def pack_padded_sequence_to_padded(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs sequences (T, N, ...), or (N, T, ...), for a recurrent layer or pad_packed_sequence."""
    data = input.transpose(0, 1) if batch_first else input
    if isinstance(lengths, Tensor):
        whole = lengths if lengths.dtype == torch.int64 else lengths.to(torch.int64)
        return PackedSequence(data, Lengths(whole, data.shape[1]))  # type: ignore[arg-type]
    known = [int(length) for length in lengths]
    table = torch.tensor(known, dtype=torch.int64, device=input.device)
    return PackedSequence(data, Lengths(table, data.shape[1], known))  # type: ignore[arg-type]
