"""In-place writes in TorchScript traces."""

import pytest
import torch
from fuzz.writes import INPUT, OTHER_INPUT, WriteProgram

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.promotion import ELEMENTARY
from torch_onnx_compat.testing import assert_same_outputs

X = torch.randn(3, 4, 4)


def slice_of_slice(y):
    z = y[:, 1:]
    z[..., ::2] = 5.0


def twice_nested(y):
    y[:, 1:][0][1].mul_(3.0)


def transposed(y):
    y.transpose(1, 2)[:, 0] = 2.0
    y.view(-1, 16)[:, 3:5].add_(1.0)


def read_after_write(y):
    row, block = y[0], y[:, 1:]
    block.select(2, 1).fill_(7.0)
    y[1] = row * 2
    block.sub_(row[:1])


def owner_after_view(y):
    first = y[:, 0]
    y.mul_(2.0)
    y[:, 1] = first


def in_place_of_a_part(y):
    y[:, 1:] += 1.0
    y[0] *= 2.0


def pieces(y):
    a, b = y.split(2, dim=1)
    a.copy_(b * 2)
    b[:, 0] = a[:, 1]


def pieces_of_other_lengths(y):
    a, b = y.split(3, 1)
    a.add_(1.0)
    b.mul_(a[:, :1])
    c, d = torch.split(y, [1, 3], dim=-1)
    d.sub_(c)
    c.add_(b.sum())


def columns(y):
    a, b = y.unbind(-1)[:2]
    a.mul_(2.0)
    b.sub_(1.0)
    for column in y.mT.unbind(1):
        column.div_(column.abs().max() + 1)


def named(y):
    torch.transpose(input=y, dim0=1, dim1=2)[:, 0].mul_(2.0)
    torch.unbind(dim=1, input=y)[1].add_(1.0)


def copied(y):
    y[:, :2].copy_(y[:, 1:3] * 2)


def turned(y):
    row = y[:, :1]
    row.squeeze_(1)
    row.mul_(2.0)
    other = y.view(-1, 4, 4)
    other.transpose_(1, 2)
    other.unsqueeze_(0)
    y[:, 0] = other[0, :, 1] + row


WRITES = [
    turned,
    copied,
    slice_of_slice,
    twice_nested,
    transposed,
    read_after_write,
    owner_after_view,
    in_place_of_a_part,
    pieces,
    pieces_of_other_lengths,
    columns,
    named,
]


@pytest.mark.parametrize("statement", WRITES)
@pytest.mark.parametrize("dynamic", [None, "batch"])
def test_write_reaches_the_owner(statement, dynamic):
    def model(x):
        y = x.clone()
        statement(y)
        return y

    assert_same_outputs(model, X, "torchscript", dynamic=dynamic)


def test_comparison_keeps_the_type():
    def model(i):
        a, b, c = i.clone(), i.clone(), i.float()
        return a.logical_not_(), b.gt_(1), c.eq_(2)

    assert_same_outputs(model, torch.arange(-3, 4), "torchscript")


def test_functions_of_integers():
    functions = sorted({f.__name__ for f in ELEMENTARY})
    model = lambda i: tuple(getattr(torch, name)(i) for name in functions)  # noqa: E731
    result = assert_same_outputs(model, torch.ones(2, 3, dtype=torch.int64), "torchscript")
    assert result.nodes["Cast"]
    assert_same_outputs(lambda b: (b.exp(), b.sqrt()), torch.tensor([True, False]), "torchscript")


def test_a_write_that_nobody_else_reads_costs_nothing():
    def part(x):
        return torch.cat([x, -x], 1)[:, :3]

    def model(x):
        y = part(x)
        y.add_(1.0)
        return y * 2

    result = assert_same_outputs(model, X, "torchscript", dynamic="batch")
    assert not {"ScatterND", "ScatterElements"} & set(result.nodes)


def test_a_write_that_a_sister_view_reads_is_made():
    def parts(x):
        y = torch.cat([x, -x], 1)
        return y[:, :3], y[:, 1:]

    def model(x):
        y, z = parts(x)
        y.add_(1.0)
        return z * 2

    assert_same_outputs(model, X, "torchscript", dynamic="batch")


def view_written_to(x):
    x = x.view(-1, 2)
    x[0] = 0
    return x


def part_set_to_zero(x):
    return x[2:4].zero_()


def part_added_to(x):
    y = x[2:4]
    y += 1
    return y


def view_and_owner(x):
    y = x.view(-1)
    y[1:3] += 1
    return x, y


def views_of_a_changed_owner(x):
    y = [x[0], x[1:]]
    x += 1
    return y[0], y[1]


def halves(x):
    a, b = x.split(2)
    a += b
    b.mul_(2)
    return x, a, b


def transposed_power(x):
    y = x.t()
    y **= 2
    return y, x


def activation_of_a_part(x):
    y = x[1]
    torch.nn.functional.silu(y, inplace=True)
    torch.relu_(x[2:])
    return x, y


def data_of_a_tensor(x):
    y = x.data
    y += 1
    return x, torch.where(x.data > 0.5, x, -x)


