"""export_compat end to end: what it takes, what it returns, and that it is a drop-in for torch.onnx.export."""

import dataclasses
import inspect
import io
import json
import threading
from collections import namedtuple
from contextvars import ContextVar

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.export import Dim

from torch_onnx_compat import CompatError, Verify, export_compat, plan, rewrite, symbolic
from torch_onnx_compat.errors import UnsupportedError, VerificationError
from torch_onnx_compat.publish import publish
from torch_onnx_compat.request import IGNORED_AT_DEFAULTS
from torch_onnx_compat.targets import Row, Target

Point = namedtuple("Point", "x y")


@dataclasses.dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor | None = None


class Nested(nn.Module):
    def forward(self, image, boxes, *, scale=None, extra=None, mode="sum"):
        total = image.mean() + boxes[0].sum() + boxes[1]["b"].sum()
        if scale is not None:
            total = total * scale
        if extra is not None:
            total = total + extra.left.sum()
        assert mode == "sum"
        return {"total": total, "pair": Pair(image * 2, None), "point": Point(boxes[0], [boxes[1]["b"] + 1]), "n": 3}


def nested_arguments():
    args = (torch.rand(2, 3), [torch.rand(2, 4), {"b": torch.rand(2)}])
    kwargs = {"scale": torch.rand(()), "extra": Pair(torch.rand(2)), "mode": "sum"}
    return args, kwargs


def test_nested_inputs_and_outputs(exporter):
    args, kwargs = nested_arguments()
    dynamic = {"image": "batch", "boxes": [{0: "batch"}, {"b": {0: "batch"}}]}
    result = export_compat(Nested(), args, kwargs=kwargs, exporter=exporter, dynamic=dynamic)
    graph = result.model_proto.graph
    assert [i.name for i in graph.input] == ["image", "boxes_0", "boxes_1_b", "scale", "extra_left"]
    assert [o.name for o in graph.output] == ["total", "pair_left", "point_x", "point_y_0", "n"]
    assert [d.dim_param or d.dim_value for d in graph.input[2].type.tensor_type.shape.dim] == ["batch"]


def test_names_asked_for_are_the_names(exporter):
    model = nn.Linear(3, 2).eval()
    result = export_compat(
        model,
        (torch.rand(4, 3),),
        exporter=exporter,
        input_names=["data"],
        output_names=["score"],
        dynamic={"data": "n"},
    )
    graph = result.model_proto.graph
    assert (graph.input[0].name, graph.output[0].name) == ("data", "score")
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"
    assert graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"


class Odd(nn.Module):
    def forward(self, x, unused, y):
        return x, x, y + 1, torch.ones(2), None


def test_unused_inputs_and_passed_through_outputs(exporter):
    result = export_compat(Odd(), (torch.rand(2), torch.rand(3), torch.rand(2)), exporter=exporter)
    graph = result.model_proto.graph
    assert [i.name for i in graph.input] == ["x", "unused", "y"]
    assert len(graph.output) == len({o.name for o in graph.output}) == 4


def test_the_same_tensor_twice_stays_two_inputs(exporter):
    x = torch.rand(2, 2)
    result = export_compat(Odd(), (x, x, x), exporter=exporter)
    assert len(result.model_proto.graph.input) == 3


def test_f_is_a_path_a_file_or_none(exporter, tmp_path):
    model = nn.Linear(3, 2).eval()
    on_disk = export_compat(model, torch.rand(4, 3), tmp_path / "a.onnx", exporter=exporter)
    assert on_disk.path == tmp_path / "a.onnx"
    buffer = io.BytesIO()
    written = export_compat(model, torch.rand(4, 3), buffer, exporter=exporter)
    assert written.path is None
    onnx.checker.check_model(onnx.load_model_from_string(buffer.getvalue()))
    with pytest.raises(CompatError, match="written to a file object"):
        written.session()
    kept = export_compat(model, torch.rand(4, 3), exporter=exporter)
    assert kept.session().get_inputs()[0].name == "input"


def test_external_data_when_asked(exporter, tmp_path):
    model = nn.Linear(64, 64).eval()
    result = export_compat(model, torch.rand(4, 64), tmp_path / "a.onnx", exporter=exporter, external_data=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]
    assert result.session().run(None, {"input": np.ones((4, 64), np.float32)})


def test_large_models_lie_in_two_files(exporter, tmp_path, monkeypatch):
    """As above 1.5 GB, at a limit that a test can reach."""
    monkeypatch.setattr(publish, "INLINE_LIMIT", 1000)
    model = nn.Linear(64, 64).eval()
    result = export_compat(model, torch.rand(4, 64), tmp_path / "a.onnx", exporter=exporter, dynamic="batch")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "a.onnx.data"]
    assert result.table


