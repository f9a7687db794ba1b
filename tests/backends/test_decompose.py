"""Decomposing single operators: the program computes what it did, in-place operators and views included."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import torch
from fuzz.writes import INPUT, WriteProgram
from torch import Tensor, nn
from torch.export import Dim
from torch.torch_version import TorchVersion

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.internals import decompose
from torch_onnx_compat.backends.internals.find import first_module

WRITES = 20
"""Random programs that write in place."""

IS_OLD = TorchVersion(torch.__version__) < "2.7"
"""Whether a capture does not tell which tensors share memory; what is written in place is left to torch then."""
HAS_PLAIN_STORAGE = TorchVersion(torch.__version__) < "2.15"
"""Whether torch.export cannot capture the number of bytes of a tensor of dynamic sizes, or what is computed of it."""
WRITTEN_IN_PLACE = {"a chain in place", "parts in place", "dropout in place", "a copy of a weight"}


@contextmanager
def count_whole() -> Iterator[list[int]]:
    """Counts the programs that are left to torch's own decomposition."""
    passes = first_module("torch.onnx._internal.exporter._fx_passes")
    plain, counted = passes.decompose_with_registry, []

    def whole(program: Any, registry: Any) -> Any:
        counted.append(1)
        return plain(program, registry)

    passes.decompose_with_registry = whole
    try:
        yield counted
    finally:
        passes.decompose_with_registry = plain


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)
        self.table = nn.Parameter(torch.rand(3, 6, 6))
        self.register_buffer("count", torch.zeros(3))
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def _fill_part(m: Calls, x: Tensor) -> Tensor:
    y = x + 1
    y[:, 0, 1:4].fill_(2.0)
    y[..., -1] = 3.0
    return y * 2


def _write_beside_view(m: Calls, x: Tensor) -> tuple[Tensor, Tensor]:
    y = x + 1
    seen = y.transpose(1, 2)
    y.mul_(2)
    return seen, y


def _write_to_columns(m: Calls, x: Tensor) -> Tensor:
    y = x + 1
    a, b = y.unbind(-1)[:2]
    a.mul_(2)
    b.sub_(a)
    for column in y.mT.unbind(-2):
        column.div_(column.abs().max())
    return y


def _write_to_pieces(m: Calls, x: Tensor) -> Tensor:
    y = x + 1
    for piece in (*y.split(4, -1), *y.split([1, 5], 2), *y.chunk(2, -1), *y.tensor_split(4, 2)):
        piece.div_(piece.abs().max())
    return y


def _write_to_table(m: Calls, x: Tensor) -> Tensor:
    y = m.table.clone()
    y.add_(x.sum())
    return y


DONE_BY_NODE: dict[str, Callable[[Calls, Tensor], Any]] = {
    "batch norms": lambda m, x: m.norm(m.norm(x)),
    "a chain in place": lambda m, x: m.norm(x).relu_().add_(1).mul_(x),
    "parts in place": _fill_part,
    "a pool without a translation": lambda m, x: nn.functional.adaptive_avg_pool2d(x, 1),
    "channels last": lambda m, x: nn.functional.adaptive_avg_pool2d(
        x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2), 1
    ),
    "dropout in place": lambda m, x: nn.functional.dropout(x * 2, 0.5, training=False, inplace=True) + 1,
    "a copy of a weight": _write_to_table,
    "results of one trace": lambda m, x: ((x > 0.5) & (x < 0.7)) | ((x > 0.2) & (x < 0.3)),
}
LEFT_TO_TORCH: dict[str, Callable[[Calls, Tensor], Any]] = {
    "a view that is read after a write": _write_beside_view,
    "columns that were taken at once": _write_to_columns,
    "pieces that were taken at once": _write_to_pieces,
    "a buffer": lambda m, x: m.count.add_(1).sum() + x,
}


