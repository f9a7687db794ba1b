"""torch.rnn_tanh of any length -> one layer after the other.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.RNN.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import of_call


# torch.export unrolls the steps, and fixes their number.
@rewrite(torch.rnn_tanh, needed_on=("dynamo",), exactness=Exactness.ROUNDING)
def rnn_tanh_of_any_length(*args: Any) -> Any:
    """Plain recurrent layers with tanh, one node for each.

    Declines: dropout between the layers in training mode.
    """
    return of_call("Tanh", args, packed=False)
