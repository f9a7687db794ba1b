"""Models that differentiate as they run: the file holds the backward pass, and is right at every size."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.internals import derivatives


def gradient(function, x: Tensor, *, create_graph: bool = False) -> Tensor:
    with torch.enable_grad():
        x = x if x.requires_grad else x.detach().requires_grad_()
        return torch.autograd.grad(function(x).sum(), x, create_graph=create_graph)[0]


class Forces(nn.Module):
    """Energy of atoms by their distances, and the force on each."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds, self.filter = nn.Embedding(10, 8), nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8))
        self.out = nn.Sequential(nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 1))
        self.register_buffer("centres", torch.linspace(0, 5, 8))

    def forward(self, kinds: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            places = places.detach().requires_grad_()
            distances = (places[:, None] - places[None]).square().sum(-1).add(1e-6).sqrt()
            weights = self.filter(torch.exp(-((distances[..., None] - self.centres) ** 2)))
            state = self.kinds(kinds)
            energy = self.out(state + (weights * state).sum(1)).sum()
            return energy, -torch.autograd.grad(energy, places)[0]


class Descent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.LayerNorm(8), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = x - 0.1 * gradient(self.energy, x)
        return x


class ForEachRow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(4, 8), nn.Softplus(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.func.vmap(torch.func.grad(lambda row: self.energy(row).sum()))(x)


class Curvature(Descent):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            first = gradient(self.energy, x, create_graph=True)
            return first, torch.autograd.grad(first.square().sum(), x)[0]


class Saliency(nn.Module):
    """Convolutions with stride, padding, dilation and groups, pools, attention's weights of a picture."""

    def __init__(self, pool: nn.Module) -> None:
        super().__init__()
        self.first, self.pool = nn.Conv2d(3, 8, 3, stride=2, padding=1), pool
        self.second = nn.Conv2d(8, 4, (3, 2), padding=2, dilation=2, groups=2)
        self.up, self.norm = nn.ConvTranspose2d(4, 4, 3, stride=2), nn.BatchNorm2d(4)

    def forward(self, x: Tensor) -> Tensor:
        return gradient(lambda x: self.norm(self.up(self.second(self.pool(self.first(x).relu())))).tanh(), x)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return gradient(lambda x: self.layer(x)[..., 0].sigmoid(), x)


ROWS, PICTURE = torch.randn(3, 4), torch.rand(2, 3, 17, 20)
ANY_PICTURE = {"x": {0: "batch", 2: "height", 3: "width"}}
ANY_ATOMS = {"kinds": {0: "atoms"}, "places": {0: "atoms"}}
MODELS = {
    "forces": (Forces(), (torch.randint(0, 10, (5,)), torch.randn(5, 3)), ANY_ATOMS),
    "descent": (Descent(), (ROWS,), "batch"),
    "vmap": (ForEachRow(), (ROWS,), "batch"),
    "second order": (Curvature(), (ROWS,), "batch"),
    "mean pool": (Saliency(nn.AvgPool2d(2)), (PICTURE,), ANY_PICTURE),
    "mean pool of what is there": (Saliency(nn.AvgPool2d(3, 2, 1, count_include_pad=False)), (PICTURE,), ANY_PICTURE),
    "largest of a window": (Saliency(nn.MaxPool2d(2)), (PICTURE,), ANY_PICTURE),
    "attention": (Attention(), (torch.randn(2, 5, 16),), {"x": {0: "batch", 1: "tokens"}}),
}


def at_another_size(tensor: Tensor) -> Tensor:
    if tensor.dim() == 4:
        return torch.rand(1, 3, 30, 23)
    shape = (7, *tensor.shape[1:]) if tensor.dim() < 3 else (4, 9, 16)
    return torch.randint(0, 10, shape) if tensor.dtype is torch.int64 else torch.randn(shape)


FROM = {
    "vmap": ("2.9", "a whole program with vmap is not decomposed"),
    "second order": ("2.10", "the derivative of a derivative fixes the batch"),
    "largest of a window": ("2.10", "max_pool2d_with_indices_backward is not decomposed"),
}
LONG = ("mean pool", "largest of a window", "attention")
"""They take a quarter of a minute each."""
ROWS_OF_MODELS = [
    pytest.param(
        name,
        marks=[
            *([pytest.mark.dynamo_from(*FROM[name])] if name in FROM else []),
            *([pytest.mark.slow] if name in LONG else []),
        ],
    )
    for name in MODELS
]


@pytest.mark.parametrize("name", ROWS_OF_MODELS)
def test_the_file_holds_the_backward_pass(name: str) -> None:
    model, args, dynamic = MODELS[name]
    model = model.eval()
    result = export_compat(model, args, dynamic=dynamic, exporter="dynamo")
    further = tuple(map(at_another_size, args))
    wanted = model(*further)
    for found, output in zip(result(*further), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert output.abs().max() > 1e-4
        torch.testing.assert_close(found, output.detach(), rtol=1e-3, atol=1e-5)
    assert any("differentiates" in note for note in result.notes)
    assert all(weight.grad is None for weight in model.parameters())


def test_weights_keep_their_names() -> None:
    result = export_compat(Forces().eval(), MODELS["forces"][1], dynamic=ANY_ATOMS)
    names = {weight.name for weight in result.model_proto.graph.initializer}
    assert {"kinds.weight", "centres", "filter.0.bias", "out.2.bias"} <= names


class Scaled(Descent):
    """A decision on a size, between two backward passes."""

    def forward(self, x: Tensor) -> Tensor:
        return gradient(lambda x: self.energy(x) * (2 if x.shape[0] > 4 else 1), x)


def test_a_size_that_decides_within_is_seen() -> None:
    with pytest.raises(CompatError, match="batch=5"):
        export_compat(Scaled().eval(), ROWS, dynamic="batch", exporter="dynamo")


def test_what_has_no_formula_is_named() -> None:
    model = Saliency(nn.AvgPool2d(2, ceil_mode=True)).eval()
    with pytest.raises(CompatError, match="avg_pool2d with ceil_mode=True has no form"):
        export_compat(model, PICTURE, exporter="dynamo")


def test_the_engine_is_put_back() -> None:
    before = torch.autograd._engine_run_backward

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), derivatives.watch_backward(interrupt):
        gradient(torch.square, torch.ones(2))
    assert torch.autograd._engine_run_backward is before


def test_every_backward_pass_is_told() -> None:
    """If torch's functions come to call the engine otherwise, derivatives are no longer seen."""
    told: list[bool] = []
    with derivatives.watch_backward(lambda: told.append(True)):
        gradient(torch.square, torch.ones(2))
        torch.func.grad(lambda x: F.silu(x).sum())(torch.ones(2))
        x = torch.ones(2, requires_grad=True)
        x.square().sum().backward()
    assert len(told) == 3