@pytest.mark.parametrize("name", [*DONE_BY_NODE, *LEFT_TO_TORCH])
def test_is_right(name: str) -> None:
    model = Calls({**DONE_BY_NODE, **LEFT_TO_TORCH}[name]).eval()
    with count_whole() as whole:
        result = export_compat(model, (torch.rand(4, 3, 6, 6),), dynamic="batch", exporter="dynamo")
    assert result.exporter == "dynamo"
    assert result.table
    if not (IS_OLD and name in WRITTEN_IN_PLACE):
        assert bool(whole) == (name in LEFT_TO_TORCH)


def test_same_arguments_are_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    plain = decompose._Decomposition._trace_anew
    monkeypatch.setattr(
        decompose._Decomposition,
        "_trace_anew",
        lambda self, target, *rest: traced.append(target) or plain(self, target, *rest),
    )
    model = nn.Sequential(*[nn.BatchNorm2d(3) for _ in range(5)], nn.MaxPool2d(2), nn.BatchNorm2d(3)).eval()
    export_compat(model, (torch.rand(4, 3, 6, 6),), dynamic="batch", exporter="dynamo")
    assert traced == [torch.ops.aten.batch_norm.default] * 2


def test_random_writes() -> None:
    by_node = 0
    for seed in range(WRITES):
        model, x = WriteProgram(seed), INPUT
        if not model.runs():
            continue
        wanted = model(x.clone())
        program = torch.export.export(model, (x,), dynamic_shapes=({1: Dim.AUTO},), strict=False)
        try:
            found = _decomposed(program)(x)
        except decompose.TooMuch:
            whole = program.run_decompositions({})
            assert bool(whole.range_constraints) == bool(program.range_constraints), f"seed {seed}: sizes are fixed"
            continue
        by_node += 1
        for ours, theirs in zip(found, wanted, strict=True):
            torch.testing.assert_close(ours, theirs, msg=lambda text, seed=seed: f"seed {seed}: {text}")
    assert by_node > (0 if IS_OLD else WRITES // 10)


def test_random_results_of_one_trace() -> None:
    """Operators without a translation on one another's results, of which many have the same layout."""
    for seed in range(PLAIN):
        draw = random.Random(seed)
        steps = [
            (draw.choice(_PLAIN), draw.randrange(10), draw.randrange(10), draw.randrange(10))
            for _ in range(draw.randint(4, 14))
        ]

        def combine(m: Calls, x: Tensor, steps: Any = steps) -> tuple[Tensor, ...]:
            values = [x > 0.5, x < 0.3, (x * 7).floor() % 2 == 0]
            for step, *places in steps:
                values.append(step(*(values[place % len(values)] for place in places)))
            return tuple(value.float() for value in values[3:])

        model, x = Calls(combine).eval(), torch.rand(3, 3, 4, 5)
        program = torch.export.export(model, (x,), dynamic_shapes=({0: Dim.AUTO},), strict=False)
        for ours, theirs in zip(_decomposed(program)(x), model(x), strict=True):
            torch.testing.assert_close(ours, theirs, msg=lambda text, seed=seed: f"seed {seed}: {text}")


def test_random_sizes() -> None:
    """Numbers made of sizes: a capture holds sums of many terms, and what torch's C++ makes of sizes."""
    for seed in range(PLAIN // 3):
        draw = random.Random(seed)
        steps = [(draw.choice(_OF_SIZES), draw.randrange(9), draw.randrange(9)) for _ in range(draw.randint(1, 5))]

        def combine(m: Calls, x: Tensor, steps: Any = steps) -> tuple[Tensor, ...]:
            numbers: list[Any] = [
                x.shape[0],
                x.shape[2],
                x.numel() if HAS_PLAIN_STORAGE else x.untyped_storage().size(),
                3,
            ]
            for step, *places in steps:
                numbers.append(step(*(numbers[place % len(numbers)] for place in places)))
            pooled = nn.functional.adaptive_avg_pool2d(x, 1)
            return tuple(pooled + number for number in numbers[2:])

        axes = {"x": {0: "batch", 2: "height", 3: "width"}}
        result = export_compat(Calls(combine).eval(), (torch.rand(3, 3, 4, 5),), dynamic=axes, exporter="dynamo")
        assert result.table, f"seed {seed}"


_OF_SIZES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a + b + 1,
    lambda a, b: a * b,
    lambda a, b: a - b,
    lambda a, b: a // 2,
    lambda a, b: b % 3,
]

PLAIN = 15
"""Random programs that write nothing."""

_PLAIN: list[Callable[[Tensor, Tensor, Tensor], Tensor]] = [
    lambda a, b, c: a & b,
    lambda a, b, c: a | b,
    lambda a, b, c: a ^ b,
    lambda a, b, c: torch.where(a, b, c),
    lambda a, b, c: nn.functional.adaptive_max_pool2d(a.float(), 1).expand_as(b) > 0.5,
    lambda a, b, c: a.type_as(b.float()).bool(),
    lambda a, b, c: a.reshape(a.shape[0], -1).view_as(b),
]


def _decomposed(program: Any) -> Callable[..., Any]:
    registry = first_module("torch.onnx._internal.exporter._registration").ONNXRegistry.from_torchlib()
    decompose.take_single_views(program)
    made = decompose.decompose_nodes(program, decompose.tables_of(registry))
    return made.module()


class _Nested(nn.Module):
    """What torch.export records of a vmap opens and closes it by calls of the program."""

    def forward(self, x):
        gram = torch.vmap(lambda a: torch.vmap(lambda r: (a * r).sum(-1))(a))(x)
        return gram, torch.vmap(lambda a: a.cumsum(0) / a.shape[0], in_dims=2, out_dims=0)(x)


class _Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.Parameter(torch.randn(3, 4, 4))

    def forward(self, x):
        return torch.vmap(lambda w: torch.tanh(x @ w))(self.weights).var(0)


@pytest.mark.dynamo_from("2.9", "a whole program with vmap is not decomposed")
def test_an_ensemble_by_vmap_is_right() -> None:
    assert export_compat(_Ensemble(), (torch.randn(3, 4),), exporter="dynamo", dynamic="batch").table


def test_no_vmap_is_left_open_by_a_failure() -> None:
    before = torch._C._functorch.get_dynamic_layer_stack_depth()
    with suppress(CompatError):
        export_compat(_Nested(), (torch.randn(3, 5, 4),), exporter="dynamo", dynamic={"x": {0: "batch", 1: "length"}})
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == before
    assert torch.vmap(lambda row: row + 1)(torch.randn(2, 3)).shape == (2, 3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("bounds", [(1, 2.5), (-0.5, 1), (None, 1.5), (0, 6)], ids=str)
def test_bounds_of_different_types(bounds, dtype):
    """torch's pass for type promotion finds no overload for a tensor beside a number."""

    class Clamps(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.clamp(*bounds)

    x = (torch.randn(2, 8) * 3).to(dtype)
    result = export_compat(Clamps().eval(), x, dynamic="batch", exporter="dynamo")
    (found,) = result.session().run(None, {"x": x.numpy()})
    assert torch.equal(torch.from_numpy(found), x.clamp(*bounds))


def test_bounds_of_different_types_in_a_loop():
    """Bodies are graphs of their own."""

    def clamp_rows(x: Tensor) -> Tensor:
        found = []
        for row in range(x.shape[0]):
            found.append(x[row].clamp(min=1, max=5.5))
        return torch.stack(found)

    if TorchVersion(torch.__version__) < "2.9":
        pytest.skip("torch exports scan from 2.9 on")
    x = torch.randn(3, 4) * 3
    result = export_compat(clamp_rows, x, dynamic="batch", exporter="dynamo")
    assert "Scan" in result.nodes
    (found,) = result.session().run(None, {"x": x.numpy()})
    assert torch.equal(torch.from_numpy(found), clamp_rows(x))
