"""keep_as_function: modules that stay whole, as functions of the file or as nodes of the engine."""

from __future__ import annotations

from collections import Counter

import onnx
import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError, CustomNode, export_compat
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.errors import UnsupportedError


class Gate(nn.Module):
    """Two inputs, two results, a weight, and a size of its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        gate = self.mix(x).sigmoid()
        return x * gate + y * (1 - gate), gate.reshape(x.shape[0], -1).mean(1)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = Gate(width)

    def forward(self, x: Tensor) -> Tensor:
        mixed, level = self.gate(self.norm(x), x)
        return mixed + level[:, None, None]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(6) for _ in range(3))
        self.head = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(self.blocks[0](x))  # one block is called twice


def net() -> Net:
    torch.manual_seed(0)
    return Net().eval()


def exported(exporter: str, **options: object) -> object:
    return export_compat(
        net(), torch.randn(2, 5, 6), exporter=exporter, dynamic={"x": {0: "batch", 1: "rows"}}, **options
    )


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_each_call_is_a_node_of_one_function(exporter: str) -> None:
    result = exported(exporter, keep_as_function=[Gate])
    model = result.model_proto
    onnx.checker.check_model(model, full_check=True)
    assert not result.custom_nodes
    domain = f"{Gate.__module__}"
    assert Counter(n.domain for n in model.graph.node)[domain] == 4
    # torch.export computes sizes from the model's own input: a call that gets that input has another body.
    assert [f.name for f in model.functions] == ["Gate", "Gate_1"][: len(model.functions)]
    assert len(model.functions) <= (1 if exporter == "torchscript" else 2)
    assert len([n for n in model.graph.node if n.op_type == "Sigmoid"]) == 0
    assert {row.case for row in result.table} >= {"batch=1", "rows=1"}
    biases = {n.input[-1] for n in model.graph.node if n.domain == domain}
    assert biases == {f"blocks.{i}.gate.mix.bias" for i in range(3)}


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_functions_in_functions(exporter: str) -> None:
    result = exported(exporter, keep_as_function={Block: "mine::Block", "Gate": "mine::Gate"}, opset_version=18)
    model = result.model_proto
    onnx.checker.check_model(model)
    assert {n.op_type for n in model.graph.node if n.domain == "mine"} <= {"Block", "Block_1"}
    assert len(model.functions) == (2 if exporter == "torchscript" else 4)
    inside = {f.name: [n.op_type for n in f.node] for f in model.functions}
    assert inside["Block"].count("Gate") == 1
    assert "Sigmoid" in inside["Gate"]


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_node_of_the_engine_is_checked_as_what_it_stands_for(exporter: str) -> None:
    nodes = {"blocks.1.gate": CustomNode("engine::Gate", heads=2, mode="fast")}
    result = exported(exporter, keep_as_function=nodes, allow_custom_domains=["engine"])
    model = result.model_proto
    assert not model.functions
    assert result.custom_nodes == ("engine::Gate",)
    (node,) = [n for n in model.graph.node if n.domain == "engine"]
    assert {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} == {"heads": 2, "mode": b"fast"}
    assert result.table
    assert any("engine::Gate was checked as the operators that it stands for" in note for note in result.notes)
    assert "engine" in {o.domain for o in model.opset_import}


def test_a_node_of_the_engine_wants_leave() -> None:
    with pytest.raises(UnsupportedError, match=r"allow_custom_domains=\['engine'\]"):
        exported("torchscript", keep_as_function={Gate: CustomNode("engine::Gate")})


def test_what_a_function_reads_from_elsewhere_is_an_input() -> None:
    class Scaled(nn.Module):
        def forward(self, x: Tensor, sizes: list[Tensor]) -> Tensor:
            return x * sizes[0].shape[0] + x.mean()

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scaled = Scaled()

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return self.scaled(x * 2, [y]) + 1

    args = (torch.randn(3, 4), torch.randn(5, 4))
    result = export_compat(
        Whole().eval(), args, keep_as_function=["scaled"], dynamic={"x": {0: "rows"}, "y": {0: "others"}}
    )
    assert [f.name for f in result.model_proto.functions] == ["Scaled"]
    assert "others=1" in {row.case for row in result.table}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (["Gait"], "unknown module or class 'Gait'.*Gate"),
        ([nn.Conv2d], "unknown module or class 'Conv2d'"),
        ([Net], "Net is the class of the model itself"),
        (["Net"], "Net is the class of the model itself"),
        ({Gate: "no domain"}, "wanted 'domain::Name'"),
        ([3], "wanted a class or a path"),
        (["blocks"], "is never called"),
    ],
)
def test_what_cannot_be_kept_is_an_error(wanted: object, found: str) -> None:
    with pytest.raises(CompatError, match=found):
        exported("torchscript", keep_as_function=wanted)


class Tagger(nn.Module):
    """Reads all results of its LSTM but the last cells."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, 2, batch_first=True, bidirectional=True), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, (h, _) = self.lstm(x)
        return self.head(y), h[-1]


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_results_that_nothing_reads_are_left_out(exporter: str) -> None:
    dynamic = {"x": {0: "batch", 1: "time"}}
    result = export_compat(
        Tagger().eval(), torch.randn(2, 5, 6), keep_as_function=["LSTM"], dynamic=dynamic, exporter=exporter
    )
    assert [f.name for f in result.model_proto.functions] == ["LSTM"]
    (call,) = [node for node in result.model_proto.graph.node if node.domain.startswith("torch")]
    assert len(call.output) == 2


def test_files_too_old_for_functions() -> None:
    with pytest.raises(CompatError, match="functions came with version 8"):
        exported("torchscript", keep_as_function=[Gate], opset_version=11)
