"""pad_packed_sequence -> what lies beyond the lengths is overwritten, and cut off or added to.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.utils.rnn.pad_packed_sequence.html
"""

from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from torch_onnx_compat import Exactness, decline, rewrite
from torch_onnx_compat.functional.recurrent import Lengths, padded


# The counterpart of pack_padded_sequence_to_padded.
@rewrite(
    "torch.nn.utils.rnn.pad_packed_sequence",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def pad_packed_sequence_to_mask(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> tuple[Tensor, Tensor]:
    """Padded sequences (T, N, ...), or (N, T, ...), and their lengths.

    Declines: sequences that pack_padded_sequence did not pack.
    """
    lengths: Any = sequence.batch_sizes
    if not isinstance(lengths, Lengths):
        decline("the sequences must have been packed by pack_padded_sequence")
    output = padded(sequence.data, lengths, padding_value, total_length)
    return output.transpose(0, 1) if batch_first else output, lengths.lengths
