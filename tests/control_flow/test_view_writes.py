"""Writes in place through items and views, in rounds of loops that run in the file or that an exit may have ended.

What is written shows at large values alone, as that of a limiter does: no proof at ordinary ones would see it lost.
"""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat

LIMIT = 30.0


def item_clamped(x):
    out, total = x.clone(), torch.zeros(x.size(1))
    for i in range(x.size(0)):
        out[i].clamp_(max=LIMIT)
        total = total + x[i]
    return out, total


def part_of_item_clamped(x):
    out, total = x.clone(), torch.zeros(())
    for i in range(x.size(0)):
        row = out[i, 1:]
        row -= torch.relu(row - LIMIT)
        total = total + out[i].sum()
    return out, total


def column_clamped(x):
    out, total = x.t().clone(), torch.zeros(4)
    for i in range(x.size(0)):
        column = out[:, i]
        column[column > LIMIT] = LIMIT
        total = total + x[i]
    return out, total


def slice_of_one_clamped(x):
    out, number = x.clone(), torch.zeros(())
    for i in range(x.size(0)):
        out[i : i + 1].clamp_(max=LIMIT)
        number = number + out.sum()
    return out, number


def rows_of_two(x):
    out, total = torch.zeros_like(x), torch.zeros(4)
    for row, given in zip(out, x, strict=True):
        row.copy_(torch.relu(given - LIMIT))
        total = total + given
    return out, total


def item_read_after_its_owner(x):
    """An item has what is written to its owner, and to another item of the same number."""
    out, total = x.clone(), torch.zeros(4)
    for i in range(x.size(0)):
        row, same = out[i], out[i]
        row.clamp_(max=LIMIT)
        total = total + same
        out.mul_(0.5)
        total = total + row
        out[i] = out[i].clamp(min=-LIMIT)
        total = total + same * 2
    return out, total


def owner_and_view_written(x):
    out, total = x.t().contiguous().clone(), torch.zeros(4)
    for i in range(x.size(0)):
        out.mul_(2.0)
        out.t()[i].clamp_(max=LIMIT)
        out.view(-1)[0].clamp_(min=-LIMIT)
        total = total + x[i]
    return out, total


def in_a_branch(x):
    out, total = x.clone(), torch.zeros(4)
    for i in range(x.size(0)):
        row = out[i]
        if row.sum() > 0:
            row.clamp_(max=LIMIT)
        total = total + row
    return out, total


def doubling(x):
    out, total = x.clone(), torch.zeros(4)
    i = 1
    while i < x.size(0):
        out.narrow(0, 0, x.size(0) - i).clamp_(max=LIMIT)
        i *= 2
    return out, total


def while_values_say(x):
    out, v = x.clone(), x.abs().mean().clamp(max=4.0)
    while v > 0.1:
        out[:, :1].masked_fill_(out[:, :1] > LIMIT, LIMIT)
        v = v * 0.5
    return out, v


def after_an_exit(x):
    out, k = x.clone(), 0
    while out.sum() + k < 5 and k < 4:
        out[:, 0].clamp_(max=LIMIT)
        k = k + 1
    return out, torch.tensor(k)


def after_a_break(x):
    out = x.clone()
    for k in range(3):
        if out.sum() + k >= 5:
            break
        out[:, 0].clamp_(max=LIMIT)
        own = out[:, 1] * 1
        own.add_(k)
        out = out + own[:, None] * 0
    return (out,)


def after_several_exits(x):
    """The tensor has one content at each exit."""
    out = x.clone()
    for k in range(4):
        if out[0].sum() > 10 * k + 40:
            return out, out * 2
        out[:, k].clamp_(max=LIMIT)
        if out[0].min() < -40:
            break
        out[:, k].mul_(0.5)
    return out, out


class Kept(nn.Module):
    """What is written to is reached by a name in a container, which the loop's statements do not bind."""

    def forward(self, x):
        kept = {"a": x.clone()}
        for k in range(3):
            if kept["a"].sum() > 20 * k:
                break
            kept["a"][:, k].clamp_(max=LIMIT)
        return kept["a"], x


MODELS = [
    *(item_clamped, part_of_item_clamped, column_clamped, slice_of_one_clamped, rows_of_two, in_a_branch, doubling),
    *(item_read_after_its_owner, owner_and_view_written),
    *(while_values_say, after_an_exit, after_a_break, after_several_exits, Kept()),
]


REFUSED = {("in_a_branch", "torchscript"), ("in_a_branch", "dynamo"), ("column_clamped", "dynamo")}
"""What no file holds yet."""


@pytest.mark.parametrize("model", MODELS, ids=lambda one: getattr(one, "__name__", "Kept"))
def test_what_is_written_is_there(model, exporter):
    torch.manual_seed(0)
    try:
        result = export_compat(model, torch.randn(3, 4), dynamic="batch", exporter=exporter)
    except CompatError as error:
        assert (getattr(model, "__name__", ""), exporter) in REFUSED, error
        return
    session = onnxruntime.InferenceSession(result.model_bytes)
    for rows in (1, 2, 3, 5, 8):
        for scale in (1.0, 20.0, 200.0):
            x = torch.randn(rows, 4) * scale
            wanted = model(x.clone())
            for found, one in zip(session.run(None, {"x": x.numpy()}), wanted, strict=True):
                torch.testing.assert_close(torch.from_numpy(found), one, rtol=1e-4, atol=1e-3, check_dtype=False)
