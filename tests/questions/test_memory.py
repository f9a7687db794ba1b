"""What the model's Python sees of where results lie in memory, which operators decide by sizes and strides."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


def rows(x):
    """Fewer rows the narrower ``x`` is; they lie apart if there are several."""
    return x[: x.shape[1] // 2][::2][::2]


def may_be_viewed(v):
    try:
        v.view(-1)
    except RuntimeError:
        return False
    return True


SEEN = {
    "_is_view": lambda v: v.reshape(-1)._is_view(),
    "_base": lambda v: v.reshape(-1)._base is not None,
    "data_ptr": lambda v: v.reshape(-1).data_ptr() == v.data_ptr(),
    "is_set_to": lambda v: v.contiguous().is_set_to(v),
    "is": lambda v: v.contiguous() is v,
    "id": lambda v: id(v.contiguous()) == id(v),
    "in a list": lambda v: any(one is v for one in (v.contiguous(), v * 2)),
    "an error": may_be_viewed,
}


class Model(nn.Module):
    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def forward(self, x):
        return x * 2 if self.seen(rows(x)) else x - 1


@pytest.mark.parametrize("seen", SEEN.values(), ids=SEEN)
def test_a_file_that_holds_what_memory_told_is_refused(seen, exporter):
    """The answer is another one from ten columns on, where there are five rows as well."""
    with pytest.raises(CompatError, match=r"columns|data pointer|is_set_to"):
        export_compat(Model(seen), torch.randn(3, 5), dynamic={"x": {0: "rows", 1: "columns"}}, exporter=exporter)


@pytest.mark.parametrize("seen", ["_is_view", "is", "an error"])
def test_what_memory_told_is_the_same_at_all_sizes(seen, exporter):
    """Nothing is sliced: any size is contiguous."""
    model = nn.Module()
    model.forward = lambda x: x * 2 if SEEN[seen](x) else x - 1
    result = export_compat(model, torch.randn(3, 5), dynamic={"x": {0: "rows", 1: "columns"}}, exporter=exporter)
    assert result.table