def test_old_weights_come_back_when_the_model_cannot_be_replaced(exporter, tmp_path, monkeypatch):
    import os

    (tmp_path / "a.onnx").write_bytes(b"old model")
    (tmp_path / "a.onnx.data").write_bytes(b"old weights")
    replace = os.replace

    def fail(source, target):
        if str(target).endswith("a.onnx"):
            raise OSError(13, "Permission denied")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(CompatError, match="Permission denied; the old file"):
        export_compat(MODEL, (X,), tmp_path / "a.onnx", exporter=exporter, external_data=True)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {
        "a.onnx": b"old model",
        "a.onnx.data": b"old weights",
    }


def test_the_result_serves_as_torch_s_program(exporter, tmp_path):
    model = nn.Linear(3, 2).eval()
    program = export_compat(model, (torch.rand(4, 3),), dynamic_shapes=({0: "n"},), exporter=exporter)
    program.save(tmp_path / "saved.onnx")
    onnx.checker.check_model(tmp_path / "saved.onnx")
    x = torch.rand(7, 3)
    torch.testing.assert_close(program(x)[0], model(x))


@pytest.mark.parametrize("dynamo", [False, True])
def test_file_does_not_say_that_pytorch_made_it(tmp_path, dynamo):
    """OpenCV's classic engine counts the padding in every AveragePool of PyTorch's files, whatever the node says."""
    export_compat(nn.ReLU(), (torch.randn(2),), tmp_path / "m.onnx", dynamo=dynamo)
    assert onnx.load(tmp_path / "m.onnx").producer_name == "torch_onnx_compat"


def test_metadata_and_result(exporter, tmp_path):
    class Model(nn.Module):
        def forward(self, x):
            return torch.fmod(x, 2.5) if exporter == "dynamo" else x // 2

    x = torch.randint(-9, 9, (2, 3)) if exporter == "torchscript" else torch.randn(2, 3)
    result = export_compat(Model(), x, tmp_path / "m.onnx", exporter=exporter, dynamic="batch")
    metadata = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert metadata["torch_onnx_compat.exporter"] == exporter
    assert metadata["torch_onnx_compat.verified"] == "yes"
    assert metadata["torch_onnx_compat.target"] == "onnxruntime"
    assert "tolerance" in " ".join(metadata)
    plain = json.loads(json.dumps(result.to_dict()))
    assert plain["exporter"] == exporter
    cases = {row["case"] for row in plain["table"]}
    assert cases >= {"example", "batch=1", "batch=5"}
    assert f"verified on {len(cases)} cases" in str(result)
    assert set(result.seconds) == {"prepare", "observe", "plan", "rewrite", "export", "finish", "check", "publish"}


def test_metadata_of_the_caller(tmp_path):
    export_compat(nn.ReLU(), torch.rand(3, 4), tmp_path / "m.onnx", dynamic="batch", metadata={"names": "cat, dog"})
    metadata = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert metadata["names"] == "cat, dog"
    assert json.loads(metadata["torch_onnx_compat.sizes"]) == {"batch": 3}


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("names", r"metadata='names': wanted a dict of texts"),
        ({"stride": 32}, r"metadata\['stride'\] is a int; ONNX's metadata are texts by texts: use str\(\) or json"),
        ({"torch_onnx_compat.version": "9"}, "names that begin with 'torch_onnx_compat.' are the export's own"),
    ],
)
def test_metadata_that_onnx_does_not_take(metadata, message):
    with pytest.raises(CompatError, match=message):
        export_compat(nn.ReLU(), torch.rand(3), metadata=metadata)


# The keywords of torch.onnx.export


def test_every_keyword_of_torch_is_accepted():
    theirs = set(inspect.signature(torch.onnx.export).parameters) - {"_"}
    assert theirs <= {*inspect.signature(export_compat).parameters, *IGNORED_AT_DEFAULTS}


