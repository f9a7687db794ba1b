"""The jobs in Python that benchmarks/first_use.py tries; each judges its file at inputs that the export did not see.

python benchmarks/first_use_jobs.py NAME
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

ANSWER = "ANSWER "
"""What the line begins with that says how a job ended."""


@dataclass(frozen=True)
class Job:
    """A job, and what became of it on 2026-11-22."""

    tried: str
    before: str
    needs: str
    work: Callable[[], object]


JOBS: dict[str, Job] = {}


def job(tried: str, before: str, needs: str = "", **variants: tuple[str, str]) -> Callable[[Any], Any]:
    """Declares a job; a variant is the same job with a text as argument, and what became of that."""

    def declare(work: Any) -> Any:
        if not variants:
            JOBS[work.__name__] = Job(tried, before, needs, work)
        for name, (text, outcome) in variants.items():
            JOBS[f"{work.__name__}_{name}"] = Job(tried.format(text), outcome, needs, partial(work, text))
        return work

    return declare


def judge(result: Any, model: Any, *calls: Any, tolerance: float = 1e-3) -> str:
    """Runs the file beside the model on calls, tuples or dicts of tensors.

    Raises:
        AssertionError: A shape differs, or a value by more than this share of the output's largest.
    """
    import torch

    off = 0.0
    for call in calls:
        with torch.no_grad():
            wanted = model(**call) if isinstance(call, dict) else model(*call)
        wanted = wanted.to_tuple() if hasattr(wanted, "to_tuple") else wanted
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        found = result(**call) if isinstance(call, dict) else result(*call)
        for one, other in zip(found, wanted, strict=True):
            assert one.shape == other.shape, (one.shape, other.shape)
            largest = other.double().abs().max().clamp(min=1e-9)
            off = max(off, float((one.double() - other.double()).abs().max() / largest))
    assert off < tolerance, off
    nodes = sum(result.nodes.values())
    return f"right at {len(calls)} further inputs, off by {off:.0e}; {result.exporter}, {nodes} nodes"


def error_of(*args: Any, **options: Any) -> str:
    """The beginning of the error of an export that should be refused."""
    from torch_onnx_compat import CompatError, export_compat

    try:
        export_compat(*args, **options)
    except CompatError as error:
        return " ".join(str(error).split())[:200]
    return "NO ERROR"


@job("an old call: `dynamic_axes` as lists, opset 12, `do_constant_folding`", "right")
def old_call() -> str:
    import torch
    from torch import nn

    from torch_onnx_compat import export_compat

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    options: dict[str, Any] = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": {"x": [0], "y": [0]}}
    image = torch.rand(1, 3, 9, 9)
    result = export_compat(model, (image,), "m.onnx", opset_version=12, do_constant_folding=True, **options)
    return judge(result, model, (torch.rand(5, 3, 9, 9),))


@job("`dynamo=True`, `dynamic_shapes` with Dim, `report=True`", "`report=True` refused")
def new_call() -> str:
    import torch

    from torch_onnx_compat import export_compat

    model = torch.nn.Linear(4, 3).eval()
    shapes = {"input": {0: torch.export.Dim("batch")}}
    result = export_compat(model, (torch.rand(2, 4),), "m.onnx", dynamo=True, report=True, dynamic_shapes=shapes)
    return judge(result, model, (torch.rand(7, 4),), (torch.rand(1, 4),))


@job(
    "BERT with a mask, batch and length dynamic, for {}",
    "",
    "transformers",
    onnxruntime=("onnxruntime", "right"),
    openvino=("openvino", "refused"),
    opencv=("opencv", "refused"),
    tensorrt=("tensorrt-10", "refused"),
)
def bert(target: str) -> str:
    import torch
    from transformers import BertConfig, BertModel

    from torch_onnx_compat import export_compat

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
    model = BertModel(BertConfig(vocab_size=99, **sizes)).eval()

    def call(batch: int, tokens: int) -> dict[str, Any]:
        mask = torch.ones(batch, tokens, dtype=torch.long)
        return {"input_ids": torch.randint(0, 99, (batch, tokens)), "attention_mask": mask}

    axes = {name: {0: "batch", 1: "tokens"} for name in ("input_ids", "attention_mask")}
    result = export_compat(model, (), "m.onnx", kwargs=call(2, 8), dynamic=axes, target=target)
    return judge(result, model, call(1, 1), call(3, 100), call(2, 512))


@job(
    "YOLO11 with {}",
    "",
    "ultralytics",
    onnxruntime=("nms for onnxruntime", "right"),
    opencv=("nms-dense for opencv", "right"),
    ncnn=("strip for ncnn", "right"),
    tensorrt_10=("nms for tensorrt-10", "refused"),
    tensorrt_11=("efficient-nms for tensorrt-11", "refused"),
)
def yolo(what: str) -> str:
    from torch_onnx_compat import export_compat, zoo

    form, target = what.split(" for ")
    sample = zoo.load("ultralytics:yolo11n")
    options: dict[str, Any] = {"target": target, "postprocess": form, "dynamic": "batch"}
    if form == "efficient-nms":
        options["allow_custom_domains"] = True
    result = export_compat(sample.model, sample.args, "m.onnx", **options)
    return f"verified on {len({row.case for row in result.table})} cases, {sum(result.nodes.values())} nodes"


@job("`export_compat(YOLO(...))`, the wrapper", "starts training", "ultralytics")
def yolo_wrapper() -> str:
    import torch
    from ultralytics import YOLO

    from torch_onnx_compat import export_compat

    result = export_compat(YOLO("yolo11n.yaml"), (torch.rand(1, 3, 64, 64),), "m.onnx", dynamic="batch")
    told = {entry.key for entry in result.model_proto.metadata_props}
    return f"verified, {sum(result.nodes.values())} nodes; the file names its classes: {'names' in told}"


@job("timm ViT with `dynamic_img_size=True`, height and width dynamic", "refused", "timm")
def vit_of_any_size() -> str:
    import timm
    import torch

    from torch_onnx_compat import export_compat

    model = timm.create_model("vit_tiny_patch16_224", dynamic_img_size=True).eval()
    result = export_compat(model, torch.rand(1, 3, 224, 224), "m.onnx", dynamic={"x": {0: "n", 2: "h", 3: "w"}})
    return judge(result, model, (torch.rand(2, 3, 256, 320),), (torch.rand(1, 3, 96, 160),))


@job("timm ViT without it", "an error with the way out", "timm")
def vit_of_one_size() -> str:
    import timm
    import torch

    model = timm.create_model("vit_tiny_patch16_224").eval()
    return error_of(model, torch.rand(1, 3, 224, 224), dynamic={"x": {2: "h", 3: "w"}})


@job("torchvision swin_t, batch, height and width dynamic", "right, 2,821 nodes", "torchvision")
def swin() -> str:
    import torch
    import torchvision

    from torch_onnx_compat import export_compat

    model = torchvision.models.swin_t().eval()
    result = export_compat(model, torch.rand(1, 3, 224, 224), "m.onnx", dynamic={"x": {0: "n", 2: "h", 3: "w"}})
    return judge(result, model, (torch.rand(2, 3, 200, 260),))


@job("`if x.mean() > 100`, which the example does not take", "verified, without a note")
def rare_branch() -> str:
    import torch

    from torch_onnx_compat import export_compat

    class Gate(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.mean() > 100 else x + 1

    result = export_compat(Gate().eval(), torch.rand(3, 4), dynamic="batch")
    return judge(result, Gate(), (torch.rand(2, 4) + 1000,), (torch.rand(2, 4),))


@job("None in one branch", "refused")
def none_in_a_branch() -> str:
    import torch

    from torch_onnx_compat import export_compat

    class Maybe(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            bias = x.amax(0) if x.sum() > 0 else None
            return x if bias is None else x - bias

    result = export_compat(Maybe().eval(), torch.rand(3, 4), dynamic="batch")
    return judge(result, Maybe(), (-torch.rand(2, 4),), (torch.rand(5, 4),))


@job("`.numpy()` in forward", "refused with file:line")
def numpy_inside() -> str:
    import torch

    class Numpy(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * float(x.numpy().max())

    return error_of(Numpy().eval(), torch.rand(3, 4))


@job("bfloat16 weights", "refused")
def bfloat16() -> str:
    import torch
    from torch import nn

    from torch_onnx_compat import export_compat

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).eval().bfloat16()
    result = export_compat(model, torch.rand(1, 3, 9, 9).bfloat16(), "m.onnx", dynamic="batch")
    return "verified; " + next((note for note in map(str, result.notes) if "bfloat16" in note), "no note")


@job("`quantize_dynamic`, BERT's usual eight bits", "refused")
def dynamic_eight_bits() -> str:
    import torch
    from torch import nn

    from torch_onnx_compat import export_compat

    layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    model = torch.ao.quantization.quantize_dynamic(layers, {nn.Linear})
    result = export_compat(model, torch.rand(2, 16), "m.onnx", dynamic="batch")
    return judge(result, model, (torch.rand(5, 16),), tolerance=0.1)


@job("an operator of one's own (`torch.library`), without a symbolic", "refused, with the right diagnosis")
def own_operator() -> str:
    import torch

    @torch.library.custom_op("mylib::twice", mutates_args=(), schema="(Tensor x) -> Tensor")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    twice.register_fake(torch.empty_like)

    class Own(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.mylib.twice(x) + 1

    return error_of(Own().eval(), torch.rand(2, 3), dynamic="batch", allow_custom_domains=["mylib"])


@job("float16 from a float32 model", "no answer", "torchvision")
def half() -> str:
    import torch
    import torchvision

    from torch_onnx_compat import export_compat

    model = torchvision.models.mobilenet_v3_small().eval()
    result = export_compat(model, torch.rand(2, 3, 96, 96), "m.onnx", dynamic="batch", precision="float16")
    return judge(result, model, (torch.rand(3, 3, 96, 96),), tolerance=0.02)


@job("an ExportedProgram with Dim('batch')", "the axis is called s77")
def captured() -> str:
    import torch

    from torch_onnx_compat import export_compat

    shapes = {"input": {0: torch.export.Dim("batch")}}
    program = torch.export.export(torch.nn.Linear(4, 3).eval(), (torch.rand(2, 4),), dynamic_shapes=shapes)
    result = export_compat(program, (torch.rand(2, 4),), "m.onnx")
    return f"the axis is called {result.model_proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param}"


@job("numpy arrays as example", "refused: the example holds no tensor")
def arrays() -> str:
    import numpy as np
    import torch

    from torch_onnx_compat import export_compat

    model = torch.nn.Linear(4, 3).eval()
    result = export_compat(model, np.ones((2, 4), "float32"), dynamic="batch")
    return judge(result, model, (torch.rand(5, 4),))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(f"{ANSWER}{JOBS[sys.argv[1]].work()}")
