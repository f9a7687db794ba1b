import io
import math

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, Verify, export_compat
from torch_onnx_compat.backends.backend import ExportFailed, refuse
from torch_onnx_compat.errors import causes


def ring():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def test_causes_are_told_once():
    first = ring()
    assert list(causes(first)) == [first, first.__cause__]


def test_contexts_are_asked_for():
    error = ValueError("shown")
    error.__context__ = KeyError("handled")
    assert list(causes(error)) == [error]
    assert list(causes(error, contexts=True)) == [error, error.__context__]


@pytest.mark.parametrize("stated", [True, False])
def test_the_error_of_an_entry_comes_through_and_keeps_its_cause(stated):
    reason = ZeroDivisionError("of all things")
    own = CompatError("entry 'broken' raised")
    own.__cause__ = reason
    outer = RuntimeError("the exporter's words")
    setattr(outer, "__cause__" if stated else "__context__", own)
    with pytest.raises(CompatError, match="entry 'broken' raised") as caught:
        refuse(outer, "step")
    assert list(causes(caught.value)) == [own, reason]


def test_the_error_of_an_exporter_becomes_one_line():
    with pytest.raises(ExportFailed, match=r"^step: no such operator$") as caught:
        refuse(RuntimeError("no such operator\ngraph(%x): ..."), "step")
    assert isinstance(caught.value.__cause__, RuntimeError)


# Arguments: each is refused in one line that says where, what was found and what was wanted


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)


X = torch.rand(4, 3)

