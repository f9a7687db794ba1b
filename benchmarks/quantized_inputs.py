"""Models that come quantized: a real architecture for each kind, by both exporters, judged on inputs no export saw.

Each model is made by the library's own recipe: calibrated, or trained for two steps, on random inputs; weights are
random. `export_compat` proves its file against the quantized model. Then the file runs once more in onnxruntime on
other inputs and at another batch size, beside eager torch: the model's own steps are coarse, so that a value between
two of them may fall to the other one. "off" is the root mean square of the difference, relative to the output's;
"float off" is the same of the quantized model against its float original, which says how coarse the steps are.

    python benchmarks/quantized_inputs.py run --out rows.jsonl [--kinds "eager" ...]
    python benchmarks/quantized_inputs.py page rows.jsonl > results/quantized_inputs-DATE.md
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import json
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import onnx
import onnxruntime
import torch
from torch import Tensor, nn
from torch.ao import quantization
from torch.ao.quantization import quantize_fx

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError

Made = tuple[nn.Module, nn.Module, Callable[[int, int], tuple[Tensor, ...]]]
"""The quantized model, its float original, and what draws inputs: a seed and a batch."""
EXPORTERS = ("torchscript", "dynamo")
STEPS = ("QuantizeLinear", "DequantizeLinear", "MatMulInteger", "DynamicQuantizeLinear")
PACKAGES = ("torch", "torchvision", "transformers", "onnx", "onnxruntime", "torchao")


def images(seed: int, batch: int) -> tuple[Tensor, ...]:
    return (torch.rand(batch, 3, 64, 64, generator=torch.Generator().manual_seed(seed)),)


def words(seed: int, batch: int) -> tuple[Tensor, ...]:
    return (torch.randint(0, 99, (batch, 12), generator=torch.Generator().manual_seed(seed)),)


def resnet() -> nn.Module:
    from torchvision.models.quantization import resnet18

    return settle(resnet18(weights=None, quantize=False))


def settle(model: nn.Module) -> nn.Module:
    """The model with statistics in its norms."""
    model.train()
    with torch.no_grad():
        for seed in range(3):
            model(*images(seed, 8))
    return model.eval()


def bert() -> nn.Module:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=99, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=128, num_labels=5
    )
    model: nn.Module = BertForSequenceClassification(config).eval()
    return model


def observe(model: nn.Module) -> nn.Module:
    """Shows a prepared model some inputs."""
    with torch.no_grad():
        for seed in range(4):
            model(*images(seed, 4))
    return model


def converted_eager() -> Made:
    """The resnet18 of torchvision, fused, prepared and converted."""
    model = resnet()
    prepared = copy.deepcopy(model)
    prepared.fuse_model()  # type: ignore[operator]
    prepared.qconfig = quantization.get_default_qconfig("fbgemm")  # type: ignore[assignment]
    observe(quantization.prepare(prepared, inplace=True))
    return quantization.convert(prepared), model, images


def trained() -> Made:
    """The mobilenet_v2 of torchvision, two steps of training with fake quantization, then settled."""
    from torchvision.models.quantization import mobilenet_v2

    model = settle(mobilenet_v2(weights=None, quantize=False))
    prepared = copy.deepcopy(model)
    prepared.fuse_model(is_qat=True)  # type: ignore[operator]
    prepared.qconfig = quantization.get_default_qat_qconfig("fbgemm")  # type: ignore[assignment]
    quantization.prepare_qat(prepared.train(), inplace=True)
    return train(prepared), model, images


def train(prepared: nn.Module) -> nn.Module:
    """Two steps; then observers and norms stand still."""
    optimizer = torch.optim.SGD(prepared.parameters(), 1e-4)
    for seed in range(2):
        loss = prepared(*images(seed, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return observe(prepared.eval()).apply(quantization.disable_observer)


def trained_fx() -> Made:
    """The resnet18 of torchvision by FX, two steps of training with fake quantization."""
    model = resnet()
    mapping = quantization.get_default_qat_qconfig_mapping("fbgemm")
    prepared = quantize_fx.prepare_qat_fx(copy.deepcopy(model).train(), mapping, images(0, 2))
    return train(prepared), model, images


def by_fx(convert: Callable[[Any], nn.Module]) -> Callable[[], Made]:
    def make() -> Made:
        model = resnet()
        mapping = quantization.get_default_qconfig_mapping("fbgemm")
        prepared = quantize_fx.prepare_fx(copy.deepcopy(model), mapping, images(0, 2))
        observe(prepared)
        return convert(prepared), model, images

    return make


def dynamic() -> Made:
    """The BERT of transformers, its linear layers dynamic."""
    model = bert()
    return quantization.quantize_dynamic(copy.deepcopy(model), {nn.Linear}, dtype=torch.qint8), model, words


def pt2e() -> Made:
    """The resnet18 of torchvision by torch.export and torchao."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    model = resnet()
    batch = torch.export.Dim("batch", min=1)
    program = torch.export.export(copy.deepcopy(model), images(0, 4), dynamic_shapes=({0: batch},))
    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = observe(prepare_pt2e(program.module(), quantizer))
    return convert_pt2e(prepared), model, images


