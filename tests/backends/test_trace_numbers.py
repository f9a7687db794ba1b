"""Python's numbers in a TorchScript trace: augmented assignments, methods that tensors lack, settled comparisons."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from torch_onnx_compat import CompatError, export_compat


class _Doubled(nn.Module):
    """A helper that changes its own name of a size, which the caller still uses."""

    def double(self, length: int) -> int:
        length *= 2
        length += 1
        return length

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        return F.pad(x, (0, self.double(length) - length))


class _Halved(nn.Module):
    """``/=`` of a size is a float in Python; a tensor of integers refuses it."""

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        before = length
        length /= 2
        length //= 1
        return F.pad(x, (0, int(length))) * before


class _Counter(nn.Module):
    """A tensor of shape () is changed for each of its names."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = x.sum()
        same = total
        total += 1
        return total, same


class _PowerOfTwo(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[-1]
        return F.pad(x, (0, (1 << (length - 1).bit_length()) - length))


class _WholeSteps(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        steps = x.shape[-1] / 4
        return x * 2 if steps.is_integer() else x + 1


class _Unpacked(nn.Module):
    """einops' unpack asks which of its sizes is -1."""

    def forward(self, x: Tensor) -> Tensor:
        lengths = [x.shape[1] * x.shape[2] + 1, 3]
        if sum(int(length == -1) for length in lengths) == 0:
            return x.flatten(1)[:, : lengths[0] - 2]
        return x[lengths.index(-1)]


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (_Doubled(), (2, 4)),
        (_Halved(), (2, 4)),
        (_Counter(), (2, 4)),
        (_PowerOfTwo(), (2, 7)),
        (_WholeSteps(), (2, 8)),
        (_WholeSteps(), (2, 7)),
        (_Unpacked(), (2, 3, 4)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_size_is_a_number_in_a_trace(model: nn.Module, shape: tuple[int, ...]) -> None:
    axes = {"x": {axis: f"a{axis}" for axis in range(len(shape))}}
    result = export_compat(model, torch.rand(shape), dynamic=axes, exporter="torchscript")
    assert all(row.ok for row in result.table)


def test_tensors_lose_the_methods_of_numbers_again() -> None:
    export_compat(_PowerOfTwo(), torch.rand(2, 7), exporter="torchscript")
    assert not any(hasattr(Tensor, name) for name in ("is_integer", "bit_length", "__round__"))


def _over_the_size(x: Tensor) -> Tensor:
    return x / x.shape[0] + x.sum(0) * (1 / x.shape[0])


def _times_the_size(x: Tensor) -> Tensor:
    return x.cumsum(0) * x.shape[0] - x.shape[1]


@pytest.mark.parametrize("function", [_over_the_size, _times_the_size])
def test_sizes_beside_bfloat16(function):
    """torch's exporter casts the size to the type of number 15, which is complex128 in ONNX."""
    x = torch.randn(3, 4, dtype=torch.bfloat16)
    result = export_compat(function, x, dynamic="batch", exporter="torchscript")
    assert result.table
    casts = [node.attribute[0].i for node in result.model_proto.graph.node if node.op_type == "Cast"]
    assert casts
    assert 15 not in casts


def _jacobian(x: Tensor) -> Tensor:
    return torch.func.jacfwd(torch.sin)(x)


def test_a_number_that_a_symbolic_has_to_know_is_named():
    """torch.func.jacfwd computes which diagonal it takes."""
    with pytest.raises(CompatError, match="offset must be known, and is computed in the model") as error:
        export_compat(_jacobian, torch.randn(5), exporter="torchscript", dynamic={"x": {0: "length"}})
    assert "_C.Value" not in str(error.value)
