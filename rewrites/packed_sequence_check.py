"""The check of a packed sequence by nn.GRU and nn.RNN -> none.

Math:   the check holds the initial state's size against the first batch size, as a Python number, and the packed data's
        number of axes against 2; see torch_onnx_compat.functional.recurrent for what the data are here.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.GRU.html
"""

from typing import Any

from torch import Tensor, nn

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import Lengths


# The counterpart of pack_padded_sequence_to_padded.
@rewrite(
    "torch.nn.modules.rnn.RNNBase.check_forward_args",
    needed_on=("torchscript", "dynamo"),
    exactness=Exactness.BITWISE,
)
def packed_sequence_check(self: nn.Module, input: Tensor, hidden: Any, batch_sizes: Any) -> None:
    """Lets a layer take padded sequences as a packed one's data."""
    if not isinstance(batch_sizes, Lengths):
        return NotImplemented  # type: ignore[no-any-return]
