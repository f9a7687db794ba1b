"""precision=: inputs and outputs, weights, bodies, functions, stages, what is refused, what the result tells."""

import json

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from torch_onnx_compat import Bfloat16, CompatError, Dynamic, Float16, Int8, WeightOnly, export_compat


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 5)

    def forward(self, image):
        return self.head(self.norm(self.conv(image)).relu().mean((2, 3))).softmax(-1)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64))

    def forward(self, x):
        return (x @ self.weight).relu() @ self.weight


class Flow(nn.Module):
    """A branch and a loop in the file."""

    def __init__(self):
        super().__init__()
        self.step = nn.Linear(4, 4)

    def forward(self, x):
        y = x
        for _ in range(int(x.shape[0])):
            y = torch.tanh(self.step(y)) + x
        return y * 2 if x.sum() > 0 else y.abs()


IMAGE = torch.rand(2, 3, 12, 12)


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


def types(result):
    session = result.session()
    return [value.type for value in (*session.get_inputs(), *session.get_outputs())]


def initializer_types(result):
    return {tensor.data_type for tensor in result.model_proto.graph.initializer if len(tensor.dims) > 1}


def test_everything_is_narrow_and_the_file_half_as_large(net, exporter):
    result = export_compat(net, IMAGE, dynamic="batch", precision="float16", exporter=exporter)
    assert result.precision.narrow
    assert result.precision.wide == 0
    assert result.precision.casts == 2
    assert result.precision.share == 1.0
    assert initializer_types(result) == {onnx.TensorProto.FLOAT16}
    assert types(result) == ["tensor(float)", "tensor(float)"]
    onnx.checker.check_model(result.model_proto, full_check=True)
    wanted = net(torch.cat([IMAGE, IMAGE]))
    assert torch.allclose(result(torch.cat([IMAGE, IMAGE]))[0], wanted, atol=2e-3)


def test_inputs_and_outputs_become_narrow_where_asked(net):
    result = export_compat(net, IMAGE, dynamic="batch", precision=Float16(keep_io=False))
    assert types(result) == ["tensor(float16)", "tensor(float16)"]
    assert result.precision.casts == 0
    assert result(IMAGE)[0].dtype is torch.float16


def test_what_the_caller_keeps_stays_in_float32(net):
    result = export_compat(net, IMAGE, precision=Float16(keep=["head", "Softmax"]))
    kept = {row.op_type for row in result.precision.kept if row.why == "keep"}
    assert kept == {"Gemm", "Softmax"}
    assert onnx.TensorProto.FLOAT in initializer_types(result)


@pytest.mark.parametrize("asked", [Float16, Bfloat16, Int8, Dynamic, WeightOnly])
def test_a_misspelt_place_to_keep_is_refused(net, asked):
    narrower = asked([IMAGE], keep=["hed"]) if asked is Int8 else asked(keep=["hed"])
    with pytest.raises(CompatError, match=r"unknown place to keep in float32 'hed'; did you mean 'head'\?"):
        export_compat(net, IMAGE, precision=narrower)


def test_a_place_to_keep_that_the_file_lacks_is_told(net):
    result = export_compat(net, IMAGE, precision=Float16(keep=["LSTM", "head"]))
    (note,) = [note for note in result.precision.notes if note.startswith("keep:")]
    assert "no node of the file is a LSTM" in note


def test_a_shared_weight_is_stored_once():
    result = export_compat(Shared(), torch.randn(3, 64), precision="float16")
    assert sum(np.prod(t.dims) for t in result.model_proto.graph.initializer if len(t.dims) > 1) <= 64 * 64
    assert initializer_types(result) == {onnx.TensorProto.FLOAT16}


@pytest.mark.dynamo_from("2.9", "scan is not exported")
def test_bodies_of_branches_and_loops_hold_narrow_nodes(exporter):
    torch.manual_seed(0)
    model = Flow().eval()
    result = export_compat(model, torch.rand(4, 4), dynamic="batch", precision="float16", exporter=exporter)
    loops = [node for node in result.model_proto.graph.node if node.op_type in ("Loop", "Scan")]
    assert loops
    casts = [node.op_type for loop in loops for a in loop.attribute for node in a.g.node]
    assert "Cast" in casts
    for rows in (1, 6):
        x = torch.rand(rows, 4)
        assert torch.allclose(result(x)[0], model(x), atol=5e-3)
    assert torch.allclose(result(-torch.rand(4, 4))[0].sign(), torch.ones(4, 4))


