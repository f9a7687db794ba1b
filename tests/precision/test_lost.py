"""What a narrow file lost is found, whoever made it: nodes that overflow, that lose too much, and plain faults."""

import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from torch_onnx_compat import Float16, export_compat
from torch_onnx_compat.check.file_log import NotRun
from torch_onnx_compat.check.localise import localise
from torch_onnx_compat.doctor.doctor import doctor
from torch_onnx_compat.errors import CompatError


class Energy(nn.Module):
    """Divides by a mean of squares that float16 does not hold."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(16, 32, bias=False)
        self.head = nn.Linear(32, 4, bias=False)

    def forward(self, x):
        h = self.first(x).relu()
        e = (h * 300.0) ** 2
        return self.head(h / e.mean(-1, keepdim=True).sqrt() * 300.0)


class Phase(nn.Module):
    def forward(self, x):
        return torch.sin(x * 900.0 + 0.1)


class Vanishing(nn.Module):
    """Values that float16 has a few steps for."""

    def forward(self, x):
        return (x * 1e-4 * 1e-4).tanh() * 1e4 * 1e4


def all_narrow(model, args, **options):
    """The float32 file with every value in float16, as a converter without measurements makes it; a simple one."""
    proto = onnx.load_model_from_string(
        export_compat(model, args, dynamic="batch", opset_version=17, **options).model_bytes
    )
    half = TensorProto.FLOAT16
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.elem_type = half
    del proto.graph.value_info[:]
    for tensor in (
        *proto.graph.initializer,
        *(a.t for n in proto.graph.node for a in n.attribute if a.name == "value"),
    ):
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float16"), tensor.name))
    return proto


def args():
    return (torch.randn(3, 16, generator=torch.Generator().manual_seed(0)),)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_an_overflow_is_told_with_its_statement(exporter):
    torch.manual_seed(0)
    model = Energy().eval()
    found = localise(model, all_narrow(model, args(), exporter=exporter), args())
    assert found.found
    assert (found.format, found.operator, found.torch_operator) == ("float16", "Pow", "aten.pow")
    assert found.statement.endswith(f"test_lost.py:{Energy.forward.__code__.co_firstlineno + 2}")
    assert "beyond float16's largest number, 65504" in str(found)
    assert "not finite" in found.off[0] or "off by" in found.off[0]
    assert found.lost[0].largest > 65504
    assert found.to_dict()["lost"][0]["operator"] == "Pow"


def test_lost_digits_are_told():
    found = localise(Phase(), all_narrow(Phase(), args()), args())
    assert found.lost[0].operator == "Sin"
    assert found.lost[0].loss > 0.1
    assert "by itself" in found.lost[0].why


def test_vanishing_values_are_told_as_such():
    found = localise(Vanishing(), all_narrow(Vanishing(), args()), args())
    assert found.found
    assert "as its values are below float16's 6.1e-05" in str(found)


@pytest.mark.parametrize("model", [Energy, Phase, Vanishing])
def test_nothing_is_lost_in_our_own_file(model):
    torch.manual_seed(0)
    model = model().eval()
    result = export_compat(model, args(), dynamic="batch", precision="float16")
    found = localise(model, result.model_bytes, args())
    assert not found.found, str(found)
    assert found.format == ("float16" if result.precision.narrow else "")


def test_a_fault_of_a_narrow_file_is_no_matter_of_precision():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)).eval()
    proto = all_narrow(model, args())
    (node,) = [n for n in proto.graph.node if n.op_type == "Relu"]
    node.op_type = "Sigmoid"
    found = localise(model, proto, args())
    assert found.found
    assert not found.lost
    assert (found.module, found.operator) == ("1", "Sigmoid")


def test_a_model_in_float16_is_compared_with_itself():
    model = nn.Linear(16, 4).half()
    x = (args()[0].half(),)
    found = localise(model, export_compat(model, x).model_bytes, x)
    assert not found.found
    assert not found.format


def test_a_file_that_does_not_load_is_one_clear_error():
    proto = all_narrow(Phase(), args())
    proto.graph.node.append(helper.make_node("Nonsense", [proto.graph.input[0].name], ["nothing"], name="n"))
    proto.graph.output.append(helper.make_tensor_value_info("nothing", TensorProto.FLOAT16, None))
    with pytest.raises(NotRun, match="onnxruntime does not load the file"):
        localise(Phase(), proto, args())


def test_inputs_of_another_type_are_one_clear_error():
    model = nn.Linear(16, 4)
    with pytest.raises(CompatError, match="model itself fails on these inputs"):
        localise(model, export_compat(model, args()).model_bytes, (args()[0].half(),))


def test_a_report_on_a_narrow_file_finds_no_difference(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)).eval()
    result = export_compat(model, args(), dynamic="batch", precision="float16")
    result.report(tmp_path / "r.md", model, args())
    assert "differ" not in (tmp_path / "r.md").read_text(encoding="utf-8").split("##")[0].lower()


# doctor


def test_doctor_tells_what_overflows_before_an_export():
    torch.manual_seed(0)
    found = str(doctor(Energy().eval(), args(), precision="float16"))
    assert "aten.pow has values up to" in found
    assert "beyond float16's largest number" in found
    assert "all in float16, as .to(torch.float16) makes it, it is" in found


def test_doctor_tells_what_loses_digits():
    found = doctor(Phase(), args(), precision="float16").findings
    assert any("aten.sin loses" in finding.what for finding in found)
    assert not any("aten.mul" in finding.what for finding in found)


def test_doctor_has_nothing_to_tell_of_a_model_that_float16_holds():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 4)).eval()
    assert not doctor(model, args(), precision="float16").findings
    assert not doctor(Phase().eval(), args()).findings


def test_doctor_leaves_what_an_operator_writes_to_as_it_was():
    def in_place(x):
        y = x.clone()
        y[:, :3].mul_(1e6)
        return y.add_(1.0)

    x = args()[0]
    before = x.clone()
    found = doctor(in_place, (x,), precision="float16")
    assert torch.equal(x, before)
    assert "aten.mul_ has values up to" in str(found)


def test_a_limit_below_one_rounding_is_told():
    model, asked = nn.Linear(16, 4), Float16(limit=1e-6)
    assert "less than a single rounding to float16 costs" in str(doctor(model, args(), precision=asked))
    result = export_compat(model, args(), precision=asked)
    assert "less than a single rounding to float16 costs" in str(result.precision)


def test_doctor_refuses_eight_bits_with_the_way_out():
    with pytest.raises(CompatError, match=r"result\.precision"):
        doctor(nn.Linear(16, 4), args(), precision="int8-dynamic")
