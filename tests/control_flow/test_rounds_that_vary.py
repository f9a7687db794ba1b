"""Loops that go on until what they compute says so are right at other sizes and values, whatever they hand on."""

import pytest
import torch

from control_flow.files import export_and_compare
from torch_onnx_compat import CompatError, export_compat

pytestmark = pytest.mark.one_exporter


def doubled(x):
    k = 1
    while k < x.shape[0]:
        k *= 2
    return x * k


def padded_to_a_power_of_two(x):
    k = 1
    while k < len(x):
        k = k * 2
    return torch.nn.functional.pad(x, (0, 0, 0, k - len(x)))


def counted(x):
    y, i = x, 0
    while i < x.shape[0]:
        y = y + x[i]
        i += 1
    return y


def halved(x):
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        x = torch.cat([x[:half] + x[half : 2 * half], x[2 * half :]])
    return x


def prefix_sums(x):
    step = 1
    while step < x.shape[0]:
        x = torch.cat([x[:step], x[step:] + x[:-step]])
        step *= 2
    return x


def suppressed(x):
    kept, rest = [], x[:, 2].argsort(descending=True)
    while rest.numel() > 0:
        first = rest[0]
        kept.append(first)
        rest = rest[1:][(x[rest[1:], :2] - x[first, :2]).abs().sum(1) > 1]
    return torch.stack(kept)


def suppressed_in_place(x):
    order = x[:, 2].argsort(descending=True)
    x = x[order]
    keep = torch.ones(x.shape[0], dtype=torch.bool)
    for i in range(x.shape[0]):
        if not keep[i]:
            continue
        near = (x[:, :2] - x[i, :2]).abs().sum(1) < 1
        near[: i + 1] = False
        keep &= ~near
    return order[keep]


def strided(x):
    step, s = x.shape[0] // 3 + 1, torch.zeros(4)
    for i in range(x.shape[0] - 1, -1, -step):
        s = s * 0.5 + x[i] * (i + 1)
    return s


def in_one_piece(x):
    length = x.shape[0]
    return torch.cat([x[start : start + length] * 2 for start in range(0, length, length)])


def with_a_state_of_no_shape(x):
    state, out = torch.zeros(0), []
    for row in x:
        if state.shape != row[None].shape:
            state = torch.zeros_like(row[None])
        state = state * 0.9 + row
        out.append((state > 1).float() + state)
    return torch.cat(out)


def with_states_of_no_shape(x):
    states, out = (torch.zeros(0), torch.zeros(0)), []
    for row in x:
        one, other = states
        if one.dim() < 2:
            one, other = torch.zeros_like(row[None]), torch.ones_like(row[None])
        states = one * 0.9 + row, other * 0.5 - one
        out.append(torch.cat(states, 1))
    return torch.cat(out)


MODELS = [doubled, padded_to_a_power_of_two, counted, halved, prefix_sums, suppressed, suppressed_in_place]
MODELS += [strided, in_one_piece, with_a_state_of_no_shape, with_states_of_no_shape]
ONLY_TORCHSCRIPT = (halved, prefix_sums, suppressed, suppressed_in_place, in_one_piece)
"""Tensors that grow, or pieces of different sizes: torch's own loops carry neither."""