WRONG = {
    "dynamic is a number": ({"dynamic": 5}, r"^dynamic=5 is a int; wanted 'batch' or a dict by input"),
    "dynamic is a list": ({"dynamic": [{0: "b"}]}, r"^dynamic=\[\{0: 'b'\}\] is a list; wanted 'batch' or a dict"),
    "dynamic is false": ({"dynamic": False}, r"^dynamic=False is a bool; wanted"),
    "dynamic is empty": ({"dynamic": " "}, r"^dynamic=' ' names no axis; wanted a name"),
    "an input's axes are a number": (
        {"dynamic": {"x": 7}},
        r"^dynamic of input 'x' is 7, a int; wanted the name of ax",
    ),
    "an axis is called by a number": ({"dynamic": {"x": {0: 7}}}, r"^dynamic: axis 0 of input 'x' is called 7, a int"),
    "an axis is a truth value": ({"dynamic": {"x": {True: "b"}}}, r"^dynamic axis True of input 'x': it has 2 axes"),
    "an axis has no name": ({"dynamic": {"x": {0: ""}}}, r"^dynamic axis: '' is no name; wanted one such as 'batch'"),
    "an axis is a null character": ({"dynamic": "a\0"}, r"^dynamic axis: 'a\\x00' is no name"),
    "dynamic_axes is a list": ({"dynamic_axes": ["x"]}, r"^dynamic_axes=\['x'\] is a list; wanted a dict by input"),
    "dynamic_axes with a misspelt name": (
        {"input_names": ["image"], "dynamic_axes": {"imgae": [0], "image": [1]}},
        r"^dynamic_axes: unknown input 'imgae'; did you mean 'image'\?",
    ),
    "dynamic_axes with no known name": (
        {"dynamic_axes": {"mask": [0]}},
        r"^dynamic_axes: unknown input 'mask'; known: x",
    ),
    "dynamic_shapes is a number": ({"dynamic_shapes": 5}, r"^dynamic_shapes=5 is a int; wanted a dict by argument"),
    "dynamic_shapes is too long": (
        {"dynamic_shapes": ({0: "b"}, None)},
        r"^dynamic_shapes has 2 entries, but forward t",
    ),
    "a Dim without its axis": (
        {"dynamic_shapes": {"x": torch.export.Dim("b")}},
        r"^dynamic_shapes of input 'x' is .*wanted",
    ),
    "the opset is a text": ({"opset_version": "17"}, r"^opset_version='17' is a str; wanted an int, such as \d+"),
    "the opset is a truth value": ({"opset_version": True}, r"^opset_version=True is a bool; wanted an int"),
    "the opset is a float": ({"opset_version": 17.0}, r"^opset_version=17.0 is a float; wanted an int"),
    "verify is a text": ({"verify": "no"}, r"^verify='no' is a str; wanted True, False, 'target' or Verify"),
    "verify is the text false": ({"verify": "false"}, r"^verify='false' is a str; wanted True"),
    "verify is a number": ({"verify": 0}, r"^verify=0 is a int; wanted True"),
    "samples is a tensor": ({"samples": X}, r"^samples is a Tensor; wanted a list of inputs"),
    "an input is called by digits": ({"input_names": ["0"]}, r"^input_names holds '0'; wanted a name such as 'input'"),
    "an input has no name": ({"input_names": [""]}, r"^input_names holds ''; wanted a name such as 'input'"),
    "an input is called by a number": ({"input_names": [0]}, r"^input_names holds 0; wanted a name"),
    "an output is called by digits": (
        {"output_names": ["0"]},
        r"^output_names holds '0'; wanted a name such as 'output'",
    ),
    "input_names is a text": ({"input_names": "x"}, r"^input_names='x' is a str; wanted a list of names"),
    "outputs is a text": ({"outputs": "layer"}, r"^outputs='layer' is a str; wanted a list: outputs=\['layer'\]"),
    "include is a text": ({"include": "layer"}, r"^include='layer' is a str; wanted a list"),
    **{
        f"{name} is a number": ({name: 3}, rf"^{name}=3 is a int; wanted a list")
        for name in ("outputs", "split", "state", "keep_as_function", "include", "exclude", "symbolics", "rewrites")
    },
    "allow_baked is a number": ({"allow_baked": 3}, r"^allow_baked=3 is a int; wanted a list"),
    "target is a number": ({"target": 3}, r"^target=3 is a int; wanted a name, such as 'onnxruntime'"),
    "target is nothing": ({"target": None}, r"^target=None is a NoneType; wanted a name"),
    "control_flow is a text": ({"control_flow": "no"}, r"^control_flow='no' is a str; wanted True or False"),
    "dynamo is a text": ({"dynamo": "yes"}, r"^dynamo='yes' is a str; wanted True or False"),
    "training is a text": ({"training": "eval"}, r"^training='eval' is a str; wanted a torch.onnx.TrainingMode"),
    "a table that is none": (
        {"custom_translation_table": 3},
        r"^custom_translation_table is a int; wanted a dict of operator to function",
    ),
    "an example out of its bounds": (
        {"dynamic": {"x": {0: ("batch", 7, 9)}}},
        r"^axis 'batch' is \d+ long in the example, but declared for 7 to 9; give one within",
    ),
    "domains are a text": ({"allow_custom_domains": "com.example"}, r"^allow_custom_domains='com.example' is a str; w"),
    "domains are a number": (
        {"allow_custom_domains": 5},
        r"^allow_custom_domains=5 is a int; wanted True, False or a l",
    ),
    "custom_opsets is a list": ({"custom_opsets": ["a"]}, r"^custom_opsets is a list; wanted a dict of domain to ver"),
    "kwargs is a list": ({"args": (), "kwargs": [X]}, r"^kwargs is a list; wanted a dict of argument to value"),
    "a sparse input": (
        {"args": (X.to_sparse(),)},
        r"^input 'x' is a tensor of layout torch.sparse_coo; wanted a dense",
    ),
    "a path with a null character": ({"f": "a\0b"}, r"^f='a\\x00b' holds a null character, which no path may"),
    "a path that is no Unicode": ({"f": "a\udc80.onnx"}, r"^f='a\\udc80.onnx' is not valid Unicode.*another name"),
    "a folder": ({"f": "/"}, r"^cannot write '/': it is a folder, and a rename would replace it"),
    "a device": ({"f": "/dev/null"}, r"^cannot write '/dev/null': it is a device, and a rename would replace it"),
    "a text file": ({"f": io.StringIO()}, r"^f is a text file \(StringIO\); wanted one opened for writing bytes"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_argument_gets_one_clear_line_before_any_work(case, monkeypatch):
    change, message = WRONG[case]

    def work(*args):
        raise AssertionError("the model runs before the arguments are checked")

    if case != "an output is called by digits":  # how many outputs there are is known from a run
        monkeypatch.setattr(nn.Linear, "forward", work)
    arguments = {"args": (X,), **change}
    with pytest.raises(CompatError, match=message) as error:
        export_compat(Twice(), arguments.pop("args"), arguments.pop("f", None), **arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rtol": math.nan}, r"Verify\(rtol=nan\): wanted a number, such as 1e-3, or None\."),
        ({"atol": math.inf}, r"Verify\(atol=inf\): wanted a number"),
        ({"rtol": "1e-3"}, r"Verify\(rtol='1e-3'\): wanted a number"),
        ({"rtol": True}, r"Verify\(rtol=True\): wanted a number"),
        ({"values": -1}, r"Verify\(values=-1\): wanted a whole number from 0\."),
        ({"values": 1.5}, r"Verify\(values=1.5\): wanted a whole number from 0\."),
        ({"sizes": [1]}, r"Verify\(sizes=\[1\]\): wanted a dict of axis to sizes"),
        ({"sizes": {"batch": 5}}, r"Verify\(sizes\['batch'\]=5\): wanted a list of whole numbers"),
        ({"sizes": {"batch": "15"}}, r"Verify\(sizes\['batch'\]='15'\): wanted a list of whole numbers"),
        ({"sizes": {"batch": (1.5,)}}, r"Verify\(sizes\['batch'\]=\(1.5,\)\): wanted a list of whole numbers"),
        ({"random": "no"}, r"Verify\(random='no'\): wanted True or False\."),
        ({"seed": None}, r"Verify\(seed=None\): wanted a whole number\."),
        ({"on_target": 1}, r"Verify\(on_target=1\): wanted True or False\."),
    ],
)
def test_a_proof_that_would_prove_nothing_is_refused(arguments, message):
    with pytest.raises(CompatError, match=f"^{message}"):
        Verify(**arguments)


def test_a_proof_in_numpy_s_numbers():
    assert Verify(rtol=np.float32(1e-3), sizes={"batch": {1, 5}}, seed=-1).rtol == np.float32(1e-3)


def test_a_foreign_name_in_dynamic_axes_is_a_warning_as_in_torch():
    with pytest.warns(UserWarning, match="dynamic_axes names 'mask', no input of the model and none of output_names"):
        result = export_compat(Twice(), X, dynamic_axes={"x": {0: "batch"}, "mask": {0: "batch"}})
    assert result.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.parametrize("name", ["batch-size", "B*T", "7", "2 * B", "my batch"])
def test_any_text_names_an_axis_in_dynamic_axes(name, exporter):
    result = export_compat(Twice(), X, dynamic_axes={"x": {0: name}}, exporter=exporter)
    assert result.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param == name


def test_a_file_that_stops_taking_bytes():
    class Full(io.BytesIO):
        def write(self, data):
            raise ValueError("no more")

    with pytest.raises(CompatError, match=r"^cannot write to f, a Full: ValueError: no more; it may hold a part\.$"):
        export_compat(Twice(), X, Full())


class Unwritable(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x)


def test_each_exporter_has_its_line():
    """Reason by reason, with what explains a reason set further in."""
    with pytest.raises(CompatError) as caught:
        export_compat(Unwritable().eval(), torch.ones(2, 3))
    first, *lines = str(caught.value).split("\n")
    assert first == "no back end exports the model."
    starts = [line.split(":")[0] for line in lines if not line.startswith("    ")]
    assert starts[:2] == ["  torchscript", "  dynamo"]
    assert set(starts[2:]) == {"  diagnosis"}


class ReturnsNothing(nn.Module):
    def forward(self, x):
        print(end="")


@pytest.mark.parametrize("verify", [True, False])
def test_a_model_that_returns_nothing(verify, exporter):
    with pytest.raises(CompatError, match="returns no tensor and no number"):
        export_compat(ReturnsNothing().eval(), torch.randn(2, 3), exporter=exporter, verify=verify)