def test_a_report_as_torch_s_keyword_asks(tmp_path):
    export_compat(nn.ReLU(), torch.rand(3), report=True, artifacts_dir=tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("onnx_export_")
    assert file.name.endswith("_success.md")
    assert "Relu" in file.read_text(encoding="utf-8")


def test_a_report_of_a_failure(tmp_path):
    with pytest.raises(CompatError) as caught:
        export_compat(lambda x: x.numpy().sum(), torch.rand(3), report=True, artifacts_dir=tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.name.endswith("_failure.md")
    assert str(caught.value).splitlines()[0] in file.read_text(encoding="utf-8")


def test_a_report_into_no_folder(tmp_path):
    with pytest.raises(CompatError, match=r"artifacts_dir=.* is no folder"):
        export_compat(nn.ReLU(), torch.rand(3), report=True, artifacts_dir=tmp_path / "missing")


def test_dynamic_axes_and_dynamic_shapes_on_either_exporter(exporter):
    model = nn.Linear(3, 2).eval()
    for spec in (
        {"dynamic_axes": {"input": {0: "n"}, "output": {0: "n"}}, "input_names": ["input"], "output_names": ["output"]},
        {"dynamic_axes": {"input": [0]}},
        {"dynamic_shapes": {"input": {0: "n"}}},
        {"dynamic_shapes": ({0: Dim("n", min=1, max=64)},)},
        {"dynamic_shapes": ({0: Dim("n")},)},
        {"dynamic_shapes": {"input": {0: Dim("n", min=1)}}},
        {"dynamic": {"input": {0: Dim("n", min=2)}}},
        {"dynamic_shapes": ({0: Dim.DYNAMIC},)},
        {"dynamic_shapes": ((Dim.AUTO, None),)},
    ):
        result = export_compat(model, torch.rand(4, 3), exporter=exporter, **spec)
        assert result.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param


def test_older_spellings():
    model = nn.Linear(3, 2).eval()
    assert export_compat(model, torch.rand(4, 3), dynamo=False).exporter == "torchscript"
    assert export_compat(model, (torch.rand(4, 3), {}), dynamo=True).exporter == "dynamo"
    result = export_compat(Nested(), (*nested_arguments()[0], {"mode": "sum"}), dynamo=False)
    assert result.table


def test_weights_as_inputs(exporter):
    model = nn.Linear(3, 2).eval()
    both = export_compat(model, torch.rand(4, 3), exporter=exporter, keep_initializers_as_inputs=True)
    graph = both.model_proto.graph
    assert {i.name for i in graph.initializer} <= {i.name for i in graph.input}
    without = export_compat(model, torch.rand(4, 3), exporter=exporter, export_params=False)
    assert not without.model_proto.graph.initializer
    assert len(without.model_proto.graph.input) == 3


def test_training_mode_is_kept_when_asked(exporter):
    model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.9)).train()
    mode = torch.onnx.TrainingMode.TRAINING
    result = export_compat(model, torch.ones(4, 3), exporter=exporter, training=mode, verify=False)
    assert result.nodes["Dropout"] == 1 or result.nodes.keys() & {"RandomUniformLike", "Bernoulli", "Dropout"}


def test_custom_translation_table():
    def my_relu(x):
        import onnxscript

        return onnxscript.opset18.Max(x, onnxscript.opset18.CastLike(onnxscript.opset18.Constant(value_float=0.0), x))

    table = {torch.ops.aten.relu.default: my_relu}
    result = export_compat(nn.ReLU(), torch.randn(3), custom_translation_table=table)
    assert result.exporter == "dynamo"
    assert result.nodes["Relu"] == 0


# Other kinds of model


def test_functions_scripted_modules_and_exported_programs(exporter):
    x = torch.rand(3, 4)
    assert export_compat(lambda x: x * 2, x, exporter=exporter).table
    program = torch.export.export(nn.Linear(4, 2).eval(), (x,), dynamic_shapes=({0: Dim("batch")},))
    result = export_compat(program, exporter=exporter)
    assert {row.case for row in result.table} >= {"example"}
    assert result.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_scripted_modules_with_control_flow():
    class Branch(nn.Module):
        def forward(self, x):
            if x.sum() > 0:
                return x * 2
            return x - 1

    result = export_compat(torch.jit.script(Branch()), torch.rand(3), samples=[(-torch.rand(3),)])
    assert result.exporter == "torchscript"
    assert {row.case for row in result.table} >= {"example", "sample 0", "other values 1"}


def test_wrapped_models(exporter):
    inner = nn.Linear(4, 2).eval()
    for model in (
        nn.DataParallel(inner),
        torch.compile(inner),
        nn.Sequential(nn.DataParallel(inner), torch.compile(nn.ReLU())),
    ):
        assert export_compat(model, torch.rand(3, 4), exporter=exporter).table


# Choosing the back end


def test_auto_takes_the_cheaper_one_when_it_is_right():
    result = export_compat(nn.Linear(3, 2).eval(), torch.rand(4, 3))
    assert result.exporter == "torchscript"
    assert not result.rejected


def test_auto_says_why_the_first_lost():
    class Item(nn.Module):
        def forward(self, x):
            return x * x[0].item()

    result = export_compat(Item(), torch.rand(4), control_flow=False)
    assert result.exporter == "dynamo"
    assert "item() of the values" in result.rejected["torchscript"]
    assert "was tried first and lost" in str(result)


def test_a_refusal_says_why_entries_did_not_help(exporter):
    with pytest.raises(CompatError, match=r"erfinv_to_polynomials declined: .*allow_approximate=True admits it"):
        export_compat(lambda x: torch.erfinv(x), torch.tensor([0.5, -0.2]), exporter=exporter)


