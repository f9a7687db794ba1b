"""Texts of sizes: messages and keys of caches are harmless, other texts decide something that a file cannot hold."""

import io
import logging

import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class Tells(nn.Module):
    def forward(self, x):
        logging.getLogger("model").info("%s %s", x.shape, f"{x.shape[0]}")
        if x.shape[1] == 0:
            raise ValueError(f"no columns: {x.shape}")
        return x * 2


def check_in_steps(rows, wanted, raises):
    """Makes the message of an error in several statements, one of them in a branch."""
    if rows.shape[0] != wanted.shape[0]:
        if raises:
            number = f"{wanted.shape[0]} or 1" if wanted.shape[0] != 1 else f"{wanted.shape[0]}"
            message = f"wanted {number}, got {rows.shape[0]}"
            message += f" of {list(rows.shape)}"
            raise ValueError(message)
        return False
    return True


class ComplainsInSteps(nn.Module):
    def forward(self, x):
        some = x[: int(x.shape[0] / 1.5) + 1]
        check_in_steps(x, some, raises=x.shape[0] > 6)
        return x + some.sum(0)


class Stores(nn.Module):
    def __init__(self):
        super().__init__()
        self.ramps = {}

    def forward(self, x):
        key = f"{x.shape[0]}x{x.shape[1]}"
        if key not in self.ramps:
            self.ramps[key] = torch.arange(x.shape[1])
        return x + self.ramps[key]


class LooksUp(nn.Module):
    """The example has no entry, and few sizes have."""

    def forward(self, x):
        return x * {"16": 3.0}.get(str(x.shape[1]), 1.0)


class ComparesText(nn.Module):
    """Beyond a size it takes one only, which it tells by its text."""

    def forward(self, x):
        if x.shape[1] > 36:
            size = str(x.shape[1])
            if size != "409":
                raise ValueError("no " + size)
            x = x * 2
        return x


class Says(nn.Module):
    """Values and sizes that are only told, at once or by a variable."""

    def forward(self, x):
        print(x.shape[0], x.mean(), f"{x.max():.2f}", "%d rows, %.3f" % (x.shape[0], x.mean().item()))  # noqa: UP031
        lowest = x.min()
        text = f"{x.shape[1] / 2:.1f}"
        text += f" of {x.shape}"
        mean = x.mean().item()
        logging.getLogger("model").debug("%s %s", mean, text)
        unused = str(x.sum().item())  # noqa: F841
        with torch.profiler.record_function(f"layer_{x.shape[1]}"):
            y = x * 2
        largest = float(x.max())
        if largest > 1e9:
            raise ValueError(f"too large: {largest}, {lowest}")
        return y


class Catches(nn.Module):
    """What looks like a check decides, as its error is caught."""

    def forward(self, x):
        is_small = bool((x < 5).all())
        try:
            assert is_small
        except AssertionError:
            return x + 1
        return x * 2


class Reveals(nn.Module):
    """A variable that is told, and decides something by another way."""

    def forward(self, x):
        mean = x.mean().item()
        print(mean)
        return x * (2 if locals()["mean"] > 1 else 3)


class PrintsIntoAText(nn.Module):
    def forward(self, x):
        stream = io.StringIO()
        print(x.shape[1], x.mean().item() > 5, file=stream)
        return x * (2 if stream.getvalue().startswith("36 T") else 3)


class Keeps(nn.Module):
    """What is printed, or computed for a variable without a use, also goes elsewhere, in each of these ways."""

    def __init__(self, way):
        super().__init__()
        self.way, self.kept = way, []

    def keep(self, value):
        self.kept.append(value)
        return value

    def forward(self, x):
        self.way(self, x)
        return x * (2 if self.kept[-1] in ("36", True) or float(self.kept[-1]) > 5 else 3)


def by_an_unused_result(self, x):
    _ = self.kept.append(x.max().item())


def by_an_argument(self, x):
    print(self.keep(x.max().item()))


def by_an_assignment_in_it(self, x):
    print(value := x.max().item())
    self.kept.append(value)


def by_a_list_that_grows(self, x):
    kept = self.kept
    kept += [x.max().item()]
    print(kept)


def by_a_comprehension(self, x):
    print([self.keep(value) for value in x.max().reshape(1).tolist()])


def by_a_check(self, x):
    value = x.max().item()
    assert self.keep(value) < 1e9


def by_a_text(self, x):
    text = self.keep(f"{x.shape[1]}")
    print(text)


WAYS = (
    *(by_an_unused_result, by_an_argument, by_an_assignment_in_it, by_a_list_that_grows, by_a_comprehension),
    *(by_a_check, by_a_text),
)


class TextOfQuotient(nn.Module):
    """A number made of a size, as text; the answer is the same at the sizes nearby."""

    def forward(self, x):
        return x * 2 if str(x.shape[1] / 4) == "9.0" else x + 1


class TextOfCondition(nn.Module):
    def forward(self, x):
        return x * {"True": 2.0, "False": 3.0}[str(x.shape[1] > 40)]


class TextOfNumber(nn.Module):
    """The text of a number that values decide."""

    def forward(self, x):
        return x * 2 if str(x.mean().item()).startswith("5") else x + 1


def export(model, exporter="dynamo"):
    return export_compat(model.eval(), torch.randn(3, 12), dynamic={"x": {0: "b", 1: "w"}}, exporter=exporter)


@pytest.mark.one_exporter
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_is_kept_is_not_only_told(way, exporter, capsys):
    try:
        session = onnxruntime.InferenceSession(export(Keeps(way), exporter).model_bytes)
    except CompatError:
        return
    for x in (torch.randn(1, 3), torch.full((2, 36), 5.5), torch.full((3, 41), 0.5), torch.full((2, 7), 50.0)):
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), Keeps(way)(x))


@pytest.mark.parametrize(
    "kind", [Says, Catches, Reveals, PrintsIntoAText, TextOfQuotient, TextOfCondition, TextOfNumber]
)
def test_right_or_refused(kind, exporter, capsys):
    try:
        session = onnxruntime.InferenceSession(export(kind(), exporter).model_bytes)
    except CompatError:
        assert kind is not Says
        return
    for x in (torch.randn(1, 3), torch.full((2, 36), 5.5), torch.full((3, 409), 0.5), torch.full((2, 7), 5.25)):
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), kind()(x))


@pytest.mark.parametrize("kind", [Tells, Stores])
def test_harmless_texts(kind):
    assert_right(kind, export(kind()))


def test_a_text_that_a_check_compares(exporter):
    """Few sizes beyond a condition are taken, and nobody knows which: nothing is proven."""
    assert not export(ComparesText(), exporter).axes[1].proven


def test_messages_in_steps(exporter):
    assert_right(ComplainsInSteps, export(ComplainsInSteps(), exporter))


def assert_right(kind, result):
    session = onnxruntime.InferenceSession(result.model_bytes)
    for shape in ((1, 3), (3, 12), (4, 16), (2, 31)):
        x = torch.randn(shape)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), kind()(x))


def test_a_text_that_is_looked_up(exporter):
    with pytest.raises(CompatError, match="would freeze"):
        export(LooksUp(), exporter)
