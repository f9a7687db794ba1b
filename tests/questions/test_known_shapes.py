"""A run that knows what operators yielded in earlier runs asks what a run asks that knows nothing."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.beside import Beside
from torch_onnx_compat.questions.run import SymbolicRuns, run_symbolically

SIZES = [
    {},
    {"h": 8},
    {"w": 9},
    {"h": 1},
    {"n": 1},
    {"w": 1},
    {"n": 3, "h": 12, "w": 12},
    {"h": 16, "w": 8},
    {"n": 1, "h": 1, "w": 1},
    {"h": 64},
    {"w": 2},
]


def halves(x):
    y = F.max_pool2d(x, 2, ceil_mode=True)
    y = F.interpolate(y, size=x.shape[2:], mode="bilinear")
    return torch.cat([x, y], 1)


def pieces(x):
    first, *others = x.chunk(3, 2)
    return first.sum() + sum(other.sum() for other in others) + x[:, :, ::2].unfold(2, 2, 1).mean()


def branches(x):
    if x.shape[2] % 8 == 0 and x.numel() > 300:
        x = x.reshape(x.shape[0], -1, 8).softmax(1).flatten()
    elif x.shape[2] == x.shape[3]:
        x = x @ x.transpose(2, 3) + x
    return x * 2


def broadcasts(x):
    rows = torch.arange(x.shape[2]).view(-1, 1) + torch.arange(x.shape[3])
    table = torch.ones(1, 1, 8, 1)
    return (x + rows)[..., : x.shape[2]] + (x * table if x.shape[2] in (1, 8) else x)[..., : x.shape[2]]


def windows(x):
    size = 4
    x = F.pad(x, (0, -x.shape[3] % size, 0, -x.shape[2] % size))
    n, c, h, w = x.shape
    y = x.view(n, c, h // size, size, w // size, size).permute(0, 2, 4, 3, 5, 1).reshape(-1, size * size, c)
    return F.scaled_dot_product_attention(y, y, y).reshape(n, -1, c).squeeze(0)


def of_values(x):
    kept = x[x > 0.5]
    return kept.reshape(-1, 1).expand(-1, 2) if kept.numel() > 5 else x


def selects(x):
    index = torch.randint(0, 2, (3,), generator=torch.Generator().manual_seed(0))
    y = x.index_select(1, index).cumsum(2).roll(1, 2).flip(3)
    return torch.stack([y, y.repeat(1, 1, 1, 1)]).mean((0, 3)), y.amax((2, 3)), y.sort(2).values.topk(1, 1)


MODELS = {
    "network": nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.ConvTranspose2d(8, 4, 2, 2), nn.AdaptiveAvgPool2d(2)
    ),
    **{function.__name__: function for function in (halves, pieces, branches, broadcasts, windows, of_values, selects)},
}


def facts(run):
    """All that a run tells. Which operator asks first how memory lies is no matter."""
    return (
        {(q.kind, str(q.expression), *(() if q.chooses_kernel else (q.place, q.operator))) for q in run.questions},
        *(run.obstacle, run.guesses, run.asks_values, run.has_values),
        *(run.read_places, run.value_places, run.rank_places, run.empty_places, run.drops_sizes),
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_the_same_is_asked(name, monkeypatch):
    ran = []

    def run_once(self, func, args, kwargs, plain=Beside._run_once):
        ran.append(func)
        return plain(self, func, args, kwargs)

    monkeypatch.setattr(Beside, "_run_once", run_once)
    model = MODELS[name]
    x = torch.randn(2, 3, 6, 10)
    with export_conditions():
        axes = {"x" if name != "network" else "input": {0: "n", 2: "h", 3: "w"}}
        observation = Observation(prepare(model.eval() if name == "network" else model, (x,), dynamic=axes))
        runs, few, many = SymbolicRuns(observation), 0, 0
        for sizes in SIZES:
            ran.clear()
            tries_without = not runs._asks_values
            knowing = runs.at(sizes)
            few += len(ran)
            ran.clear()
            inputs = observation.fit(runs.inputs_at(sizes))
            fresh = run_symbolically(observation, inputs, try_without=tries_without)
            many += len(ran)
            (asked, *told), (wanted, *facts_of_fresh) = facts(knowing), facts(fresh)
            assert (asked - wanted, wanted - asked, told) == (set(), set(), facts_of_fresh), sizes
    assert few < 0.9 * many
