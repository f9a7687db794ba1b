"""Reductions of what a mask or a slice leaves, which may be nothing: the file's numbers are torch's there, too."""

import numpy as np
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F

from torch_onnx_compat import export_compat
from torch_onnx_compat.graph.emptiness import Emptiness
from torch_onnx_compat.graph.reductions import keep_nothing

X = torch.randn(6, 3, generator=torch.Generator().manual_seed(3))
MASK = torch.tensor([True, False, True, True, False, True])
NOTHING = torch.zeros(6, dtype=torch.bool)

EXPORTERS = pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])

SELECTIONS = {
    "mask": lambda x, mask: x[mask],
    "masked_select": lambda x, mask: torch.masked_select(x, mask[:, None]).view(-1, 3),
    "nonzero": lambda x, mask: x[mask.nonzero().squeeze(1)],
    "count": lambda x, mask: x[: int(mask.sum())],
    "zeros of a count": lambda x, mask: torch.zeros(mask.sum(), 3) + x[:1],
    "slice": lambda x, mask: x[int(mask[0]) + 2 :],
}

X_LIKE = torch.ones(2, 3)


def reduce_all(y):
    """Reductions that give NaN, False or a neutral element for nothing."""
    return (
        *(y.mean(), y.mean(0), y.mean(0, keepdim=True), y.double().mean((0, 1)), y.half().mean(), y.mean(1)),
        *(y.var(), y.var(0), y.std(0, unbiased=False), *torch.var_mean(y, 0), y.sum(0), y.prod(0)),
        *((y > 0).any(), (y > 0).any(0), (y > 0).any(0, keepdim=True), (y > 0).any(1), (y > 0).all(), (y > 0).all(0)),
        *(F.mse_loss(y, y * 2), F.l1_loss(y, y * 2), F.huber_loss(y, y * 2), (X_LIKE @ y.t()).mean(1)),
        *(torch.cat([y, y]).mean(0), torch.cat([y, X_LIKE]).mean(0), y.t()[None, :, :, None].mean((2, 3))),
        *(y.roll(1, 0).mean(0), y.roll(y.shape[0] // 2, 0).mean(0), torch.cat([y[2:], y[1:2]]).mean(0)),
        *(torch.isin(torch.arange(2), y[:, 0].long()), (torch.cdist(X_LIKE, y) < 1).any(1)),
    )


def assert_agrees(model, result, *cases):
    for x, mask in cases:
        given = {"x": x, "mask": mask}
        session = result.session()
        found = session.run(None, {i.name: given[i.name].numpy() for i in session.get_inputs()})
        wanted = [t.numpy() for t in model(x, mask)]
        for i, (one, other) in enumerate(zip(wanted, found, strict=True)):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, 1e-3, 1e-5, err_msg=f"output {i} of {mask}")


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@EXPORTERS
@pytest.mark.parametrize("name", SELECTIONS)
def test_reductions_of_nothing(name, exporter):
    select = SELECTIONS[name]

    def model(x, mask):
        return reduce_all(select(x, mask))

    dynamic = {"x": {0: "n"}, "mask": {0: "n"}}
    result = export_compat(model, (X, MASK), dynamic=dynamic, exporter=exporter)
    cases = [(X, MASK), (X, ~NOTHING), (X, NOTHING), (X[:2], MASK[:2]), (X[:1], NOTHING[:1]), (X[:1], MASK[:1])]
    assert_agrees(model, result, *cases)


@EXPORTERS
def test_nothing_below_a_threshold(exporter):
    def model(x, mask):
        few = x[x[:, 0] > 0.5]
        return few.mean(0), (few > 0).any(), few[mask[: few.shape[0]]].mean()

    result = export_compat(model, (X, MASK), dynamic={"x": {0: "n"}, "mask": {0: "n"}}, exporter=exporter)
    assert_agrees(model, result, (X, MASK), (X.abs() + 1, MASK), (-X.abs(), MASK), (X.abs() + 1, NOTHING))


@EXPORTERS
def test_other_reductions_stay_as_they_are(exporter):
    def model(x):
        n, _, h, w = x.shape
        slices = torch.cat([x[..., ::2, ::2], x[..., 1::2, 1::2]], 1)
        places = torch.arange(h * w).view(h, w) + torch.zeros(h, w)
        return (
            *(x.mean((2, 3)), x.flatten(2).mean(-1), x.var((2, 3)), (x > 0).any(3), slices.mean((2, 3))),
            *((x * places).mean((2, 3)), x.expand(n, 3, h, w).mean((2, 3)), x[:, :, :4].mean(2)),
            *(x[:, 1:].mean(1), x[:, :, -3:].mean((2, 3)), x.flip(2).mean(2)),
            *(
                x.roll((-3, 2), (2, 3)).mean((2, 3)),
                x.roll(h // 2, 2).mean(2),
                torch.cat([x[:, :, 9:], x[:, :, :9]], 2).mean(2),
            ),
        )

    x = torch.randn(2, 3, 8, 8)
    dynamic = {"x": {0: "n", 2: "h", 3: "w"}}
    assert "Size" not in export_compat(model, (x,), dynamic=dynamic, exporter=exporter, verify=False).nodes


LOOP = """<ir_version: 9, opset_import: ["" : 18]>
agraph (float[n] x, int64 rounds) => (float result)
<bool true = {1}, int64[1] one = {1}, int64[1] end = {9223372036854775807}> {
    cut = Loop (rounds, true, x) <body = round (int64 i, bool c, float[k] a) => (bool d, float[l] b) {
        d = Identity(c)
        b = Slice(a, one, end)
    }>
    result = ReduceMean<keepdims = 0>(cut)
}"""


@pytest.mark.parametrize(("text", "is_mended"), [(LOOP, True), (LOOP.replace("Slice(a, one, end)", "Neg(a)"), False)])
def test_what_the_rounds_of_a_loop_shorten_may_be_empty(text, is_mended):
    model = ir.from_onnx_text(text)
    assert Emptiness(model).may_be_empty(model.graph.node(0).outputs[0]) == is_mended
    keep_nothing(model)
    assert ("Size" in [node.op_type for node in model.graph]) == is_mended
