"""Random weights that hide nothing, and checkpoints that nobody has to trust."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torchvision.ops import FrozenBatchNorm2d

from torch_onnx_compat import CompatError
from torch_onnx_compat.zoo.weights import build_with_seed, load_checkpoint


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(64)
        self.frozen = FrozenBatchNorm2d(64)
        self.layer_norm = nn.LayerNorm(64)
        self.gamma = nn.Parameter(torch.full((64,), 1e-6))
        self.gain = nn.Parameter(torch.zeros(()))
        self.head = nn.Linear(64, 8)
        nn.init.zeros_(self.norm.weight)
        nn.init.zeros_(self.head.weight)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.layer_norm(self.frozen(self.norm(image)).mean((2, 3)))) * self.gain


IMAGES = torch.randn(4, 64, 5, 5, generator=torch.Generator().manual_seed(0)) * 7 + 3


def test_seeded_repeats_itself_and_leaves_torchs_generator_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    first, second = build_with_seed(Net, (IMAGES,)).state_dict(), build_with_seed(Net, (IMAGES,)).state_dict()
    assert torch.equal(torch.rand(3), expected)
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_seeded_leaves_nothing_constant() -> None:
    model = build_with_seed(Net, (IMAGES,))
    assert not model.training
    for name, value in model.state_dict().items():
        if value.numel() > 1:
            assert float(value.float().std()) > 1e-3, name
    state = model.state_dict()
    assert float(state["gain"]) != 0
    assert float(state["gamma"].abs().mean()) > 0.01


@pytest.mark.parametrize("name", ["norm", "frozen"])
def test_scales_and_offsets_are_drawn(name: str) -> None:
    norm = getattr(build_with_seed(Net, (IMAGES,)), name).state_dict()
    assert 0.5 <= float(norm["weight"].min()) < float(norm["weight"].max()) <= 1.5
    assert 0.05 < float(norm["bias"].std()) < 0.2


def test_batch_norms_measure_the_example() -> None:
    norm = build_with_seed(Net, (IMAGES,)).norm
    torch.testing.assert_close(norm.running_mean.mean(), IMAGES.mean(), rtol=0.1, atol=0)
    moment = IMAGES.square().mean()
    assert 0.3 * moment < norm.running_var.min() < norm.running_var.max() < 2 * moment
    assert norm._forward_pre_hooks == {}


@pytest.mark.parametrize("shape", [(1, 4), (1, 4, 1, 1), (0, 4, 2, 2)])
def test_batch_norms_of_a_single_value_or_none(shape: tuple[int, ...]) -> None:
    norm = nn.BatchNorm1d(4) if len(shape) == 2 else nn.BatchNorm2d(4)
    assert build_with_seed(lambda: norm, (torch.ones(shape),)).running_var.min() > 0


@pytest.fixture
def trained() -> dict[str, Tensor]:
    return nn.Linear(3, 2).state_dict()


@pytest.mark.parametrize("key", [None, "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module."])
def test_checkpoints_that_fit(tmp_path: Path, trained: dict[str, Tensor], key: str | None, prefix: str) -> None:
    state = {prefix + name: value for name, value in trained.items()}
    torch.save({key: state, "epoch": 3} if key else state, tmp_path / "c.pt")
    model = nn.Linear(3, 2)
    load_checkpoint(model, tmp_path / "c.pt")
    assert torch.equal(model.weight, trained["weight"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": None}, "the checkpoint does not fit Linear: missing bias."),
        ({"head": torch.zeros(1)}, "the checkpoint does not fit Linear: unexpected head."),
        ({f"b{i}": torch.zeros(1) for i in range(7)}, "unexpected b0, b1, b2, b3, b4 and 2 more."),
        ({"weight": torch.zeros(2, 4)}, "weight has shape (2, 4), wanted (2, 3)."),
        ({"epoch": 3}, "holds a dict with the keys ['bias', 'epoch', 'weight']; wanted a state_dict"),
    ],
)
def test_checkpoints_that_do_not_fit(
    tmp_path: Path, trained: dict[str, Tensor], change: dict[str, object], message: str
) -> None:
    state = {name: value for name, value in {**trained, **change}.items() if value is not None}
    torch.save(state, tmp_path / "c.pt")
    model = nn.Linear(3, 2)
    before = model.weight.clone()
    with pytest.raises(CompatError, match=re.escape(message)):
        load_checkpoint(model, tmp_path / "c.pt")
    assert torch.equal(model.weight, before)


class Payload:
    ran = False

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return setattr, (Payload, "ran", True)


@pytest.mark.parametrize(
    "content", [Payload(), {"state_dict": Payload()}, nn.Linear(3, 2)], ids=["bare", "in", "model"]
)
def test_nothing_in_a_checkpoint_runs(tmp_path: Path, content: object) -> None:
    torch.save(content, tmp_path / "c.pt")
    with pytest.raises(CompatError, match=r"holds Python objects beside tensors.*save model\.state_dict\(\) instead\."):
        load_checkpoint(nn.Linear(3, 2), tmp_path / "c.pt")
    assert not Payload.ran


def test_files_that_are_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(CompatError, match=r"absent\.pt: cannot be read: No such file or directory\."):
        load_checkpoint(nn.Linear(3, 2), tmp_path / "absent.pt")
    (tmp_path / "empty.pt").write_bytes(b"")
    with pytest.raises(CompatError, match=r"empty\.pt: is no checkpoint that torch.load can read"):
        load_checkpoint(nn.Linear(3, 2), tmp_path / "empty.pt")
    torch.save([1, 2], tmp_path / "list.pt")
    with pytest.raises(CompatError, match=r"list\.pt: holds a list; wanted a state_dict"):
        load_checkpoint(nn.Linear(3, 2), tmp_path / "list.pt")