@pytest.mark.parametrize("model", MODELS)
def test_is_right(model, exporter, tmp_path):
    if exporter == "dynamo" and model in ONLY_TORCHSCRIPT:
        with pytest.raises(CompatError):
            export_compat(model, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
    else:
        export_and_compare(model, exporter, tmp_path)


def test_a_loop_of_the_file_has_more_rounds_than_were_tried(exporter, tmp_path):
    """Each further round asks one more question of the size, and one body answers them all."""
    export_and_compare(doubled, exporter, tmp_path, sizes=(2049, 5000))


TOLERANCE, VERBOSE, LIMIT = 0.1, False, 6


def settled(x):
    centre, rounds = x[:1] * 0, 0
    for i in range(LIMIT):
        before = centre
        centre = centre * 0.2 + x.mean(0, keepdim=True)
        rounds = rounds + 1
        if TOLERANCE is not None:  # noqa: SIM102 - as it is written
            if (centre - before).abs().max() < TOLERANCE:
                if VERBOSE:
                    print(i)
                break
        centre = centre + 0.01
    return centre, x * rounds


def settled_and_returned(x):
    centre = x[:1] * 0
    for i in range(LIMIT):
        before = centre
        centre = centre * 0.2 + x.mean(0, keepdim=True)
        if TOLERANCE is not None:
            if (centre - before).abs().max() < TOLERANCE:
                return centre + i
        else:
            centre = centre - 1
    return centre


@pytest.mark.parametrize("model", [settled, settled_and_returned])
def test_a_break_under_a_plain_if(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path)


# What rounds write in place


def skipped_sums(x):
    total = torch.zeros(4)
    for row in x:
        if row.sum() < 0:
            continue
        total += row
    return total


def skipped_sums_of_a_table(x):
    table = {"a": torch.zeros(4), "b": torch.ones(4)}
    for row in x:
        if row[0] < 0:
            continue
        table["a"] += row
        table["b"] = table["a"] * 2 + table["b"]
    return table["a"], table["b"]


def written_by_two_indices(x):
    y = torch.zeros_like(x)
    for i in range(x.shape[0]):
        y[i][1] = x[i][0] * i
        y[i][0] += x[i][2]
        y[i][x[i] > 0.5] = 7.0
        y[i][2:] = x[i][:2] - 1
        y[i][..., 1:2] *= 2
        y[1:][-1:] = 3.0
    return y


def written_at_a_fixed_place(x):
    total, grid = torch.zeros(4), torch.zeros_like(x)
    for i in range(x.shape[0]):
        if x[i].sum() > 4:
            break
        total[0] += x[i][0]
        grid[0] -= x[i]
    return total, grid


def second_name(x):
    keep = torch.zeros(4)
    other, s = keep, 0
    for row in x:
        if row.sum() < 0:
            continue
        keep += row
        s = s + other.sum()
    return keep, s


@pytest.mark.parametrize("model", [skipped_sums, skipped_sums_of_a_table, written_at_a_fixed_place])
def test_what_rounds_write(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path)


def test_rows_of_rows_are_written_to(tmp_path):
    export_and_compare(written_by_two_indices, "torchscript", tmp_path)


def test_a_second_name_of_what_rounds_write_is_refused(exporter, tmp_path):
    with pytest.raises(CompatError, match="second name"):
        export_compat(second_name, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)


# Lists that are made at their full length, or put together anew


def backwards(x):
    out, state = [None for _ in range(len(x))], torch.zeros(4)
    for t in reversed(range(len(x))):
        state = torch.tanh(state + x[t])
        out[t] = state
    return torch.stack(out)


def both_ways(x):
    n = x.shape[0]
    ahead, back = [None] * n, n * [None]
    one = other = torch.zeros(4)
    for i in range(n):
        one = torch.tanh(one + x[i])
        other = torch.tanh(other + x[n - 1 - i])
        ahead[i], back[n - 1 - i] = one, other
    return torch.stack([torch.cat([a, b]) for a, b in zip(ahead, back, strict=True)])


def filled_in_both_branches(x):
    out = [None] * len(x)
    for i in range(len(x)):
        if x[i].sum() > 0:
            out[-i - 1] = x[i] * 2
        else:
            out[-i - 1] = x[i] - 1
    return torch.cat(out), x * len(out), out[0] + out[-1]


def put_in_front(x):
    out, state = [], torch.zeros(4)
    for t in range(len(x) - 1, -1, -1):
        state = torch.tanh(state + x[t])
        out = [state] + out  # noqa: RUF005
    return torch.stack(out)


def put_behind(x):
    out = [x[0]]
    first = out
    for row in x:
        out = out + [row, row * 2]  # noqa: RUF005
    return torch.stack(out), torch.stack(first)


def unpacked_behind(x):
    out, state = [x[0]], torch.zeros(4)
    for row in x:
        state = state * 0.5 + row
        out = [*out, state, row]
    return torch.stack(out)


def unpacked_in_front(x):
    out, state = [], torch.zeros(4)
    for row in x:
        state = state * 0.5 + row
        out = [state, *out]
    return torch.stack(out)


def filled_with_numbers(x):
    out = [None] * len(x)
    for i in range(len(x)):
        out[i] = i
    return x * out[-1]


def repeated_by_a_size(x):
    one, two = x.mean(0), x[0]
    ones, both = [one] * len(x), x.shape[0] * [one, two]
    last = two * 0
    for number, item in enumerate(both):
        last = last * 0.5 + item * number
    return torch.stack(ones) + x, torch.cat((one[None],) * x.size(0)), torch.vstack(both), last, both[-1] - ones[0]


def repeated_by_a_value(x):
    rows = [x.mean(0)] * int((x[:, 0] > 0).sum())
    rows.append(x[0])
    return torch.stack(rows), x * len(rows)


def numbers_repeated_by_a_size(x):
    zeros, pattern = [0] * len(x), [1.5, 2.0] * len(x)
    return torch.tensor(zeros).cumsum(0) + 1, torch.tensor(pattern), x * pattern[1] + len(zeros)


LISTS = [repeated_by_a_size, repeated_by_a_value, numbers_repeated_by_a_size]
LISTS += [backwards, both_ways, filled_in_both_branches, filled_with_numbers, put_in_front, put_behind]
LISTS += [unpacked_behind, unpacked_in_front]


@pytest.mark.parametrize("model", LISTS)
def test_lists_that_are_filled(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path)


def filled_now_and_then(x):
    out = [None] * len(x)
    for i in range(len(x)):
        if x[i].sum() > -9:
            out[i] = x[i]
    return torch.stack([row for row in out if row is not None])


def test_a_list_that_is_filled_now_and_then_is_refused(exporter, tmp_path):
    """What is not filled is None in Python, and the code asks."""
    with pytest.raises(CompatError, match="one branch fills"):
        export_compat(
            filled_now_and_then, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter
        )


def repeated_along_an_axis(x):
    mean = x.mean(1, keepdim=True)
    return torch.cat([mean] * x.shape[1], 1) + torch.cat((mean, x[:, :1]) * x.shape[1], 1)[:, 1:2]


def test_a_repeated_tensor_of_varying_shape(exporter):
    axes = {"x": {0: "batch", 1: "length"}}
    result = export_compat(repeated_along_an_axis, torch.randn(3, 5, 4), dynamic=axes, exporter=exporter)
    for shape in ((1, 2, 4), (2, 1, 4), (4, 7, 4)):
        x = torch.randn(shape)
        (found,) = result.session().run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), repeated_along_an_axis(x))


