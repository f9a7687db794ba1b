"""torch.isin -> comparison with every test element.

Math:   x is in t if x == t_j for any j; NaN is in nothing.
Source: https://docs.pytorch.org/docs/stable/generated/torch.isin.html
"""

import torch
from torch import Tensor

from torch_onnx_compat import Exactness, rewrite


@rewrite(torch.isin, needed_on=("torchscript", "dynamo"), exactness=Exactness.BITWISE)
def isin_to_equal(
    elements: Tensor | float,
    test_elements: Tensor | float,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Whether each element is among the test elements; neither exporter has it.

    As much memory as elements times test elements is needed.
    """
    if out is not None:
        return NotImplemented  # type: ignore[no-any-return]
    if not isinstance(test_elements, Tensor):
        found = torch.as_tensor(elements) == test_elements
    else:
        one = elements.unsqueeze(-1) if isinstance(elements, Tensor) else elements
        found = (test_elements.reshape(-1) == one).any(-1)
    return ~found if invert else found
