"""Batch norms of untrained models: a net in which features grow is built calmly, and every other stays as it is."""

import copy

import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat.zoo import weights
from torch_onnx_compat.zoo.norms import MANNERS, amplification
from torch_onnx_compat.zoo.weights import build_with_seed

WIDTH = 48


class Excited(nn.Module):
    """Three branches, each normalised, and a gate from the whole picture, as in repvgg_d2se."""

    def __init__(self) -> None:
        super().__init__()
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(WIDTH, WIDTH, k, padding=k // 2), nn.BatchNorm2d(WIDTH)) for k in (1, 3)
        )
        self.branches.append(nn.BatchNorm2d(WIDTH))
        self.gate = nn.Sequential(nn.Conv2d(WIDTH, 8, 1), nn.ReLU(), nn.Conv2d(8, WIDTH, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        x = sum(branch(x) for branch in self.branches)
        return torch.relu(x * self.gate(x.mean((2, 3), keepdim=True)))


def deep() -> nn.Module:
    stem, end = nn.Conv2d(3, WIDTH, 3, 2, 1), (nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return nn.Sequential(stem, *[Excited() for _ in range(40)], *end, nn.Linear(WIDTH, 9))


def shallow() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, WIDTH, 3), *[Excited() for _ in range(3)], nn.AdaptiveAvgPool2d(1), nn.Flatten())


PICTURES = torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(0))
FRESH = torch.randn(6, 3, 12, 12, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def calm() -> nn.Module:
    return build_with_seed(deep, (PICTURES,))


def rounding_error(model: nn.Module) -> float:
    """Of float32 on pictures that the model was not measured on, relative to the spread of the outputs."""
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(FRESH.double())
        return float((model(FRESH) - exact).abs().max() / exact.std())


def test_as_it_is_the_net_grows_without_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "MANNERS", MANNERS[:1])
    model = build_with_seed(deep, (PICTURES,))
    with torch.no_grad():
        assert amplification(model, (PICTURES,), {}) > 1
    assert model(FRESH).std() > 100
    assert rounding_error(model) > 1e-4


def test_it_is_built_calmly(calm: nn.Module) -> None:
    with torch.no_grad():
        assert amplification(calm, (PICTURES,), {}) <= 1
    assert rounding_error(calm) < 1e-5
    assert calm(FRESH).std() < 2


def test_a_calm_output_depends_on_the_picture(calm: nn.Module) -> None:
    with torch.no_grad():
        outputs = calm(FRESH)
    assert float(outputs.std(dim=0).mean() / outputs.std()) > 0.2


@pytest.mark.parametrize("block", [1, 20, 40])
def test_a_calm_output_depends_on_every_layer(calm: nn.Module, block: int) -> None:
    broken = copy.deepcopy(calm)
    with torch.no_grad():
        broken[block].branches[1][0].weight[0] *= 2
        off = (broken(FRESH) - calm(FRESH)).abs().max() / calm(FRESH).abs().max()
    assert float(off) > 0.01  # what the check allows for noise, at most


def test_others_keep_their_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = build_with_seed(shallow, (PICTURES,)).state_dict()
    monkeypatch.setattr(weights, "MANNERS", MANNERS[:1])
    then = build_with_seed(shallow, (PICTURES,)).state_dict()
    assert all(torch.equal(now[name], then[name]) for name in then)


def test_another_selection_is_no_amplification() -> None:
    class Selecting(nn.Module):
        """Normalises rows that it sorts by scores which a rounding changes."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.BatchNorm2d(3), nn.BatchNorm1d(3)

        def forward(self, x: Tensor) -> Tensor:
            rows = self.first(x).permute(0, 2, 3, 1).flatten(0, 2)
            scores = (rows * 1e7).cos().sum(1)
            return self.second(rows[scores.argsort()])

    with torch.no_grad():
        assert amplification(Selecting().eval(), (PICTURES,), {}) < 0.1
