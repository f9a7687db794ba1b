"""torch.lstm with a projection -> without one, by the product of the projection and the weights of the state.

Math:   torch_onnx_compat.functional.recurrent.
Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html
"""

from typing import Any

import torch

from torch_onnx_compat import Exactness, rewrite
from torch_onnx_compat.functional.recurrent import has_projection, of_call


# TorchScript refuses it; the dynamo exporter writes a file that does not run.
@rewrite(torch.lstm, needed_on=("torchscript", "dynamo"), exactness=Exactness.ROUNDING)
def lstm_projection_to_matmul(*args: Any) -> Any:
    """LSTM whose outputs are projected, proj_size > 0.

    Declines: dropout between the layers in training mode.
    """
    return of_call("LSTM", args, packed=False) if has_projection(args) else NotImplemented
