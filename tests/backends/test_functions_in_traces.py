"""What the forward of an autograd Function records in a TorchScript trace is its own."""

import pytest
import torch

from torch_onnx_compat import export_compat


def function_of(forward):
    return type("Made", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: forward(x))})


FORWARDS = {
    "running sum": lambda x: x.cumsum(-1),
    "thresholds": lambda x: x.sort(-1, descending=True)[0].cumsum(-1) - 1,
    "softmax": lambda x: x.softmax(-1),
    "many": lambda x: x.repeat(1, 4).cumsum(-1),
}


@pytest.mark.parametrize("name", FORWARDS)
def test_entries_ask_for_sizes_inside(name, exporter):
    """An entry asks which sizes of its arguments are fixed, and looks at the example for that."""
    function = function_of(FORWARDS[name])
    result = export_compat(
        lambda x: function.apply(x.sin()), (torch.randn(4, 6),), dynamic={"x": {0: "batch"}}, exporter=exporter
    )
    x = torch.randn(7, 6)
    torch.testing.assert_close(result(x)[0], FORWARDS[name](x.sin()))
