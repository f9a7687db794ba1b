"""Python numbers among the arguments, which the file holds, and says so; and what counts as a model."""

from functools import partial
from typing import Optional

import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError


class Scaled(nn.Module):
    def forward(self, x, factor, shift=0.0, flip=False):
        return (x.flip(0) if flip else x) * factor + shift


X = torch.randn(4)


def test_numbers_are_noted(exporter):
    result = export_compat(Scaled().eval(), (X, 3), exporter=exporter, kwargs={"shift": 0.5, "flip": True})
    assert [note.partition(",")[0] for note in result.notes] == [
        "argument factor is the number 3",
        "argument shift is the number 0.5",
    ]
    torch.testing.assert_close(result(X)[0], X.flip(0) * 3 + 0.5)


def test_the_advice_of_the_note_works(exporter):
    result = export_compat(Scaled().eval(), (X, torch.tensor(3)), exporter=exporter)
    torch.testing.assert_close(result(X, torch.tensor(7))[0], X * 7)


def test_names_may_count_numbers(exporter):
    """As stock's TorchScript exporter takes them, which makes inputs of numbers."""
    example = (X, 3, torch.ones(4))
    result = export_compat(Scaled().eval(), example, exporter=exporter, input_names=["a", "k", "b"])
    assert [i.name for i in result.session().get_inputs()] == ["a", "b"]
    with pytest.raises(CompatError, match="input_names has 4 names"):
        export_compat(Scaled().eval(), example, exporter=exporter, input_names=["a", "k", "b", "c"])


def test_shapes_of_numbers(exporter):
    fixed = {"x": {0: torch.export.Dim("count")}, "factor": torch.export.Dim.STATIC}
    result = export_compat(Scaled().eval(), (X, 3), exporter=exporter, dynamic_shapes=fixed)
    assert [axis.name for axis in result.axes] == ["count"]
    with pytest.raises(CompatError, match=r"argument 'factor' is the number 3.*torch\.tensor\(3\)"):
        export_compat(Scaled().eval(), (X, 3), dynamic_shapes={"x": None, "factor": torch.export.Dim.DYNAMIC})


def test_a_last_dict_that_forward_takes_whole(exporter):
    """As detectors take their batch; what can be keywords is, as for torch.onnx.export."""
    batch = {"image": X, "targets": [torch.ones(4)]}
    result = export_compat(
        lambda batch: batch["image"] + batch["targets"][0],
        (batch,),
        exporter=exporter,
        dynamic_shapes=({"image": {0: "n"}, "targets": [{0: "n"}]},),
    )
    assert [axis.name for axis in result.axes] == ["n"]
    torch.testing.assert_close(result({"image": torch.ones(6), "targets": [torch.ones(6)]})[0], torch.ones(6) * 2)
    named = export_compat(Scaled().eval(), (X, {"factor": torch.tensor(3.0)}), exporter=exporter)
    torch.testing.assert_close(named(X, factor=torch.tensor(2.0))[0], X * 2)


def test_sparse_outputs_are_refused(exporter):
    with pytest.raises(CompatError, match="output is a sparse tensor"):
        export_compat(lambda x: x.to_sparse(), torch.eye(3), exporter=exporter)


@pytest.mark.filterwarnings("ignore")
def test_a_condition_on_sizes_as_output():
    """Through dynamo; a TorchScript trace has no such output."""
    model = lambda x: (x + 1, torch.sym_not(x.shape[0] == x.shape[1]))  # noqa: E731
    result = export_compat(model, torch.rand(3, 4), exporter="dynamo", dynamic={"x": {0: "h", 1: "w"}})
    assert [bool(result(torch.rand(h, w))[1]) for h, w in ((3, 4), (5, 5), (2, 7))] == [True, False, True]


SIZES = {
    "not": lambda x: x * torch.sym_ite(torch.sym_not(x.shape[0] > x.shape[1]), 1, 0),
    "ite": lambda x: x * torch.sym_ite(x.shape[0] > x.shape[1], 1, 0),
    "float": lambda x: x * torch.sym_float(x.shape[0]),
}


@pytest.mark.parametrize("name", SIZES)
def test_functions_on_sizes(name):
    """Older versions of torch translate none of them."""
    model = SIZES[name]
    result = export_compat(model, torch.rand(3, 4), exporter="dynamo", dynamic={"x": {0: "h", 1: "w"}})
    for x in (torch.rand(3, 4), torch.rand(5, 5), torch.rand(7, 2)):
        torch.testing.assert_close(result(x)[0], model(x))


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def encode(self, x, factor: float):
        return self.layer(x).relu() * factor

    def forward(self, x):
        return self.encode(x, 1.5).sum()


def test_a_partial_function_is_a_model(exporter):
    model = Encoder().eval()
    result = export_compat(partial(model.encode, factor=3), (torch.randn(2, 3),), exporter=exporter)
    x = torch.randn(2, 3)
    (found,) = result.session().run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), model.encode(x, 3).detach())


@pytest.mark.filterwarnings("ignore")
def test_a_frozen_script_has_no_mode():
    model = Encoder().eval()
    frozen = torch.jit.freeze(torch.jit.script(model))
    result = export_compat(frozen, (torch.randn(2, 3),), dynamic={"x": {0: "n"}})
    x = torch.randn(5, 3)
    (found,) = result.session().run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(found), model(x).detach())


def branches_and_rounds(x, y: Optional[torch.Tensor] = None, factor: int = 3):  # noqa: UP045 - as TorchScript wants it
    if x.size(0) > 4:
        x = x * 2
    if y is None:
        return x - factor
    for i in range(x.size(0)):
        y = y + x[i]
    return y


@pytest.mark.filterwarnings("ignore:.*torch.jit")
@pytest.mark.parametrize("more", [(), (torch.rand(3),)], ids=["default", "given"])
def test_scripted_functions_with_control_flow(more):
    """Names of the inputs are those of the schema, and the function's If and Loop stay."""
    scripted = torch.jit.script(branches_and_rounds)
    result = export_compat(scripted, (torch.rand(3, 3), *more), dynamic={"x": {0: "n"}}, exporter="torchscript")
    assert [value.name for value in result.model_proto.graph.input] == ["x", "y"][: 1 + len(more)]
    for size in (1, 4, 5, 9):
        x = torch.rand(size, 3)
        torch.testing.assert_close(result(x, *more)[0], branches_and_rounds(x, *more))


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_functions_that_were_traced(exporter):
    function = torch.jit.trace(lambda x: x.sin() + x.shape[0], torch.rand(2, 3))
    result = export_compat(function, torch.rand(2, 3), dynamic="batch", exporter=exporter)
    x = torch.rand(5, 3)
    torch.testing.assert_close(result(x)[0], x.sin() + 5)