def repeated_lists(x):
    return torch.tensor([[1.0, 2.0]] * len(x))


def test_a_repeated_list_of_lists_is_refused(exporter, tmp_path):
    with pytest.raises(CompatError, match="a list is repeated a number of times that depends on the inputs"):
        export_compat(repeated_lists, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)


def longer_at_both_ends(x):
    out = []
    for row in x:
        out = [row, *out, row * 2]
    return torch.stack(out)


def test_a_list_that_grows_at_both_ends_is_refused(exporter, tmp_path):
    with pytest.raises(CompatError, match="longer at both ends"):
        export_compat(
            longer_at_both_ends, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter
        )


# What a library finds out at its first call


class Backend:
    """What a library makes once for each kind of tensor."""

    def __init__(self):
        self.flip = torch.flip


BACKENDS = {}


def flip(x):
    if type(x) not in BACKENDS:
        BACKENDS[type(x)] = Backend()
    return BACKENDS[type(x)].flip(x, (0,))


def with_a_library(x):
    out = []
    for row in x:
        out.append(flip(row) * 2 if row.sum() > 0 else row)
    return torch.stack(out)


NOTES = {}


def with_notes(x):
    if x.sum() > 0:
        NOTES["last"] = x.sum()
    return x * 2


def test_tables_of_a_library_are_filled_in_rounds(exporter, tmp_path):
    BACKENDS.clear()
    export_and_compare(with_a_library, exporter, tmp_path)


def test_tables_of_values_are_no_such_tables(exporter, tmp_path):
    with pytest.raises(CompatError, match="NOTES"):
        export_compat(with_notes, torch.ones(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