def test_rewrites_hold_for_in_place_forms(exporter):
    @rewrite(torch.frac, name="a", needed_on=("torchscript", "dynamo"), registry=None)
    def by_fmod(input):
        return torch.fmod(input, 1)

    @rewrite(torch.Tensor.__or__, name="b", needed_on=("torchscript", "dynamo"), registry=None)
    def by_sum(input, other):
        return input + other - (input & other)

    def model(x, i):
        x, i, row = x * 2, i + 1, x[0] + 1
        kept = i
        i |= 5
        return x.frac_(), x, i, kept, row.frac_()

    stock = ["frac_to_fmod", "bitwise_or_to_bits"]
    args = (torch.tensor([[1.7, -2.3], [0.4, 8.9]]), torch.tensor([[3, 4], [8, -2]]))
    result = export_compat(model, args, exporter=exporter, opset_version=18, rewrites=[by_fmod, by_sum], exclude=stock)
    assert {"a", "b"} <= {note.entry for note in result.applied}


def test_the_body_of_an_entry_is_mended_by_other_entries(exporter):
    """A call in a body is the exporter's like the model's own, where stock may write it wrong."""

    @rewrite(torch.frac, name="a", needed_on=("torchscript", "dynamo"), registry=None)
    def by_fmod(input):
        return torch.fmod(input, 1)

    @rewrite(torch.fmod, name="b", needed_on=("torchscript", "dynamo"), registry=None)
    def by_division(input, other):
        return input - torch.trunc(input / other) * other

    def model(x):
        return x.frac(), x.frac_()

    x = torch.tensor([[1.7, -2.3], [0.4, 8.9]])
    result = export_compat(model, x, exporter=exporter, rewrites=[by_fmod, by_division], exclude=["frac_to_fmod"])
    assert {"a", "b"} <= {note.entry for note in result.applied}
    assert "Mod" not in result.nodes


def test_an_axis_that_the_model_fixes_is_an_error(exporter):
    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(4, 3) + torch.ones(4, 3)

    with pytest.raises(CompatError, match=r"'batch'.*takes no size but 4|came out fixed at 4"):
        export_compat(Fixed(), torch.rand(4, 3), dynamic="batch", exporter=exporter)


def test_an_axis_that_torch_export_fixes_is_told_with_the_place():
    class Windowed(nn.Module):
        def forward(self, x):
            return x * torch.kaiser_window(x.shape[1])

    told = r"'n'.*came out fixed at 9; .*test_export.py:\d+ asks for n as a number"
    with pytest.raises(CompatError, match=told) as error:
        export_compat(Windowed(), torch.rand(4, 9), dynamic={"x": {1: "n"}}, exporter="dynamo")
    assert "diagnosis: the model's code fixes an axis" in str(error.value)


# Custom operators and autograd Functions


@torch.library.custom_op("torch_onnx_compat_test::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@double.register_fake
def _(x):
    return torch.empty_like(x)


def test_custom_operators(exporter):
    @symbolic("torch_onnx_compat_test::double", always=True, registry=None)
    def lower_double(op, x):
        return op.Mul(x, 2)

    class Model(nn.Module):
        def forward(self, x):
            return double(x) + 1

    result = export_compat(Model(), torch.rand(3), exporter=exporter, symbolics=[lower_double])
    assert result.applied[0].entry == "lower_double"


class Clip6(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, limit):
        return x.clamp(max=limit)

    @staticmethod
    def symbolic(g, x, limit):
        return g.op("acme::Clip6", x, limit_f=limit)


class UsesFunction(nn.Module):
    def forward(self, x):
        return Clip6.apply(x * 2, 6.0) + 1


def test_symbolics_for_autograd_functions(exporter):
    @symbolic(Clip6, always=True, registry=None)
    def clip6(op, x, limit):
        return op.Min(x, float(op.number(limit)))

    result = export_compat(UsesFunction(), torch.randn(5) * 9, exporter=exporter, symbolics=[clip6])
    assert result.nodes["Min"] == 1


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return Clip6.apply(x * 2, 6.0) - 1


class UsesFunctionInFunction(nn.Module):
    def forward(self, x):
        return Outer.apply(x) * 2


def test_symbolics_for_functions_inside_of_functions(exporter):
    @symbolic(Clip6, always=True, registry=None)
    def clip6(op, x, limit):
        return op.Min(x, float(op.number(limit)))

    result = export_compat(UsesFunctionInFunction(), torch.randn(5) * 9, exporter=exporter, symbolics=[clip6])
    assert result.nodes["Min"] == 1


def test_a_function_s_own_symbolic_is_kept_when_its_domain_is_allowed(exporter):
    with pytest.raises(UnsupportedError, match=r"acme::Clip6; pass allow_custom_domains=\['acme'\]"):
        export_compat(UsesFunction(), torch.randn(5), exporter=exporter)
    for allowed in ({"allow_custom_domains": ["acme"]}, {"custom_opsets": {"acme": 1}}, {"allow_custom_domains": True}):
        result = export_compat(UsesFunction(), torch.randn(5), exporter=exporter, **allowed)
        assert result.custom_nodes == ("acme::Clip6",)
        assert any("not verified" in note for note in result.notes)


class Scaled(torch.autograd.Function):
    """Its forward reads a tensor that is no argument; its gradient is not that of what it computes."""

    @staticmethod
    def forward(ctx, holder, x):
        ctx.save_for_backward(x)
        assert not ctx.needs_input_grad[0]
        return x * holder["scale"]

    @staticmethod
    def backward(ctx, grad):
        return None, grad * 3


class WithContextApart(torch.autograd.Function):
    @staticmethod
    def forward(holder, x):
        return x + holder["scale"]

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)


