"""LSTM, GRU and RNN of float64 -> declined, with what to do instead.

Math:   onnxruntime computes the three operators in float32, and LSTM and GRU in float16 too.
Source: https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import decline, rewrite


@rewrite((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu), needed_on=("torchscript", "dynamo"))
def float64_recurrent(*args: Any) -> Any:
    """Says of recurrent layers of float64 that onnxruntime does not run them, and what can be done.

    Declines: always; the file passes with verify=False, for an engine that does run them.
    """
    if not isinstance(args[0], Tensor) or args[0].dtype != torch.float64:
        return NotImplemented
    decline(
        "onnxruntime runs no recurrent layer in float64; cast the layer and what it gets to float32, as in "
        "layer.float() and x.float()"
    )
