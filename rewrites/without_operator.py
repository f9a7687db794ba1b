"""torch.gcd, nextafter, frexp and their kin -> declined, with what to do instead.

Math:   there is no short sequence of ONNX operators for them.
Source: https://onnx.ai/onnx/operators/
"""

from typing import Any

import torch

from torch_onnx_compat import decline, rewrite


@rewrite(
    (
        *(torch.gcd, torch.lcm, torch.nextafter, torch.frexp, torch.polygamma, torch.special.polygamma),
        *(torch.mvlgamma, torch.special.multigammaln, torch.special.ndtri, torch.special.i1, torch.special.i1e),
        torch.special.zeta,
    ),
    needed_on=("torchscript", "dynamo"),
)
def without_operator(*_: Any, **__: Any) -> Any:
    """Says of functions that neither exporter writes what can be done.

    Declines: always.
    """
    decline("ONNX has nothing for this function; compute its result outside and pass it to the model as an input")