def weight_only() -> Made:
    """The BERT of transformers, its weights in int8 by torchao."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = bert()
    quantized = copy.deepcopy(model)
    quantize_(quantized, Int8WeightOnlyConfig())
    return quantized, model, words


KINDS: dict[str, tuple[str, Callable[[], Made]]] = {
    "trained for quantization, eager": ("torchvision mobilenet_v2", trained),
    "trained for quantization, FX": ("torchvision resnet18", trained_fx),
    "eager, converted": ("torchvision resnet18", converted_eager),
    "FX, converted": ("torchvision resnet18", by_fx(quantize_fx.convert_fx)),
    "FX, reference": ("torchvision resnet18", by_fx(quantize_fx.convert_to_reference_fx)),
    "PT2E (torchao)": ("torchvision resnet18", pt2e),
    "dynamic layers": ("transformers BERT", dynamic),
    "weights alone (torchao)": ("transformers BERT", weight_only),
}


def measure(kind: str, exporter: str) -> dict[str, Any]:
    """The row of one kind and exporter."""
    torch.manual_seed(0)
    about, make = KINDS[kind]
    model, original, draw = make()
    row = {"kind": kind, "model": about, "exporter": exporter, "date": str(datetime.date.today())}
    start = time.process_time()
    try:
        result = export_compat(model, draw(0, 2), dynamic="batch", exporter=exporter)
    except CompatError as problem:
        return {**row, "verdict": "refused", "why": " ".join(str(problem).split())[:400]}
    row["seconds"] = round(time.process_time() - start, 1)
    graph = onnx.load_model_from_string(result.model_bytes).graph
    counts = Counter(node.op_type for node in graph.node)
    row |= {"steps": {name: counts[name] for name in STEPS if counts[name]}}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(result.model_bytes, options, providers=["CPUExecutionProvider"])
    found, wanted, exact = [], [], []
    for seed, batch in ((100, 2), (101, 5), (102, 1)):
        inputs = draw(seed, batch)
        feeds = {name: tensor.numpy() for name, tensor in result.signature.feeds(inputs, {}).items()}
        found.append(session.run(None, feeds)[0])
        with torch.no_grad():
            wanted.append(tensor_of(model(*inputs)).numpy())
            exact.append(tensor_of(original(*inputs)).numpy())
    a, b, c = (np.concatenate(arrays).astype(np.float64) for arrays in (found, wanted, exact))
    same = float((a.argmax(-1) == b.argmax(-1)).mean())
    return {**row, "verdict": "verified", "off": off(a, b), "float off": off(b, c), "same": same}


def off(found: Any, wanted: Any) -> float:
    """The root mean square of the difference, relative to what is wanted."""
    return float(np.sqrt(np.mean((found - wanted) ** 2) / np.mean(wanted**2)))


def tensor_of(outputs: Any) -> Tensor:
    found: Tensor = outputs if isinstance(outputs, Tensor) else outputs[0]
    return found


_HEAD = """# Models that come quantized

`python benchmarks/quantized_inputs.py` measures it again; its first lines say how. Every file here was verified by its
export, with a dynamic batch. "same": the share of rows whose largest value is in the same place as eager torch's.
"""


def page(path: Path) -> str:
    """The results in Markdown."""
    rows = list({(r["kind"], r["exporter"]): r for r in map(json.loads, path.read_text().splitlines())}.values())
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    lines = [_HEAD, f"Measured {' and '.join(sorted({r['date'] for r in rows}))} with {versions}; one thread.", ""]
    lines += ["| kind | model | exporter | verdict | Q/DQ and integer nodes | off | float off | same | seconds |"]
    lines += ["| --- | --- | --- | --- | --- | --- | --- | --- | --- |"]
    for row in sorted(rows, key=lambda row: (list(KINDS).index(row["kind"]), EXPORTERS.index(row["exporter"]))):
        cells = [row["kind"], row["model"], row["exporter"], row["verdict"]]
        if "off" in row:
            steps = ", ".join(f"{count} {name}" for name, count in row["steps"].items())
            cells += [steps, f"{row['off']:.1e}", f"{row['float off']:.1e}", f"{row['same']:.0%}", row["seconds"]]
        else:
            cells += [""] * 5
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    refused = [f"- {row['kind']}, {row['exporter']}: {row['why']}" for row in rows if "why" in row]
    return "\n".join([*lines, "", *refused]).rstrip("\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path", nargs="?", type=Path)
    parser.add_argument("--out", type=Path, default=Path("quantized_inputs.jsonl"))
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--exporters", nargs="+", default=list(EXPORTERS))
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if arguments.what == "page":
        print(page(arguments.path))
        return
    for kind in arguments.kinds:
        for exporter in arguments.exporters:
            row = measure(kind, exporter)
            with arguments.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