class HoldsTensors(nn.Module):
    def forward(self, x):
        holder = {"scale": x.sum(0)}
        return Scaled.apply(holder, x * 2), WithContextApart.apply(holder, x)


class DifferentiatesFunctions(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad(Scaled.apply({"scale": 2.0}, x).sum(), x)[0] + x.detach()


@pytest.mark.parametrize("model", [HoldsTensors(), DifferentiatesFunctions()])
def test_functions_read_what_is_no_argument(exporter, model):
    if exporter == "torchscript" and isinstance(model, DifferentiatesFunctions):
        with pytest.raises(VerificationError):  # the tracer loses the batch of such a gradient
            export_compat(model, torch.randn(3, 4), dynamic="batch", exporter=exporter)
        return
    result = export_compat(model, torch.randn(3, 4), dynamic="batch", exporter=exporter)
    for size in (1, 5):
        x = torch.randn(size, 4)
        wanted = model(x)
        for one, other in zip(result(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.as_tensor(one), other)


# Plan


def test_plan_says_what_would_happen_and_changes_nothing(exporter):
    @rewrite(nn.ReLU, name="relu_to_clamp", always=True, registry=None)
    def relu_to_clamp(module):
        return nn.Hardtanh(0, float("inf"))

    @rewrite(nn.Tanh, name="no_tanh", registry=None)
    def no_tanh(module):
        return module

    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Sequential(nn.ReLU())).eval()
    made = plan(model, torch.rand(2, 3), exporter=exporter, rewrites=[relu_to_clamp, no_tanh], include=["no_tanh"])
    assert [(n.entry, n.places) for n in made.notes] == [("relu_to_clamp", ("1", "2.0"))]
    assert made.unused == ("no_tanh",)
    assert isinstance(model[1], nn.ReLU)
    assert "asked for and unused" in str(made)


# Targets


def test_a_target_decides_what_is_avoided(exporter):
    picky = Target("picky", opset=18, opsets=(13, 18), rows=(Row("Relu", "wrong"),))
    with pytest.raises(UnsupportedError, match="target 'picky' at opset 18: Relu wrong on picky \\(at"):
        export_compat(nn.Sequential(nn.ReLU()), torch.randn(3), exporter=exporter, target=picky)

    @rewrite(nn.ReLU, name="relu_to_max", avoids=("Relu",), registry=None)
    def relu_to_max(module):
        class Max(nn.Module):
            def forward(self, x):
                return torch.maximum(x, torch.zeros_like(x))

        return Max()

    result = export_compat(nn.ReLU(), torch.randn(3), exporter=exporter, target=picky, rewrites=[relu_to_max])
    assert result.nodes["Relu"] == 0
    assert not export_compat(nn.ReLU(), torch.randn(3), exporter=exporter, rewrites=[relu_to_max]).applied


# Verification


def test_tolerances_and_samples(exporter):
    model = nn.Linear(3, 2).eval()
    with pytest.raises(VerificationError):
        export_compat(model, torch.rand(64, 3), exporter=exporter, verify=Verify(rtol=0, atol=-1.0))
    result = export_compat(
        model, torch.rand(2, 3), exporter=exporter, samples=[(torch.rand(2, 3),), {"input": torch.rand(2, 3)}]
    )
    assert {"sample 0", "sample 1"} <= {row.case for row in result.table}


class Values(nn.Module):
    def forward(self, x):
        nothing = x[:, :0]
        return x / 0, torch.log(-x.abs()), x > 0.5, (x * 10).long(), nothing, x.double() * 2, x.half()


def test_special_values_are_judged(exporter):
    result = export_compat(Values(), torch.rand(2, 3), exporter=exporter)
    assert {row.tolerance for row in result.table} >= {"equal"}
    assert all(row.ok for row in result.table)


# Bad input

MODEL = nn.Linear(3, 2).eval()
X = torch.rand(4, 3)


class Lock:
    def __deepcopy__(self, memo):
        raise TypeError("cannot pickle '_thread.lock' object")


def uncopyable():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    model[1].guard = Lock()
    return model


def mixed_devices():
    return nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2, device="meta"))


