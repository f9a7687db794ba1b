"""Calls that entries and repairs write otherwise, and torch's recurrent layers: in branches and in bodies of loops."""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat


def chooses_truth(x):
    state = torch.zeros(x.shape[0], dtype=torch.bool)
    for step in range(x.shape[1]):
        state = torch.where(state, x[:, step] > 0.2, x[:, step] > 0.6)
    return state


def chooses_by_method(x):
    state = torch.zeros(x.shape[0], dtype=torch.bool)
    for step in range(x.shape[1]):
        state = (x[:, step] > 0.2).where(state, x[:, step] > 0.6)
    return state


def fills_truth(x):
    kept = torch.ones(x.shape[1], dtype=torch.bool)
    for step in range(x.shape[1]):
        kept = kept.masked_fill((x[0] < x[0, step]) & kept[step], False)
    return kept


def while_truth(x):
    state, step = torch.zeros(x.shape[0], dtype=torch.bool), 0
    while step < x.shape[1] - 1 and x[:, step].sum() < 1.5:
        state = torch.where(x[:, step] > 0.4, x[:, step] > 0.5, x[:, step] > 0.6) | state
        step += 1
    return state


def roots_of_integers(x):
    state = torch.zeros(x.shape[0])
    for step in range(x.shape[1]):
        state = state + (x[:, step] * 10).long().sqrt() + 0.5 * (x[:, step] * 10).long()
    return state


def truth_in_branch(x):
    if x.sum() > 6:
        ranks = x.sort(1)[0]
        return torch.where(ranks > 0.3, ranks > 0.5, x < 0.1).nonzero()
    return (x > 0.5).nonzero()


def inner_loop(x):
    state = torch.zeros(x.shape[0], dtype=torch.bool)
    for step in range(x.shape[1]):
        for other in range(x.shape[1]):
            state = torch.where(x[:, step] > x[:, other], ~state, x[:, other] > 0.6)
    return state


MODELS = [
    chooses_truth, chooses_by_method, fills_truth, while_truth, roots_of_integers, truth_in_branch, inner_loop
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_is_right(model, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    export_compat(model, torch.rand(2, 6), path, dynamic={"x": {1: "steps"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for steps in (1, 2, 3, 6, 9, 20):
        torch.manual_seed(steps)
        x = torch.rand(2, steps)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))


class StepByStep(nn.Module):
    """A layer that looks whether its weights were replaced, as torch.export replaces them."""

    def __init__(self, kind):
        super().__init__()
        self.layer = kind(4, 5)

    def forward(self, x, state):
        both, found = state, []
        if isinstance(self.layer, nn.LSTM):
            both = (state, state * 2)
        for step in range(x.shape[0]):
            y, both = self.layer(x[step : step + 1], both)
            found.append(y)
        return torch.cat(found)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layer_in_a_loop(kind, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    torch.manual_seed(0)
    model, state = StepByStep(kind).eval(), torch.randn(1, 2, 5)
    export_compat(model, (torch.randn(3, 2, 4), state), path, dynamic={"x": {0: "steps"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for steps in (1, 2, 7):
        x = torch.randn(steps, 2, 4)
        found = session.run(None, {"x": x.numpy(), "state": state.numpy()})[0]
        torch.testing.assert_close(torch.from_numpy(found), model(x, state), rtol=1e-4, atol=1e-5)
