"""Bitwise operators and shifts, in rows; against eager torch at every dtype."""

import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.testing import Example, assert_same_outputs

INTEGERS = (
    torch.tensor([[2, -3, 4], [99, -(2**62) - 5, 2**62 + 9]]),
    torch.tensor([[7, -6, 1], [-(2**63), 1, 2**62 + 12]]),
)
BYTES = (
    torch.tensor([[0, 9, 200], [25, 255, 128]], dtype=torch.uint8),
    torch.tensor([[0, 1, 3], [9, 1, 7]], dtype=torch.uint8),
)
FUNCTIONS = {
    "bitwise_and_to_bits": (torch.bitwise_and, operator.and_),
    "bitwise_or_to_bits": (torch.bitwise_or, operator.or_),
    "bitwise_xor_to_bits": (torch.bitwise_xor, operator.xor),
}
SHIFTS = {"left": operator.lshift, "right": operator.rshift}
DYNAMO_FIRST = ("dynamo", "torchscript")


def of_two(name, **options):
    function, apply = FUNCTIONS[name]
    return Example(
        name,
        lambda i, j: (
            function(i, j),
            apply(i, j),
            apply(i, 6),
            apply(-5, i),
            apply(i.int(), j.to(torch.int8)),
            apply(i > 0, j),
            apply(i.clamp(0, 99).byte(), 15),
        ),
        INTEGERS,
        broken=lambda input, other: input + other,
        **options,
    )


def of_bytes(direction):
    shift = getattr(torch, f"bitwise_{direction}_shift")
    opposite = {"left": "RIGHT", "right": "LEFT"}[direction]
    return Example(
        f"bitwise_{direction}_shift",
        lambda x, y: (shift(x, y), shift(x, 2), shift(x, 1), shift(x, 11)),
        BYTES,
        broken=lambda op, self, other: op.BitShift(self, op.cast(other, torch.uint8), direction=opposite),
        leaves=lambda x, y: shift(x.int(), y.int()),
        exporters=DYNAMO_FIRST,
    )


def of_operator(direction):
    shift = SHIFTS[direction]
    return Example(
        f"{direction[0]}shift_to_bitwise_{direction}_shift",
        lambda i, j: (shift(i.byte(), j.byte()), shift(i.byte(), 2)),
        (torch.tensor([[2, -3, 4], [0, 5, 1]]), torch.tensor([[2, 0, 1], [3, 1, 4]])),
        broken=lambda self, other: self + other,
        exporters=DYNAMO_FIRST,
    )


EXAMPLES = [
    *(
        Example(
            f"{direction}_shift_by_counts",
            lambda i, j, shift=shift: (
                shift(i, j),
                shift(i.int(), j.int()),
                shift(i.short(), j.short()),
                shift(i.to(torch.int8), j.to(torch.int8)),
                shift(i.short(), 3),
                shift(i.int(), j.int() + 33),
            ),
            (torch.tensor([[5, -7, 1, 100], [-100, 3, 127, -128]]), torch.tensor([[1, 3, -1, 64], [7, 8, 0, 31]])),
            broken=lambda input, other, d=direction: catalogue()[f"{d}_shift_by_counts"].body(input, other) * 2,
            leaves=lambda i, j, shift=shift: shift(i.byte(), 3) + j,
            exporters=DYNAMO_FIRST,
        )
        for direction, shift in SHIFTS.items()
    ),
    Example(
        "right_shift_by_counts",
        lambda i, j: (i >> j, i.int() >> j.int(), i >> torch.arange(60, 64)),
        (
            torch.tensor([[2**62 + 1, -(2**62) - 3, 2**31 - 1, -(2**31)]]),
            torch.tensor([[1, 4, 3, 2]]),
        ),
        claims=(),
        exporters=DYNAMO_FIRST,
    ),
    of_two(
        "bitwise_and_to_bits",
        leaves=lambda i, j: (i > 0) & (j > 0),
        exporters=("torchscript",),
        options={"opset": 17},
    ),
    of_two("bitwise_and_to_bits", exporters=("dynamo",), options={"opset": 18}),
    of_two("bitwise_or_to_bits", leaves=lambda i, j: (i > 0) | (j > 0)),
    of_two("bitwise_xor_to_bits"),
    Example(
        "bitwise_not_to_sub",
        lambda i: (torch.bitwise_not(i), ~i, ~i.int(), ~i.clamp(0, 99).byte(), ~(i > 0)),
        INTEGERS[:1],
        broken=lambda input: -1 * input,
    ),
    *map(of_bytes, SHIFTS),
    *map(of_operator, SHIFTS),
]


@pytest.mark.parametrize("name", FUNCTIONS)
@given(a=st.integers(-(2**63), 2**63 - 1), b=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=40, deadline=None)
def test_equals_eager(name, a, b):
    function, _ = FUNCTIONS[name]
    for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8):
        x, y = torch.tensor([a, b]).to(dtype), torch.tensor([b, b]).to(dtype)
        assert torch.equal(catalogue()[name].body(x, y), function(x, y))


def test_xor_of_booleans_takes_one_node(exporter):
    result = assert_same_outputs(lambda i, j: (i > 0) ^ (j > 0), INTEGERS, exporter)
    assert result.nodes["Xor"] == 1
    assert set(result.nodes) <= {"Cast", "Constant", "Greater", "Xor"}


@pytest.mark.parametrize("direction", SHIFTS)
def test_shift_of_bytes_takes_one_node(direction):
    name = f"bitwise_{direction}_shift"
    result = assert_same_outputs(lambda x, y: getattr(torch, name)(x, y), BYTES, "dynamo", uses=(name,))
    assert result.nodes["BitShift"] == 1


@pytest.mark.parametrize("direction", SHIFTS)
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_shift_by_every_count(direction, dtype):
    limits = torch.iinfo(dtype)
    x = torch.tensor([0, 1, -1, 5, -6, limits.max, limits.min, limits.max // 3], dtype=dtype)
    for count in (*range(-3, limits.bits + 3), 100, -100):
        counts = torch.full_like(x, count)
        wanted = SHIFTS[direction](x, counts)
        body = catalogue()[f"{direction}_shift_by_counts"].body
        assert torch.equal(body(x, counts), wanted), count
        by_number = body(x, count)
        assert by_number is NotImplemented or torch.equal(by_number, wanted), count
