import importlib.util

import pytest
import sympy
import torch
from torch import nn

from torch_onnx_compat import export_compat, rewrite
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.places import PlaceSet, first_line, is_user_file, module_path


@pytest.mark.parametrize("name", ["roll_to_slices", "remainder"])
def test_entries_are_no_code_of_the_user(name):
    assert not is_user_file(catalogue()[name].body.__code__.co_filename)


def test_the_rest_is():
    assert is_user_file(__file__)
    for name in ("rewrites", "torch", "torch_onnx_compat", "onnxruntime"):
        assert is_user_file(f"/home/someone/{name}/model.py")
    assert not is_user_file(torch.__file__)
    assert not is_user_file(sympy.__file__)  # it would be rewritten like a model's code, and decide on traced sizes
    assert not is_user_file(rewrite.__code__.co_filename)
    assert not is_user_file("<string>")


@pytest.mark.parametrize("folder", ["torch", "torch_onnx_compat", "onnxscript", "models"])
def test_decisions_are_found_in_folders_of_any_name(folder, tmp_path, exporter):
    """ncps.torch and resnest.torch are packages of models; somebody's project may lie in a folder named torch."""
    file = tmp_path / folder / "steps.py"
    file.parent.mkdir()
    file.write_text(STEPS)
    spec = importlib.util.spec_from_file_location("steps", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = export_compat(module.Steps(), torch.rand(2, 5, 4), dynamic={"x": {1: "t"}}, exporter=exporter)
    assert "Loop" in result.nodes or "Scan" in result.nodes


STEPS = """
import torch

class Steps(torch.nn.Module):
    def forward(self, x):
        state = torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            state = torch.tanh(state + x[:, step])
        return state
"""


@pytest.mark.parametrize(
    ("scopes", "path"),
    [
        ("features features.1 features.1.0 attn", "features.1.0.attn"),
        ("layers layers.0 blocks blocks.0 attn", "layers.0.blocks.0.attn"),
        ("layers.0 blocks.0", "layers.0.blocks.0"),  # of a ModuleList, which is not called itself
        ("a a a", "a.a.a"),
        ("a unknown b", "a"),
        ("", ""),
    ],
)
def test_scopes_of_a_trace_become_a_module_path(scopes, path):
    modules = {"", "a", "a.a", "a.a.a"}
    for whole in ("features.1.0.attn", "layers.0.blocks.0.attn"):
        parts = whole.split(".")
        modules |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    assert module_path(scopes.split(), modules) == path


def test_children_of_a_sequential_model_have_their_own_names():
    model = nn.Sequential(nn.Linear(3, 3), nn.Sequential(nn.ReLU(), nn.Linear(3, 2))).eval()
    result = export_compat(model, torch.rand(2, 3), exporter="torchscript")
    assert [node.name for node in result.model_proto.graph.node] == ["/0/Gemm", "/1/1.0/Relu", "/1/1.1/Gemm"]


def test_a_child_may_be_called_as_the_adapter():
    model = nn.ModuleDict({"twin": nn.Sequential(nn.Linear(3, 3))})
    model.forward = lambda x: model["twin"](x)
    result = export_compat(model.eval(), torch.rand(2, 3), exporter="torchscript")
    assert [node.name for node in result.model_proto.graph.node] == ["/twin/twin.0/Gemm"]


def test_the_line_of_an_error_that_says_something():
    quoted = "The following operation failed in the TorchScript interpreter.\n  code\nRuntimeError: sizes 7 and 5\n"
    assert first_line(RuntimeError(quoted)) == "RuntimeError: sizes 7 and 5"
    assert first_line(ValueError("\nno bias\nat a.py:3")) == "no bias"
    assert first_line(ValueError()) == "ValueError"


@pytest.mark.parametrize(
    ("text", "is_there"),
    [
        ("models/net.py:4", True),
        ("net.py:4", True),
        ("/home/someone/models/net.py:4", True),
        ("C:\\models\\net.py:4", True),
        ("net.py:41", False),
        ("et.py:4", False),
        ("others/net.py:4", False),
        ("net.py", False),
    ],
)
def test_places_that_a_caller_names(text, is_there):
    places = PlaceSet([text])
    assert ("models/net.py:4" in places) == is_there
    assert places.unmet == (() if is_there else (text,))
