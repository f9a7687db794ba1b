"""What training leaves in a model: checkpoints, dropout and parametrizations of weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import ParametrizationList

from torch_onnx_compat import Exactness, decline, decomposition, rewrite

_OPTIONS = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
    | {"respect_saved_tensors_hooks"}
)
"""Arguments of checkpoint itself; the function gets all others."""


# A checkpoint keeps random states and hooks around the call, and with use_reentrant=True it is an autograd Function,
# whose forward our traces run: the file is right without this entry, too, but the trace has all of that in it.
@rewrite("torch.utils.checkpoint.checkpoint", needed_on=("torchscript",), exactness=Exactness.BITWISE)
def checkpoint_to_call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls the function that is checkpointed; a file holds no gradients.

    Math: checkpointing forgets activations and computes them again for the gradient; the result is the function's own.
    Source: https://docs.pytorch.org/docs/stable/checkpoint.html
    """
    return function(*args, **{name: value for name, value in kwargs.items() if name not in _OPTIONS})


@decomposition(
    (torch.dropout, torch.alpha_dropout, torch.feature_dropout, torch.feature_alpha_dropout),
    needed_on=("torchscript", "dynamo"),
)
def dropout_in_training(input: Tensor, p: float, train: bool) -> Tensor:
    """Names dropout as the obstacle where an export fails on it or its numbers differ.

    Declines: training, since a file cannot draw the numbers that torch draws. Where nothing is dropped, the call is
    left to torch.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.dropout.html
    """
    if not train or not p:
        return NotImplemented
    decline("random numbers differ from run to run; export in eval mode, or multiply by a mask that is an input")


class FixedWeight(nn.Module):
    """A weight as its parametrizations have computed it."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self) -> Any:
        """The weight."""
        return self.weight


def _holds_no_state(part: nn.Module) -> bool:
    """Whether a part of a parametrization is torch's own, or has nothing but parameters and modules."""
    is_torchs = type(part).__module__.startswith("torch.nn.utils.param")
    return is_torchs or not (part._buffers or vars(part).keys() - vars(nn.Module()).keys())


# Exporters translate the parametrization anew at each use of the weight, and lack what some of them are made of:
# torch.nn.utils.parametrizations.orthogonal takes matrix_exp, householder_product or a solution of linear equations.
@rewrite(ParametrizationList, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def parametrized_weight_to_constant(module: nn.Module) -> nn.Module:
    """Computes a weight from its parametrizations once, as nothing else changes it in eval mode.

    Left alone are train mode, in which spectral_norm goes on at every use, and parametrizations of the user's own that
    hold attributes or buffers: forward may change these.

    Source: https://docs.pytorch.org/tutorials/intermediate/parametrizations.html
    """
    if module.training or not all(map(_holds_no_state, module.modules())):
        return NotImplemented
    with torch.no_grad():
        return FixedWeight(module().clone())