class Locked(nn.Module):
    """Passes one thread at a time, as models that keep a cache do."""

    def __init__(self):
        super().__init__()
        self.layer, self.lock, self.kept = nn.Linear(3, 2), threading.Lock(), {"waiting": [threading.Condition()]}

    def forward(self, x):
        with self.lock, self.kept["waiting"][0]:
            return self.layer(x).relu()


def test_locks_are_shared_with_the_copy(exporter):
    model = Locked().eval()
    result = export_compat(model, X, dynamic="batch", exporter=exporter)
    x = torch.rand(5, 3)
    torch.testing.assert_close(result(x)[0], model(x))
    assert not model.lock.locked()


class Segments(nn.Module):
    """Sums of rows: the ends of the segments are sorted, and the last one is the number of rows."""

    def forward(self, x, ends):
        count = ends.shape[0] - 1
        numbers = torch.repeat_interleave(torch.arange(count), ends[1:] - ends[:-1])
        return torch.zeros(count, x.shape[1]).index_add(0, numbers, x)


def test_ends_of_segments_stay_sorted_at_other_sizes(exporter):
    model, example = Segments(), (torch.randn(9, 4), torch.tensor([0, 2, 5, 9]))
    result = export_compat(model, example, dynamic={"x": {0: "rows"}, "ends": {0: "segments"}}, exporter=exporter)
    for ends in ([0, 9], [0, 1, 5, 7, 9], [0, 0, 4], [0, 1, 4, 4]):
        x = torch.randn(ends[-1], 4)
        torch.testing.assert_close(result(x, torch.tensor(ends))[0], model(x, torch.tensor(ends)))


def test_what_is_one_in_the_example_may_be_another_axis(exporter):
    def model(x, y):
        return x + y

    example = torch.randn(3, 5), torch.randn(1, 5)
    result = export_compat(model, example, dynamic={"x": {0: "rows"}, "y": {0: "others"}}, exporter=exporter)
    for rows, others in ((4, 1), (3, 3), (7, 7), (1, 1)):
        x, y = torch.randn(rows, 5), torch.randn(others, 5)
        torch.testing.assert_close(result(x, y)[0], x + y)


def test_open_files_are_shared_with_the_copy(exporter, tmp_path):
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval()
    model.context = ContextVar("context", default=2)
    with (tmp_path / "log").open("w") as model.log:
        result = export_compat(model, X, dynamic="batch", exporter=exporter)
        model.log.write("as before")
    x = torch.rand(5, 3)
    torch.testing.assert_close(result(x)[0], model(x))
    assert (tmp_path / "log").read_text() == "as before"