def test_functions_hold_narrow_nodes():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    x = torch.randn(3, 8)
    result = export_compat(model, x, precision="float16", keep_as_function=[nn.Linear])
    casts = [node.op_type for function in result.model_proto.functions for node in function.node]
    assert "Cast" in casts
    assert torch.allclose(result(x)[0], model(x), atol=5e-3)


def test_weights_outside_are_narrow(net, tmp_path):
    sizes = {}
    for precision in ("float32", "float16"):
        path = tmp_path / f"{precision}.onnx"
        wide = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8)).eval()
        export_compat(wide, torch.randn(2, 64), path, precision=precision, external_data=True)
        sizes[precision] = path.with_name(f"{path.name}.data").stat().st_size
    assert sizes["float16"] < 0.6 * sizes["float32"]


def test_the_file_runs_without_onnxruntimes_optimisations(net, exporter):
    result = export_compat(net, IMAGE, dynamic="batch", precision="float16", exporter=exporter)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    (found,) = result.session(sess_options=options).run(None, {"image": IMAGE.numpy()})
    assert np.allclose(found, net(IMAGE).detach().numpy(), atol=2e-3)


def test_preprocessing_that_is_taken_out_stays_as_it_is(net):
    class WithPreprocessing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, image):
            return self.net((image / 255 - 0.45) / 0.22)

    result = export_compat(WithPreprocessing(), IMAGE * 255, precision="float16", preprocess="extract")
    assert result.precision.errors
    assert all(row.ok for row in result.precision.errors)


def test_bfloat16_is_judged_by_its_rendering(net):
    result = export_compat(net, IMAGE, dynamic="batch", precision="bfloat16")
    assert result.opset == 22
    assert result.precision.wide == 0
    assert all(row.file is None and row.rendering.worst < 0.05 for row in result.precision.errors)
    assert any("no implementation" in n or "rendering alone" in n for n in result.precision.notes)


def test_the_result_tells_what_stayed_and_why():
    result = export_compat(lambda x: torch.sin(x * 3000), torch.rand(3, 20), precision="float16")
    rows = {row.op_type: row for row in result.precision.kept}
    assert rows["Sin"].loss > 0.1
    text = str(result)
    assert "float16: 0 of 2 nodes" in text
    assert "by itself" in text
    assert "eager float16" in text
    told = json.loads(json.dumps(result.to_dict(), default=str))
    assert told["precision"]["format"] == "float16"


def test_a_limit_that_nothing_meets_leaves_float32(net):
    result = export_compat(net, IMAGE, precision=Float16(limit=1e-7))
    assert result.precision.narrow == 0
    assert any("nothing is in float16" in note for note in result.precision.notes)
    assert initializer_types(result) == {onnx.TensorProto.FLOAT}


def test_samples_are_measured():
    class Square(nn.Module):
        def forward(self, x):
            return (x * x).sum(-1).sqrt()

    x = torch.rand(2, 16)
    assert export_compat(Square(), x, precision="float16").precision.wide == 0
    with_sample = export_compat(Square(), x, precision=Float16(samples=[(x * 1000,)]))
    assert with_sample.precision.wide > 0


def test_without_verification_nothing_is_judged(net):
    result = export_compat(net, IMAGE, precision="float16", verify=False)
    assert not result.precision.errors
    assert result.precision.narrow
    assert "NOT verified" in str(result)


