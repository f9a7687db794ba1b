"""Sizes that the model refuses for the values of its whole numbers are tried with others that fit."""

import numpy as np
import onnxruntime as ort
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.inputs.dynamic import with_axes
from torch_onnx_compat.inputs.fit import Fit, fits
from torch_onnx_compat.inputs.inputs import bind
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import prepare

SIZES = (1, 2, 3, 4, 5, 6, 9)


class Rows(nn.Module):
    def forward(self, x, i):
        y = x[i]
        return y * 7 if x.shape[0] == 2 else y


class LastStep(nn.Module):
    def forward(self, x, i):
        x = x.clone()
        x[i] += 1.0
        return x.std(0) if x.shape[0] > 1 else x.sum(0)


class OnOneSide(nn.Module):
    def forward(self, x, i):
        return x[i].sum(0) if x.shape[0] == 3 else x.sum(0) * 2


class Asserted(nn.Module):
    def forward(self, x, i):
        assert int(i.max()) < x.shape[0], "no such row"
        y = x.gather(0, i[:, None].expand(-1, 3))
        return -y if x.shape[0] == 3 else y


class Numbered(nn.Module):
    def forward(self, x, i):
        y = x[: i.max().item() + 1].sum(0)
        return y * 2 if x.shape[0] == 3 else y


class Strided(nn.Module):
    """Its rows are every other one."""

    def forward(self, x, i):
        y = x[::2][i // 2]
        return -y if x.shape[0] == 4 else y


class Edges(nn.Module):
    """Its second condition is written with a not, which a trace asks twice."""

    def forward(self, x, i):
        y = x.sum(0)
        if not x.shape[0] - 2:
            y = torch.zeros_like(x).index_add(0, i, x.new_ones(i.shape[0], 3)).sum(0) + x[-1]
        return y


class Packed(nn.Module):
    def forward(self, x, i):
        lengths = (i + 1).sort(descending=True).values
        rows = nn.utils.rnn.pack_padded_sequence(x[None].expand(3, -1, -1), lengths, batch_first=True)
        y = nn.utils.rnn.pad_packed_sequence(rows, batch_first=True, total_length=x.shape[0])[0].sum(1)
        return -y if x.shape[0] == 2 else y


class Bags(nn.Module):
    def forward(self, x, i):
        starts = torch.cat([i[:1] * 0, i[1:].sort().values])
        y = F.embedding_bag(torch.arange(x.shape[0]), x, starts, mode="sum")
        return -y if x.shape[0] == 3 else y


@pytest.mark.one_exporter
@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("model", [Rows, LastStep, OnOneSide, Asserted, Numbered, Strided, Edges, Packed, Bags])
def test_the_other_side_of_few_rows(model, exporter, tmp_path):
    path = str(tmp_path / "model.onnx")
    x, i = torch.randn(6, 3), torch.tensor([5, 1, 4])
    result = export_compat(model().eval(), (x, i), path, dynamic={"x": {0: "rows"}}, exporter=exporter)
    assert not any("not tried at" in note for note in result.notes)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows in SIZES:
        x, i = torch.randn(rows, 3), torch.randint(0, rows, (3,))
        (found,) = session.run(None, {"x": x.numpy(), "i": i.numpy()})
        np.testing.assert_allclose(found, model()(x, i).numpy(), rtol=1e-4, atol=1e-5, err_msg=f"{rows} rows")


def inputs(rows, numbers, **dynamic):
    return with_axes(bind(Rows(), (rows, numbers), None, None), dynamic, None, None)


@pytest.mark.parametrize(
    ("limit", "is_length", "numbers", "fitted"),
    [
        (2, False, [5, 0, 3, 1], [1, 0, 1, 1]),
        (2, True, [5, 0, 3, 1], [2, 0, 2, 1]),
        (2, False, [1, 3, 4, 5], [0, 1, 1, 1]),
        (3, True, [6, 4, 4, 1], [3, 3, 3, 1]),
        (2, False, [-1, 5, -6, 0], [-1, 1, -2, 0]),
        (1, False, [5, 0, 3, 1], [0, 0, 0, 0]),
    ],
)
def test_ways_to_fit(limit, is_length, numbers, fitted):
    example = inputs(torch.randn(6, 3), torch.tensor(numbers), x={0: "rows"})
    found = Fit(limit, is_length).of(example)
    assert found.tensors[0] is example.tensors[0]
    assert found.tensors[1].tolist() == fitted


def test_nothing_to_fit():
    rows, numbers = torch.randn(6, 3), torch.tensor([5, 0])
    assert not list(fits(inputs(rows, numbers, x={0: "rows"})))
    assert not list(fits(inputs(rows, numbers, x={0: "rows"}).at_sizes({"rows": 9})))
    assert not list(fits(inputs(rows, torch.randn(2), x={0: "rows"}).at_sizes({"rows": 2})))
    assert not list(fits(inputs(rows, numbers > 3, x={0: "rows"}).at_sizes({"rows": 2})))
    assert not list(fits(inputs(rows, numbers.clamp(max=0), x={0: "rows"}).at_sizes({"rows": 2})))


def test_the_model_is_asked_once_for_each_sizes(monkeypatch):
    observation = Observation(prepare(Rows(), (torch.randn(6, 3), torch.tensor([5, 0])), dynamic={"x": {0: "rows"}}))
    run, sizes = observation.run_within, []
    monkeypatch.setattr(observation, "run_within", lambda scope, at: (sizes.append(at.sizes()["rows"]), run(scope, at)))
    assert observation.at_sizes({"rows": 9}).tensors[1].tolist() == [5, 0]
    assert not sizes
    for _ in range(2):
        assert observation.at_sizes({"rows": 2}).tensors[1].tolist() == [1, 0]
        assert sizes == [2, 2]  # as they are, and as rows of 2
    assert observation.accepts(observation.prepared.inputs.at_sizes({"rows": 3}))
    assert not observation.accepts(observation.prepared.inputs.at_sizes({"rows": 0}))