def named_part_copied_to(x):
    y = x * 2
    z = y[1:]
    z.copy_(z + 1)
    z.masked_fill_(x[1:] > 0, 7.0)
    return y


def detached_copied_to_twice(x):
    y = x * 2
    z = y.detach()
    z.copy_(z + 1)
    z.mul_(3)
    return y, z


def part_of_a_part_in_use(x):
    y = (x * 2)[1:]  # the owner has no name
    z = y[0]
    z.add_(1)
    return y, z


def detached_and_owner(x):
    y = x * 2
    z = y.detach()[1:]
    z.relu_()
    y.add_(1)
    return z, y


def returned_as_it_is(x):
    y = x * 2
    part, wide = y[:, -1], y.expand(2, 4, 6)
    y.mul_(2)
    same = part.to(torch.float32)
    y.add_(1)
    return y, same, wide, part


def empty_parts(x):
    y = x * 2
    y[:, 6:] = 1.0
    y[:, 6:] += 1
    y[x.shape[0] :].mul_(2)
    y[:, x.shape[1] :] = x[:, 6:]
    return y


def diagonals(x):
    y, z, mask = x * 2, (x * 9).long(), x > 0
    y.diagonal(0, 1, 0).mul_(3)
    z.diagonal(1).add_(5)
    mask.diagonal().fill_(True)
    return y, z, mask


RETURNED = [
    named_part_copied_to,
    detached_copied_to_twice,
    part_of_a_part_in_use,
    detached_and_owner,
    returned_as_it_is,
    empty_parts,
    diagonals,
    view_written_to,
    part_set_to_zero,
    part_added_to,
    view_and_owner,
    views_of_a_changed_owner,
    halves,
    transposed_power,
    activation_of_a_part,
    data_of_a_tensor,
]


@pytest.mark.parametrize("function", RETURNED, ids=lambda function: function.__name__)
def test_returned_views_hold_what_was_written(function):
    assert_right_unproven(function, "torchscript", torch.randn(4, 6), torch.randn(4, 6))


def assert_right_unproven(function, exporter, *inputs):
    """Exports without a proof, at the first of the inputs, and compares the file with eager torch at all."""
    session = export_compat(function, (inputs[0].clone(),), exporter=exporter, verify=False).session()
    for value in inputs:
        wanted = function(value.clone())
        found = session.run(None, {one.name: value.numpy() for one in session.get_inputs()})
        for one, other in zip(found, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.from_numpy(one), other)


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_random_writes(first):
    """No proof finds the loss of a write: each file of a random program is right by itself."""
    models = [WriteProgram(seed, returns_copies=seed % 2 == 0) for seed in range(first, first + 10)]
    models = [model for model in models if model.runs()]
    assert len(models) > 5
    for model in models:
        assert_right_unproven(model, "torchscript", INPUT, OTHER_INPUT)


def test_other_memory_is_refused():
    with pytest.raises(CompatError, match=r"resize_\(\) gives a tensor other memory"):
        export_compat(lambda x: x.resize_(3, 2) * 2, (torch.randn(2, 3),), exporter="torchscript")


def sum_of_two(x):
    y = torch.empty_like(x)
    torch.add(x, 1, out=y)
    return y


def product_into_a_view(x):
    y = torch.zeros_like(x)
    torch.mul(x[0], 2, out=y[1])
    return y, y + 1


def of_another_type(x):
    y = torch.empty(x.shape, dtype=torch.float64)
    torch.sub(x, 1, out=y)
    return y


def into_an_empty_tensor(x):
    y = torch.empty(0)
    torch.cat([x, x], out=y)
    return y * 2


def two_results(x):
    values, indices = x.new_empty(x.shape[:2]), torch.empty(x.shape[:2], dtype=torch.int64)
    torch.max(x, 2, out=(values, indices))
    return values, indices


def over_itself(x):
    y = x + 0
    for _ in range(2):
        torch.sigmoid(y, out=y)
    return y


OUT = [sum_of_two, product_into_a_view, of_another_type, into_an_empty_tensor, two_results, over_itself]


@pytest.mark.parametrize("function", OUT, ids=lambda function: function.__name__)
def test_a_result_that_is_given_is_written(function):
    """No operator of ONNX is given its result, as ``out=`` does."""
    assert_same_outputs(function, X, "torchscript", dynamic="batch")


def masked(x):
    mask = x > 0
    mask &= x < 1
    mask[:, 0] |= x[:, 1] > 0
    mask ^= x < -1
    return mask


def shifted(x):
    n = (x * 9).long()
    n <<= 1
    n[0] &= 6
    n |= 1
    n >>= 1
    return n


@pytest.mark.parametrize("model", [masked, shifted])
def test_augmented_assignments_of_bits(model, exporter):
    """TorchScript's exporter knows none of these operators."""
    session = export_compat(
        model, torch.randn(4, 5, generator=torch.Generator().manual_seed(0)), exporter=exporter
    ).session()
    for seed in range(3):
        x = torch.randn(4, 5, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x))