def test_the_model_is_as_it_was(net):
    before = {name: (tensor.dtype, tensor.clone()) for name, tensor in net.state_dict().items()}
    export_compat(net, IMAGE, precision=Float16(keep_io=False))
    for name, tensor in net.state_dict().items():
        assert tensor.dtype is before[name][0]
        assert torch.equal(tensor, before[name][1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "fp16"}, "did you mean 'float16'"),
        ({"precision": 16}, "is a int; wanted 'float32'"),
        ({"precision": "float16", "export_params": False}, "contradict each other"),
        ({"precision": "float16", "split": ["conv"]}, "cannot be combined"),
        ({"precision": "bfloat16", "opset_version": 12}, "bfloat16 needs opset 13"),
    ],
)
def test_what_cannot_be_is_refused(net, options, message):
    with pytest.raises(CompatError, match=message):
        export_compat(net, IMAGE, **options)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": float("nan")}, {"keep": "head"}, {"keep_io": 1}])
@pytest.mark.parametrize("kind", [Float16, Bfloat16])
def test_values_of_a_wrong_kind_are_refused(kind, wrong):
    with pytest.raises(CompatError, match="wanted"):
        kind(**wrong)


@pytest.mark.parametrize("ending", ["md", "html", "json"])
def test_the_report_tells_what_stayed(tmp_path, ending):
    result = export_compat(lambda x: torch.sin(x * 3000), torch.rand(3, 20), precision="float16")
    text = result.report(tmp_path / f"report.{ending}").read_text(encoding="utf-8")
    assert "by itself" in text
    assert ("Errors against eager float64" in text) == (ending != "json")


def test_the_command_line_makes_such_a_file(tmp_path):
    from typer.testing import CliRunner

    from torch_onnx_compat.cli import app

    (tmp_path / "net.py").write_text(
        "import torch\n\ndef make():\n    return torch.nn.Linear(4, 3), (torch.rand(2, 4),)\n"
    )
    command = ["export", f"{tmp_path / 'net.py'}:make", "-o", str(tmp_path / "net.onnx"), "--precision"]
    made = CliRunner().invoke(app, [*command, "float16", "--narrow-io", "--limit", "0.01"])
    assert made.exit_code == 0, made.output
    assert "float16: 1 of 1 nodes" in made.output
    refused = CliRunner().invoke(app, [*command, "float32", "--limit", "0.01"])
    assert refused.exit_code == 2
    assert "belongs to --precision" in refused.output


def test_positions_stay_exact_at_lengths_that_nobody_tried():
    class Positions(nn.Module):
        def forward(self, x):
            return x * torch.sin(torch.arange(x.shape[1]) * 0.9)

    result = export_compat(Positions(), torch.rand(2, 10), dynamic={"x": {1: "length"}}, precision="float16")
    x = torch.rand(2, 5000)
    assert torch.allclose(result(x)[0], Positions()(x), atol=2e-3)


def test_what_a_loop_carries_stays_in_float32():
    class Steps(nn.Module):
        def forward(self, x):
            y = x
            for _ in range(int(x.shape[0])):
                y = y + 0.001 * x
            return y

    result = export_compat(Steps(), torch.rand(3, 4), dynamic="batch", precision="float16")
    assert any("carried" in row.why for row in result.precision.kept)
    x = torch.rand(600, 4)
    assert torch.allclose(result(x)[0], Steps()(x), rtol=2e-3)


def test_a_row_that_is_masked_as_a_whole_is_finite():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(8, 8)

        def forward(self, x, mask):
            bias = (1 - mask.float()) * torch.finfo(torch.float32).min
            return torch.softmax(self.net(x) + bias, -1)

    torch.manual_seed(0)
    x, mask = torch.randn(3, 8), torch.randint(2, (3, 8))
    model = Masked().eval()
    result = export_compat(model, (x, mask), dynamic="batch", precision="float16")
    assert torch.allclose(result(x, torch.zeros_like(mask))[0], model(x, torch.zeros_like(mask)), atol=2e-3)


def test_values_near_the_end_of_the_range_stay_in_float32():
    result = export_compat(lambda x: torch.relu(x * 40000), torch.rand(3, 20), precision="float16")
    assert any(row.why.startswith("values up to") and row.largest > 20000 for row in result.precision.kept)


def test_a_file_that_only_moves_values_has_no_casts():
    result = export_compat(lambda x: x.transpose(0, 1)[:, ::2], torch.randn(4, 6), precision="float16")
    assert "Cast" not in result.nodes
    assert any("nothing is in float16" in note for note in result.precision.notes)