BAD = [
    pytest.param(
        {"dynamic": {"imge": {0: "batch"}}}, r"dynamic: unknown input 'imge'; known: input", id="dynamic name"
    ),
    pytest.param({"dynamic": {"inputs": "b"}}, r"did you mean 'input'\?", id="dynamic did you mean"),
    pytest.param(
        {"dynamic": {"input": {5: "b"}}}, r"dynamic axis 5 of input 'input': it has 2 axes.*use 0..1", id="axis"
    ),
    pytest.param({"dynamic": "b", "dynamic_axes": {"input": [0]}}, "pass one of them", id="two specs"),
    pytest.param({"target": "onnxruntme"}, r"unknown target 'onnxruntme'; did you mean 'onnxruntime'\?", id="target"),
    pytest.param({"include": ["grid_sampl"]}, r"unknown entry 'grid_sampl'; did you mean", id="include"),
    pytest.param({"exclude": ["no such"]}, "unknown entry 'no such'", id="exclude"),
    pytest.param({"opset_version": 5}, "opset_version=5: target 'onnxruntime' takes 11..", id="low opset"),
    pytest.param({"opset_version": 99}, "opset_version=99: target 'onnxruntime' takes 11..", id="high opset"),
    pytest.param(
        {"exporter": "torchscrip"}, r"unknown exporter 'torchscrip'; did you mean 'torchscript'\?", id="exporter"
    ),
    pytest.param({"exporter": "dynamo", "dynamo": False}, "contradict each other", id="exporter and dynamo"),
    pytest.param({"input_nmes": ["a"]}, r"unknown keyword 'input_nmes'; did you mean 'input_names'\?", id="keyword"),
    pytest.param({"profile": True}, "profile=True is not supported; leave it out: result.seconds", id="profile"),
    pytest.param({"export_modules_as_functions": True}, "leave it out: keep_as_function=", id="functions of torch"),
    pytest.param({"args": (X, X)}, r"do not fit Linear.forward\(input\): too many positional arguments", id="args"),
    pytest.param({"args": ()}, "missing a required argument: 'input'", id="no args"),
    pytest.param({"args": (3,)}, "hold no tensor", id="no tensor"),
    pytest.param({"input_names": ["a", "b"]}, r"input_names has 2 names but the model has 1 input tensor", id="names"),
    pytest.param(
        {"args": (torch.rand(4, 5),)}, r"the model itself fails on the example input: RuntimeError: .*mat1", id="shape"
    ),
    pytest.param(
        {"model": uncopyable()}, r"1.guard: the model cannot be copied because this Lock cannot", id="uncopyable"
    ),
    pytest.param({"model": mixed_devices()}, r"parameter '1.weight' is on the meta device", id="meta device"),
    pytest.param({"model": 3}, "model is a int; wanted an nn.Module", id="no model"),
    pytest.param({"model": nn.Linear}, r"model is a type; .*Make one of the class: Linear\(", id="class"),
    pytest.param({"model": nn.Linear(1, 1).state_dict()}, "If it is a state_dict, load it into the", id="state_dict"),
    pytest.param({"model": nn.LazyLinear(3)}, "parameter 'weight' is of a lazy module and has no shape yet", id="lazy"),
    pytest.param({"f": 3}, "f is a int; wanted a path", id="f"),
    pytest.param({"symbolics": [print]}, "is no catalogue entry; decorate it", id="no entry"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_bad_input_gets_one_clear_error(change, message):
    arguments = {"model": MODEL, "args": (X,), **change}
    with pytest.raises(CompatError, match=message) as error:
        export_compat(arguments.pop("model"), arguments.pop("args"), arguments.pop("f", None), **arguments)
    assert "\n" not in str(error.value)


def test_unwritable_places(tmp_path, monkeypatch):
    with pytest.raises(CompatError, match=r"cannot write '.*no/such/m.onnx': there is no folder '.*no/such'; make it"):
        export_compat(MODEL, (X,), tmp_path / "no" / "such" / "m.onnx")

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    monkeypatch.setattr(publish, "write_model", full)
    with pytest.raises(CompatError, match=r"cannot write '.*m.onnx': No space left on device; the old file"):
        export_compat(MODEL, (X,), path)
    assert path.read_bytes() == b"old"


def test_errors_are_one_readable_line(capfd):
    class Refused(nn.Module):
        def forward(self, x):
            return torch.linalg.svd(x).S

    with pytest.raises(CompatError) as error:
        export_compat(Refused(), torch.rand(3, 3))
    assert len(str(error.value)) < 1500
    assert "graph(" not in str(error.value)
    out, err = capfd.readouterr()
    assert out == ""
    assert err == ""


def test_a_replaced_module_keeps_what_its_parent_reads_off_it(exporter):
    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.source = -1  # as ultralytics' layers say what they read

        def forward(self, x):
            return x * 2

    class Router(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = Layer()

        def forward(self, x):
            return self.layer([x, x + 1][self.layer.source])

    @rewrite(Layer, needed_on=("torchscript", "dynamo"), registry=None)
    def layer_to_identity(layer):
        return nn.Hardtanh(-100.0, 100.0)

    with pytest.raises(VerificationError):  # it is no equivalent, but it runs
        export_compat(Router(), (X,), exporter=exporter, rewrites=[layer_to_identity])


def test_yolo_is_exported_as_the_model_inside_and_not_told_to_train():
    class Model(nn.Module):
        __module__, __qualname__ = "ultralytics.engine.model", "Model"

        def __init__(self):
            super().__init__()
            self.model = nn.Conv2d(3, 2, 1)

        def train(self, *_, **__):
            raise AssertionError("YOLO.train() starts a training")

    class YOLO(Model):
        pass

    yolo, image = YOLO(), torch.rand(1, 3, 4, 4)
    result = export_compat(yolo, image, exporter="torchscript")
    torch.testing.assert_close(result(image)[0], yolo.model(image).detach())


class _HoldsWhatDeepcopyRefuses(nn.Module):
    def __init__(self):
        super().__init__()
        self.double = staticmethod(lambda x: x * 2)
        self.functions = torch.nn.functional

    def forward(self, x):
        return self.functions.relu(self.double(x))


def test_a_model_that_keeps_a_staticmethod_or_a_python_module():
    assert export_compat(_HoldsWhatDeepcopyRefuses(), torch.randn(2, 3), exporter="torchscript").table


# Numpy arrays


@pytest.mark.parametrize("how", ["positional", "alone", "keyword", "nested"])
def test_a_numpy_array_is_an_input(how):
    array = np.random.default_rng(0).random((2, 3), dtype=np.float32)[::-1]  # a view, which torch.from_numpy refuses
    model = (lambda x: x[0] * 2) if how == "nested" else (lambda x: x * 2)
    example = {"positional": (array,), "alone": array, "keyword": ({"x": array},), "nested": ([array],)}[how]
    result = export_compat(model, example, dynamic="batch")
    other = np.ones((5, 3), np.float32)
    (found,) = result([other]) if how == "nested" else result(other)
    np.testing.assert_array_equal(found, other * 2)
    assert array.flags.writeable


def test_samples_may_be_numpy_arrays():
    sample = np.full((4, 3), 7, np.float32)
    result = export_compat(nn.ReLU(), torch.rand(2, 3), dynamic="batch", samples=[(sample,)])
    assert any("sample" in row.case for row in result.table)


@pytest.mark.parametrize(("dtype", "told"), [(np.float64, "float64"), (np.uint8, "uint8")])
def test_an_input_of_another_type_than_the_weights(dtype, told):
    with pytest.raises(
        CompatError, match=rf"'input' is {told}, and the weights are float32: pass x.to\(torch.float32\)"
    ):
        export_compat(nn.Linear(3, 2).eval(), np.ones((2, 3), dtype))


# Axes of an ExportedProgram


class TwoInputs(nn.Module):
    def forward(self, image, mask):
        return image.mean((2, 3)), mask * 2


def captured(strict=False):
    batch = Dim("batch", max=64)
    shapes = {"image": {0: batch, 2: Dim.DYNAMIC}, "mask": {0: 2 * batch}}
    example = torch.rand(2, 3, 8, 8), torch.rand(4, 3)
    return torch.export.export(TwoInputs().eval(), example, dynamic_shapes=shapes, strict=strict)


def dims_of(result):
    graph = result.model_proto.graph
    return {v.name: [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim] for v in graph.input}


@pytest.mark.parametrize("strict", [False, True])
def test_axes_of_an_exported_program_have_the_names_of_its_dims(strict):
    result = export_compat(captured(strict))
    assert dims_of(result) == {"image": ["batch", 3, "image_dynamic_axes_3", 8], "mask": ["2*batch", 3]}
    assert [axis.most for axis in result.axes if axis.name == "batch"] == [64]


def test_axes_of_a_loaded_program_are_called_after_its_inputs(tmp_path):
    torch.export.save(captured(), tmp_path / "program.pt2")
    result = export_compat(torch.export.load(tmp_path / "program.pt2"))
    assert dims_of(result) == {
        "image": ["image_dynamic_axes_1", 3, "image_dynamic_axes_3", 8],
        "mask": ["2*image_dynamic_axes_1", 3],
    }


# Autocast


class UnderAutocast(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.conv, self.norm, self.dtype = nn.Conv2d(3, 8, 3), nn.GroupNorm(2, 8), dtype

    def forward(self, image):
        with torch.autocast("cpu", dtype=self.dtype):
            return self.norm(self.conv(image)).mean((2, 3))


@pytest.mark.parametrize(("dtype", "opset"), [(torch.float16, 20), (torch.bfloat16, 22)])
def test_a_model_under_autocast(dtype, opset, exporter):
    """Convolutions take bfloat16 from opset 22 on, which is taken where the opset was free."""
    model, image = UnderAutocast(dtype).eval(), torch.rand(1, 3, 16, 16)
    result = export_compat(model, image, dynamic="batch", exporter=exporter)
    assert result.opset == opset
    assert result.signature.names == ("image",)


def test_the_opset_that_was_asked_for_stays_under_autocast():
    with pytest.raises(VerificationError, match="pass opset_version=22") as caught:
        export_compat(UnderAutocast(torch.bfloat16).eval(), torch.rand(1, 3, 16, 16), opset_version=17)
    assert "lower opset_version" not in str(caught.value)


def test_inputs_of_several_lengths_are_told_how_to_name_their_axes():
    wanted = (
        r"axes of one name have one size\. Give each its name: dynamic=\{'x': \{0: 'batch'\}, 'y': \{0: 'batch_2'\}\}"
    )
    with pytest.raises(CompatError, match=wanted):
        export_compat(lambda x, y: x.sum() + y, (torch.rand(3), torch.rand(4)), dynamic="batch")


def test_an_entry_that_fails_names_the_line_of_its_body():
    @rewrite(nn.ReLU, name="divides", always=True, registry=None)
    def divides(module):
        return 1 / 0

    with pytest.raises(
        CompatError, match=rf"entry 'divides' \(\w+/test_export\.py:{divides.__code__.co_firstlineno + 2}"
    ):
        export_compat(nn.Sequential(nn.ReLU()), X, rewrites=[divides], exporter="torchscript")
