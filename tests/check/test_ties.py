"""An axis that the model takes other sizes of only together with another: the error says how to say so."""

import pytest
import torch

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError


def halved(fine, coarse):
    return fine + coarse.repeat_interleave(2, 1)


def advantages(rewards, values):
    return rewards + 0.9 * values[:, 1:] - values[:, :-1]


def cached(query, past, mask):
    keys = torch.cat([past, query], 1)
    return (query @ keys.mT + mask).softmax(-1) @ keys


def captioned(pictures, texts):
    return pictures[:, None] * texts.view(pictures.shape[0], 3, 4)


PAIRS = [
    (halved, (torch.randn(2, 6), torch.randn(2, 3)), {"fine": {1: "h"}, "coarse": {1: "half"}}, "fine", {1: "2*half"}),
    (halved, (torch.randn(2, 6), torch.randn(2, 3)), {"coarse": {1: "b"}, "fine": {1: "a"}}, "fine", {1: "2*b"}),
    (
        *(halved, (torch.randn(2, 6), torch.randn(2, 3))),
        *({"fine": {1: ("h", 4, 32)}, "coarse": {1: ("half", 2, 16)}}, "fine", {1: "2*half"}),
    ),
    (
        *(advantages, (torch.randn(2, 5), torch.randn(2, 6))),
        *({"rewards": {1: "t"}, "values": {1: "more"}}, "values", {1: "t + 1"}),
    ),
    (
        *(cached, (torch.randn(1, 4, 4), torch.randn(1, 3, 4), torch.randn(1, 4, 7))),
        *({"query": {1: "q"}, "past": {1: "p"}, "mask": {1: "q", 2: "all"}}, "mask", {2: "q + p"}),
    ),
    (
        *(cached, (torch.randn(1, 2, 4), torch.randn(1, 3, 4), torch.randn(1, 2, 5))),
        *({"query": {1: "q"}, "past": {1: "p"}, "mask": {1: "q", 2: "all"}}, "mask", {2: "q + p"}),
    ),
    (
        *(captioned, (torch.randn(2, 4), torch.randn(6, 4))),
        *({"pictures": {0: "batch"}, "texts": {0: "texts"}}, "texts", {0: "3*batch"}),
    ),
]


@pytest.mark.one_exporter
@pytest.mark.parametrize(("model", "args", "dynamic", "name", "axis"), PAIRS)
def test_the_error_names_a_tie(model, args, dynamic, name, axis, exporter):
    with pytest.raises(CompatError) as caught:
        export_compat(model, args, dynamic=dynamic, exporter=exporter)
    assert f"dynamic={{{name!r}: {axis}, ...}}" in str(caught.value)
    assert "leave the axis out" not in str(caught.value)
    declared = {**dynamic, name: {**dynamic[name], **axis}}
    result = export_compat(model, args, dynamic=declared, exporter=exporter)
    assert all(len(proof.tried) > 1 for proof in result.axes)


def fixed(x, y):
    return x.reshape(6, 2) + y.sum()


def test_no_tie_is_made_up():
    args = torch.randn(3, 4), torch.randn(6)
    with pytest.raises(CompatError, match=r"leave the axis out|came out fixed") as caught:
        export_compat(fixed, args, dynamic={"x": {0: "rows"}, "y": {0: "more"}}, exporter="torchscript")
    assert "it takes others" not in str(caught.value)
