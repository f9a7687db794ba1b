"""The internals of torch that the back ends stand on are where they were; a failure here names the one that moved."""

import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
import torch
from onnxscript import evaluator, rewriter
from torch import Tensor, nn
from torch._C._dynamo.eval_frame import get_eval_frame_callback
from torch.overrides import TorchFunctionMode

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends import internals
from torch_onnx_compat.backends.internals import decompose
from torch_onnx_compat.backends.internals.find import first_module
from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.backends.internals.transforms import is_transforming
from torch_onnx_compat.backends.internals.versions import set_versions, versions_of
from torch_onnx_compat.graph.tidy import fold, tidy


def relu(g, x):
    return g.op("Relu", x)


@pytest.fixture
def registry():
    return internals.symbolic_registry()


def test_the_registry_of_symbolics(registry):
    group = registry.get_function_group("aten::relu")
    assert {"_base", "_overrides"} <= set(vars(group._functions))
    assert internals.built_in_symbolic("aten::relu", 17) is not None
    assert internals.built_in_symbolic("aten::no_such_operator", 17) is None
    assert internals.max_torchscript_opset() == 20


def test_registered_symbolics_come_and_go(registry):
    name = "aten::relu"
    before = dict(registry.get_function_group(name)._functions._overrides)
    with internals.register_symbolics({name: relu, "acme::new": relu}, 17):
        assert registry.get_function_group(name).get(17) is relu
        assert registry.get_function_group(name).get(16) is not relu
    assert registry.get_function_group(name)._functions._overrides == before
    assert registry.get_function_group("acme::new") is None


def test_a_user_s_symbolic_comes_back(registry):
    def mine(g, x):
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.register_custom_op_symbolic("aten::relu", mine, 17)
    try:
        with internals.register_symbolics({"aten::relu": relu}, 17):
            assert registry.get_function_group("aten::relu").get(17) is relu
        assert registry.get_function_group("aten::relu").get(17) is mine
        with pytest.raises(ZeroDivisionError), internals.register_symbolics({"aten::relu": relu}, 17):
            raise ZeroDivisionError
        assert registry.get_function_group("aten::relu").get(17) is mine
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::relu", 17)


def test_torchlib_is_built_once():
    from torch.onnx._internal.exporter._registration import ONNXRegistry

    raw = vars(ONNXRegistry)["from_torchlib"]
    with internals.cache_torchlib():
        one, other = ONNXRegistry.from_torchlib(), ONNXRegistry.from_torchlib()
        one.register_op(torch.ops.aten.relu.default, relu)
        assert [m.onnx_function for m in one.get_decomps(torch.ops.aten.relu.default)] == [relu]
        assert relu not in [m.onnx_function for m in other.get_decomps(torch.ops.aten.relu.default)]
    assert vars(ONNXRegistry)["from_torchlib"] is raw
    assert internals.torchlib_function(torch.ops.aten.relu.default) is not None


def test_translations_of_one_code_share_a_signature():
    def closure(number, kind):
        def translation(x, y=None, *, alpha: float = 1.0): ...

        def plain(*args, **kwargs):
            return number

        def typed(x: kind): ...

        return translation, plain, typed

    schemas = first_module("torch.onnx._internal.exporter._schemas")
    if not hasattr(schemas, "op_signature_from_function"):
        pytest.skip("this torch reads signatures elsewhere")
    read = schemas.op_signature_from_function
    with internals.cache_torchlib():
        (with_defaults, first, of_int), (_, second, of_float) = closure(1, int), closure(2, float)
        second.__name__ = "other"
        functions = (first, second, with_defaults, of_int, of_float)
        signatures = [schemas.op_signature_from_function(f, "", f.__name__) for f in functions]
        assert signatures == [read(f, "", f.__name__) for f in functions]
        assert [signature.name for signature in signatures[:3]] == ["plain", "other", "translation"]
        assert signatures[3] != signatures[4]
    assert schemas.op_signature_from_function is read


