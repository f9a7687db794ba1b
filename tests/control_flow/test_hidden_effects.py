"""Effects that show at values or sizes which no proof tries: they are in the file, or there is no file."""

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat


def finally_after_continue_by_size(x):
    total, latest = torch.zeros(x.shape[1]), 0
    for i in range(x.shape[0]):
        try:
            if i % 2:
                continue
            total = total + x[i]
        finally:
            latest = max(latest, i - 50)
    return total + latest


def finally_after_continue(x):
    total, least = torch.zeros(x.shape[1]), torch.zeros(())
    for row in x:
        try:
            if row.sum() < 0:
                continue
            total = total + row
        finally:
            least = torch.minimum(least, row.mean() + 10)
    return total, least


def finally_after_break(x):
    total, peak = torch.zeros(x.shape[1]), torch.zeros(())
    for row in x:
        try:
            if row.max() > 2.5:
                break
            total = total + row
        finally:
            peak = torch.maximum(peak, row.max() - 50)
    return total, peak


def finally_in_finally(x):
    total, n = torch.zeros(x.shape[1]), torch.zeros(())
    for row in x:
        try:
            if row.sum() < -30:
                return total, n + 100
            if row.sum() < 0:
                continue
            try:
                if row.max() > 3:
                    break
                total = total + row
            finally:
                n = n + row.max().clamp(min=20) - 20
        finally:
            n = n + row.min().clamp(max=-10)
    return total, n


def finally_in_while(x):
    total, i = torch.zeros(x.shape[1]), 0
    while i < x.shape[0]:
        try:
            if x[i].sum() < 0:
                continue
            total = total + x[i]
        finally:
            i = i + 1
    return total + i


class Held(nn.Module):
    """A model with a buffer: each case of a test needs a new one."""

    def __init__(self, change):
        super().__init__()
        self.register_buffer("state", torch.arange(4.0))
        self.change = change

    def forward(self, x):
        self.change(self, x)
        return x + self.state


def added_or_replaced(model, x):
    if x[0, 0] > 1e3:
        model.state += 1
    else:
        model.state = model.state - 2


def replaced_or_item_written(model, x):
    if x[0, 0] > 1e3:
        model.state = model.state * 3
    else:
        model.state[1] = 3.0


def copied_or_replaced(model, x):
    if x[0, 0] > 1e3:
        state = model.state
        state.copy_(x[0])
    else:
        model.state = x[0] * 2


FUNCTIONS = (finally_after_continue_by_size, finally_after_continue, finally_after_break)
FUNCTIONS += (finally_in_finally, finally_in_while)
CHANGES = (added_or_replaced, replaced_or_item_written, copied_or_replaced)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("make", [*FUNCTIONS, *CHANGES], ids=lambda f: f.__name__)
def test_effect_is_in_the_file(make, exporter):
    torch.manual_seed(0)

    def fresh():
        return Held(make) if make in CHANGES else make

    result = export_compat(fresh(), torch.randn(5, 4), dynamic="batch", exporter=exporter)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for rows in (1, 2, 3, 8, 52, 54):
        for scale in (1.0, 20.0, 2000.0):
            x = torch.randn(rows, 4) * scale
            x[0, 0] = x[0, 0].abs()
            wanted = fresh()(x.clone())
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for found, one in zip(session.run(None, {"x": x.numpy()}), wanted, strict=True):
                torch.testing.assert_close(torch.from_numpy(found), one, rtol=1e-4, atol=1e-3, check_dtype=False)
