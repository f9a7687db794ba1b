"""Numbers made of sizes that an operator takes as a plain float: torch.export holds the example's, and says nothing.

The values here are such that the example's number and the right one yield the same within any tolerance: no comparison
of outputs finds these.
"""

import numpy as np
import onnxruntime
import pytest
import torch
from symbolic_runs import Module
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.internals import number_watchers

TAKEN = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=x.shape[1] * 1e-6),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(9), torch.ones(9), eps=x.shape[0] * 1e-6),
    "nan_to_num": lambda x: torch.nan_to_num(x, x.shape[1] * 0.1),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(1), eps=x.shape[1] * 1e-5),
    "nan_to_num of a float": lambda x: torch.nan_to_num(x, float(x.shape[1]) * 0.1),
}
MADE = {
    "clamp": lambda x: x.clamp(min=x.shape[1] * 1e-5),
    "clamp of a float": lambda x: x.clamp(min=float(x.shape[1] * 1e-5)),
    "lerp": lambda x: torch.lerp(x, x * 2, x.shape[1] * 1e-5),
    "threshold": lambda x: F.threshold(x, x.shape[1] * 1e-6, 0.0),
}


def export(function, axis=1, **kwargs):
    x = torch.randn(5, 9)
    options = {"input_names": ["x"], "dynamic_axes": {"x": {axis: "n"}}, "exporter": "dynamo"}
    return export_compat(Module(function).eval(), (x,), **options, **kwargs)


@pytest.mark.parametrize("name", TAKEN)
def test_what_an_operator_takes_is_not_frozen(name):
    axis = 0 if name == "batch_norm" else 1
    with pytest.raises(CompatError, match=r"dynamo would freeze .*ToFloat\(n\).* at its value for the example: .*:\d+"):
        export(TAKEN[name], axis)


def test_the_caller_may_accept_it():
    with pytest.raises(CompatError) as error:
        export(TAKEN["nan_to_num"])
    place = str(error.value).partition("for the example: ")[2].partition(". ")[0]
    model = export(TAKEN["nan_to_num"], allow_baked=[place]).model_bytes
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    result = session.run(None, {"x": np.full((5, 20), np.nan, np.float32)})[0]
    np.testing.assert_allclose(result, 0.9, rtol=1e-6)


@pytest.mark.parametrize("name", MADE)
def test_what_the_file_computes_is_right(name):
    model = export(MADE[name]).model_bytes
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    for size in (1, 9, 64):
        x = torch.randn(5, size) * 1e-4
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], MADE[name](x), rtol=1e-5, atol=1e-12)


def test_a_static_model_is_exported():
    x = torch.randn(5, 9)
    assert export_compat(Module(TAKEN["layer_norm"]).eval(), (x,), exporter="dynamo").model_bytes


def test_torch_is_left_as_it_was():
    from torch.fx.experimental.sym_node import SymNode

    before = dict(vars(SymNode))
    with pytest.raises(CompatError):
        export(TAKEN["nan_to_num"])
    assert dict(vars(SymNode)) == before


def test_torch_loses_values_where_they_are_watched():
    """Fails where torch computes with symbolic floats in another way: then `watch_lost_values` has to move."""
    lost = []

    class Loses(nn.Module):
        def forward(self, x):
            value = x.sum().item()
            return x + value * 0 + (value - value) if value == value else x * value

    with number_watchers.watch_lost_values(lambda: lost.append(1)):
        torch.export.export(Loses(), (torch.randn(9),), strict=False)
    assert len(lost) >= 3


def test_a_value_that_the_model_has_checked_may_decide():
    def checked(x):
        value = x.abs().sum().item()
        torch._check(value >= 0)
        return x * value if value >= 0 else x

    assert export(checked).table


def test_torch_asks_for_floats_where_they_are_watched():
    """Fails where torch makes a float of a symbolic one in another way: then `watch_plain_numbers` has to move."""
    found = []

    class Asks(nn.Module):
        def forward(self, x):
            return torch.nan_to_num(x, x.shape[0] * 0.1) + float(x.shape[0] * 0.2)

    with number_watchers.watch_plain_numbers(lambda *number: bool(found.append(number[:2]))):
        torch.export.export(Asks(), (torch.randn(9),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), strict=False)
    assert len(set(map(str, found))) == 2
