"""torch.rnn_relu of packed sequences -> one layer after the other.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RNN.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import of_call


# The counterpart of pack_padded_sequence_to_padded.
@rewrite(torch.rnn_relu, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def rnn_relu_of_packed(*args: Any) -> Any:
    """Plain recurrent layers with relu over packed sequences.

    Declines: dropout between the layers in training mode.
    """
    return of_call("Relu", args, packed=True)
