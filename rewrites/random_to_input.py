"""torch.rand, bernoulli, multinomial and their kin -> declined, with what to do instead.

Math:   what is drawn in the file cannot be what was drawn in torch.
Source: https://docs.pytorch.org/docs/stable/torch.html#random-sampling
"""

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat import decline, rewrite


@rewrite(
    (
        *(torch.rand, torch.randn, torch.randint, torch.randperm, torch.rand_like, torch.randn_like),
        *(torch.randint_like, torch.normal, torch.bernoulli, torch.multinomial, torch.poisson, torch.binomial),
        *(Tensor.normal_, Tensor.uniform_, Tensor.random_, Tensor.exponential_, Tensor.geometric_),
        *(Tensor.log_normal_, Tensor.cauchy_),
    ),
    needed_on=("torchscript", "dynamo"),
)
def random_to_input(*_: Any, **__: Any) -> Tensor:
    """Names random numbers as the obstacle where an export fails on them or its numbers differ.

    Declines: always; a file that draws its own numbers passes with verify=False where the exporter can write it.
    """
    decline("random numbers differ from run to run; draw them outside and pass them to the model as an input")
