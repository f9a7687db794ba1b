"""torch.lstm of packed sequences -> one layer after the other.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import of_call


# The counterpart of pack_padded_sequence_to_padded.
@rewrite(torch.lstm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def lstm_of_packed(*args: Any) -> Any:
    """LSTM over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return of_call("LSTM", args, packed=True)