def test_tables_are_made_once_for_the_same_translations():
    registry = first_module("torch.onnx._internal.exporter._registration").ONNXRegistry.from_torchlib()
    tables = decompose.tables_of(registry)
    assert decompose.tables_of(registry) is tables
    with torch.library._scoped_library("torch_onnx_compat_tables", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor", tags=())
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        assert decompose.tables_of(registry) is not tables
    forms = torch._decomp.decomposition_table
    forms[torch.ops.aten.sinc.default], before = (lambda x: x), forms[torch.ops.aten.sinc.default]
    try:
        assert decompose.tables_of(registry) is not tables
    finally:
        forms[torch.ops.aten.sinc.default] = before
    assert decompose.tables_of(registry) is tables


_WITHOUT_DYNAMO = """
import sys, torch
from torch import nn
from torch_onnx_compat import export_compat
export_compat(nn.Conv2d(3, 4, 3).eval(), (torch.rand(2, 3, 8, 8),), sys.argv[1], exporter="torchscript")
sys.exit("torch._dynamo" in sys.modules)
"""


def test_an_export_does_not_load_torch_dynamo(tmp_path):
    """It takes more than a second, and torch's own way to run a mode loads it."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", _WITHOUT_DYNAMO, str(tmp_path / "x.onnx")], check=True)


def test_modes_are_not_compiled():
    class Log(DispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, get_eval_frame_callback()))
            return func(*args, **(kwargs or {}))

    seen = []
    x = torch.rand(3)
    with Log():
        torch.sin(x)
    assert [func for func, _ in seen] == [torch.ops.aten.sin.default]
    compiled = torch.compile(lambda t: torch.cos(t) + 1, backend="eager")
    compiled(x)
    seen.clear()
    with Log():
        compiled(x)
    assert seen
    assert not any(callback for _, callback in seen)


@pytest.mark.one_exporter
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_transforms(axis, exporter):
    """Tensors inside torch.vmap stand for whole ones, and their axis may come out anywhere."""

    class Mapped(nn.Module):
        def forward(self, x):
            def one(row):
                made = row.flip(0) @ row.transpose(0, 1)
                made[0] += row.sum()
                return made

            return torch.vmap(one, in_dims=1, out_dims=axis)(x)

    module = first_module("torch._functorch.vmap")
    before = module._remove_batch_dim
    model, x = Mapped(), torch.randn(4, 3, 5)
    result = export_compat(model, (x,), exporter=exporter, dynamic="batch")
    assert module._remove_batch_dim is before
    for sample in (x, torch.randn(2, 3, 5)):
        found = result.session().run(None, {"x": sample.numpy()})[0]
        np.testing.assert_allclose(found, model(sample).numpy(), rtol=1e-4, atol=1e-5)


def test_overloads():
    assert torch.ops.aten.fmod.Tensor in internals.overloads("aten::fmod")
    assert internals.overloads("aten::no_such_operator") == []
    assert internals.overloads("no_such_namespace::operator") == []


def test_schemas_tell_views():
    views = internals.names_of_views()
    assert {"select", "narrow", "view", "expand", "detach", "contiguous", "unbind", "split_with_sizes"} <= views
    assert not {"clone", "add", "add_", "relu_", "flip", "cat"} & views


def test_schemas_tell_numbers():
    assert internals.places_of_numbers("mul") == {1: True, "other": True}
    assert internals.places_of_numbers("__and__") == internals.places_of_numbers("__eq__") == {1: True, "other": True}
    assert internals.places_of_numbers("full_like") == {1: False, "fill_value": False}
    assert internals.places_of_numbers("relu") == internals.places_of_numbers("no_such_operator") == {}


def test_torch_keeps_the_owner_of_a_view():
    whole, apart = torch.zeros(2), torch.zeros(2)
    part, detached = whole[:1], apart.detach()
    assert internals.is_kept_by_torch(whole)
    assert not internals.is_kept_by_torch(part)
    assert not internals.is_kept_by_torch(apart)
    assert not internals.is_kept_by_torch(detached)


def test_the_tracer():
    """Tracing state can be set aside, and traced values can be told apart and followed back."""

    class Model(nn.Module):
        def forward(self, x):
            state = torch._C._get_tracing_state()
            torch._C._set_tracing_state(None)
            aside = x + 1
            torch._C._set_tracing_state(state)
            size = x.shape[0]
            value = torch._C._get_value_trace(size)
            assert value.node().kind() == "prim::NumToTensor"
            assert next(value.node().inputs()).node().kind() == "aten::size"
            assert isinstance(value.unique(), int)
            return x * 2 + aside.sum()

    graph, _ = torch.jit._get_trace_graph(Model(), (torch.rand(3),))
    assert [n.kind() for n in graph.nodes()].count("aten::add") == 1


def test_the_recorder_takes_nodes():
    """DynamoOps adds its nodes to the list of the evaluator that the exporter makes current."""
    from torch.onnx._internal.exporter import _building

    assert "self.nodes" in Path(_building.__file__).read_text(encoding="utf-8")
    assert callable(evaluator.default)


def test_the_optimiser_s_rules():
    names = {str(rule.name) for rule in rewriter._DEFAULT_REWRITE_RULES}
    left_out = {"SlicesSplit", "ScatterAllStatic"}
    assert left_out <= names
    assert {str(rule.name) for rule in fold._rules()} == names - left_out


def test_python_functions_ask_for_modes():
    """Watcher steps into them by answering that question; if they ask otherwise, what they call is hidden."""
    from torch_onnx_compat.watch import Watcher, _without_dispatch

    assert _without_dispatch(torch.nn.functional.multi_head_attention_forward) is not None
    assert _without_dispatch(torch.nn.functional.grid_sample) is not None
    assert not isinstance(torch.relu, types.FunctionType)
    assert _without_dispatch(Tensor.unflatten) is None, (
        "a method that calls super() would hand itself to the mode for ever"
    )
    seen = []

    class Log(Watcher):
        def watch(self, func, args, kwargs):
            seen.append(getattr(func, "__name__", ""))
            return self.pass_on(func, args, kwargs)

    image, grid = torch.rand(1, 1, 2, 2), torch.zeros(1, 2, 2, 2)
    with Log():
        torch.nn.functional.grid_sample(image, grid, align_corners=False)
    assert [name for name in seen if name.startswith("grid")] == ["grid_sample", "grid_sampler"]


def test_values_that_fold():
    """The cleaning passes that tidy is made of exist and work in place."""
    model = ir.from_onnx_text(
        '<ir_version: 10, opset_import: ["" : 20]> agraph (float[2] x) => (float[2] y) {'
        "two = Constant<value_float = 2.0>() three = Add(two, two) y = Mul(x, three) unused = Relu(x) }"
    )
    tidy.tidy(model, fold=True)
    assert [n.op_type for n in model.graph] == ["Mul"]


def test_counts_of_writes_are_put_back():
    tensors = [torch.zeros(2), torch.ones(3)]
    before = versions_of(tensors)
    for tensor in tensors:
        tensor.add_(1)
    assert versions_of(tensors) == tuple(version + 1 for version in before)
    set_versions(tensors, before)
    assert versions_of(tensors) == before


def test_what_a_capture_takes_for_pythons_functions():
    """torch.export puts functions of its own in the place of max and min; what they stand for is known."""
    seen = []

    class Model(torch.nn.Module):
        def forward(self, x):
            seen.extend((max, min))
            return x

    own = max, min
    torch.export.export(Model(), (torch.ones(2),), strict=False)
    assert tuple(map(internals.pythons_own, seen)) == own
    assert tuple(map(internals.pythons_own, own)) == own


def test_modes_hear_of_pad_sequence():
    heard = []

    class Listens(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append((func, len(args)))
            return func(*args, **(kwargs or {}))

    with Listens():
        torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(3)], True, 0.5)
    assert (internals.pad_sequence(), 4 if torch.__version__ >= "2.6" else 3) in heard


def test_who_transforms_is_known():
    seen = []
    torch.vmap(lambda x: seen.append(is_transforming()) or x)(torch.ones(2))
    assert seen == [True]
    assert not is_transforming()


def test_operands_are_merged_while_a_capture_runs():
    utils = first_module("torch._export.utils")
    plain = utils._name_hoo_subgraph_placeholders
    with internals.merging_operands():
        assert utils._name_hoo_subgraph_placeholders is not plain
    with pytest.raises(KeyboardInterrupt), internals.merging_operands():
        raise KeyboardInterrupt
    assert utils._name_hoo_subgraph_placeholders is plain
