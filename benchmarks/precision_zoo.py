"""Files in float16 over many models: right, wrong or refused, share in float16, size and time; a row for each model.

Each model runs in a process of its own, forked off one that has the libraries loaded, with a limit of processor time;
one that has a row already is left out, so that a run that was stopped goes on where it was, and one that was too long
is tried again with a larger limit. Weights are random, norms have statistics, axes vary as the zoo says.

A file is judged on inputs that the export did not see, by onnxruntime and by a float32 rendering with a rounding behind
every narrow node, against eager torch in float64 (in float32 where it has no float64): the root mean square of the
difference, relative to the output's, is at most 0.02, or twice eager half's where that is at most 0.05. A file that is
off by at most twice eager half's error, where eager half is off by more than 0.05, has the verdict "as eager half".
Outputs of one result that are boxes (N, 4), scores (N,) and labels (N,) are judged as detections: each is to be matched
by one of the same label, an overlap of 0.9 and a score that differs by at most 0.02; at most a tenth may be without a
match, on both sides together. Where eager torch does not run in float16, its float32 with the weights and the inputs
rounded to float16, and nothing else, is shown instead, in brackets; a file with more than a tenth without a match
but no more than that has the verdict "as eager half": which boxes of a network with random weights are among the best
hundred is decided by less than a rounding of its weights. A model whose eager float32 is off from float64 by more than
a hundredth of the limit amplifies roundings; its row says so, and there is no verdict where float32 misses the limit
itself.

    python benchmarks/precision_zoo.py run --out zoo.jsonl [--models timm:resnet18 ...] [--seconds 240] [--until 17:40]
    python benchmarks/precision_zoo.py page zoo.jsonl > results/precision_zoo-DATE.md

The rows that the page shows are kept beside it, as results/precision_zoo-DATE.jsonl.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import io
import itertools
import json
import math
import multiprocessing
import os
import resource
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

_SMALL = {
    "torchvision": """resnet18 mobilenet_v2 mobilenet_v3_small shufflenet_v2_x0_5 squeezenet1_1 efficientnet_b0
        mnasnet0_5 regnet_y_400mf regnet_x_400mf swin_t googlenet densenet121 lraspp_mobilenet_v3_large
        ssdlite320_mobilenet_v3_large fasterrcnn_mobilenet_v3_large_320_fpn retinanet_resnet50_fpn fcos_resnet50_fpn
        deeplabv3_mobilenet_v3_large maxvit_t resnet50 vgg11 alexnet r3d_18""",
    "timm": """convnext_atto vit_tiny_patch16_224 ghostnet_050 deit_tiny_patch16_224 mixer_s32_224 resmlp_12_224
        poolformer_s12 edgenext_xx_small mobilevit_xxs levit_128s efficientformer_l1 repvgg_a0 hardcorenas_a lcnet_050
        fastvit_t8 tiny_vit_5m_224 rexnet_100 xcit_nano_12_p16_224 test_vit test_convnext2 test_resnet test_efficientnet
        test_mambaout test_nfnet test_byobnet starnet_s1 shvit_s1 efficientvit_m0 efficientvit_b0
        mobilenetv4_conv_small_035
        mobileone_s0 repghostnet_050 tinynet_e semnasnet_050 tf_efficientnet_lite0 tf_mobilenetv3_small_minimal_100
        pit_ti_224 pvt_v2_b0 coat_tiny mobilevitv2_050 visformer_tiny cait_xxs24_224 crossvit_tiny_240 convit_tiny
        gmlp_ti16_224 gmixer_12_224 resnet10t resnet14t regnetx_002 regnety_002 regnetz_005 dla46_c hrnet_w18_small
        cs3darknet_focus_s cspresnet50 res2net50_14w_8s selecsls42 spnasnet_100 fbnetc_100 vit_xsmall_patch16_clip_224
        vit_little_patch16_reg1_gap_256 swinv2_cr_tiny_224 focalnet_tiny_srf gcvit_xxtiny inception_next_atto
        caformer_s18 davit_tiny nest_tiny_jx coatnet_0_224 twins_pcpvt_small hgnetv2_b0 mambaout_femto""",
    "transformers": """albert bart bert bloom canine clip codegen convbert convnext data2vec-vision deberta-v2 deit
        dinov2 distilbert dpt electra ernie esm falcon fnet focalnet gemma gemma2 glpn gpt2 gpt_neo gpt_neox gptj
        hubert layoutlm levit llama longformer longt5 m2m_100 mamba marian mistral mixtral mobilebert mobilevit mpnet
        mpt mt5 nystromformer olmo opt pegasus phi poolformer pvt qwen2 qwen3 regnet rembert resnet roberta roformer
        segformer sew siglip splinter squeezebert stablelm swiftformer swin swin2sr swinv2 t5 timesformer videomae vilt
        vit wav2vec2 wavlm whisper xlm xlnet yolos""",
    "ultralytics": """yolov8n yolov8n-cls yolov8n-seg yolov8n-pose yolov8n-obb yolo11n yolo11n-seg yolov5n yolov9t
        yolov10n yolo12n yolo26n yolov3-tiny""",
    "smp": """unet-resnet18 fpn-mobilenet_v2 linknet-resnet18 pspnet-resnet18 segformer-resnet18 manet-resnet18
        pan-mobilenet_v2 deeplabv3plus-mobilenet_v2 unetplusplus-resnet18 upernet-resnet18""",
}
_LISTS = [[f"{zoo}:{name}" for name in names.split()] for zoo, names in _SMALL.items()]
MODELS = [spec for specs in itertools.zip_longest(*_LISTS) for spec in specs if spec is not None]
"""One of each zoo in turn, so that a run that is stopped has some of all."""
SIZED = ("ultralytics", "rcnn", "retinanet", "fcos", "ssd", "lraspp", "deeplab", "smp")
"""Parts of the specs of models that take pictures of any size: theirs are 160 x 192 here."""

LIMIT, EXCUSED = 0.02, 0.05
OVERLAP, UNMATCHED = 0.9, 0.1
TRIES = 3
"""How many seeds are tried for inputs that the model accepts."""


def run(out: Path, specs: Sequence[str], seconds: float, until: str) -> None:
    """Measures the models that have no row yet.

    Args:
        out: The file of rows.
        specs: The models.
        seconds: Processor time of one model at most.
        until: The time of day, such as 17:40, after which no further model is begun.
    """
    known = {row["model"]: row for row in rows_of(out)} if out.exists() else {}
    preload(specs)
    for spec in specs:
        row = known.get(spec)
        if row and (row["verdict"] != "too long" or row["limit"] >= seconds):
            continue
        if f"{datetime.datetime.now():%H:%M}" >= until:
            break
        row = {"model": spec, "date": str(datetime.date.today()), **in_child(spec, seconds)}
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        told = {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()}
        print(told, flush=True)


def preload(specs: Sequence[str]) -> None:
    """Imports what the models need, and makes one file of each kind, before any process is forked."""
    import torch

    from torch_onnx_compat import export_compat
    from torch_onnx_compat.zoo import find

    torch.set_num_threads(1)
    for zoo in sorted({spec.partition(":")[0] for spec in specs}):
        find(zoo)
    for precision in ("float32", "float16"):  # loads what both exports need
        export_compat(torch.nn.Linear(2, 3), torch.ones(1, 2), dynamic="batch", precision=precision)


Measure = Callable[[str], dict[str, Any]]


def in_child(spec: str, seconds: float, measured: Measure | None = None) -> dict[str, Any]:
    """The row of one model, from a process of its own.

    Args:
        spec: The model.
        seconds: Processor time that it may take.
        measured: What makes the row; `measure` by default.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(spec, seconds, sender, measured or measure))
    child.start()
    sender.close()
    try:
        row: dict[str, Any] = receiver.recv()
    except EOFError:
        child.join()
        if child.exitcode == -signal.SIGXCPU:
            return {"verdict": "too long", "limit": seconds, "why": f"more than {seconds:.0f} s of processor time"}
        return {"verdict": "failed", "why": f"the process ended with {child.exitcode}"}
    child.join()
    return row


def _child(spec: str, seconds: float, sender: Any, measured: Measure) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), resource.RLIM_INFINITY))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    try:
        row = measured(spec)
    except Exception:  # a model of a library fails in any way it likes
        row = {"verdict": "failed", "why": " ".join(traceback.format_exc().split())[-300:]}
    sender.send(row)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The last row of each model."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return list({row["model"]: row for row in rows}.values())


def measure(spec: str) -> dict[str, Any]:
    """Exports one model in float32 and in float16, and judges the second file."""
    import torch

    from torch_onnx_compat import export_compat
    from torch_onnx_compat.errors import CompatError
    from torch_onnx_compat.zoo import load

    torch.set_num_threads(1)
    sample = load(spec, size=(160, 192) if any(part in spec for part in SIZED) else None)
    options = {"kwargs": dict(sample.kwargs), "dynamic": dict(sample.dynamic) or None, "verify": sample.verify}
    row: dict[str, Any] = {}
    start = time.process_time()
    try:
        plain = export_compat(sample.model, sample.args, **options)
    except CompatError as problem:
        return {"verdict": "refused in float32", "why": " ".join(str(problem).split())[:300]}
    row["seconds float32"] = time.process_time() - start
    start = time.process_time()
    try:
        result = export_compat(sample.model, sample.args, precision="float16", **options)
    except CompatError as problem:
        return {**row, "verdict": "refused", "why": " ".join(str(problem).split())[:300]}
    row["seconds"] = time.process_time() - start
    told = result.precision
    row |= {"share": told.share, "casts": told.casts, "narrow": told.narrow, "wide": told.wide, "runs": told.runs}
    row |= {"bytes": len(result.model_bytes), "bytes float32": len(plain.model_bytes), "notes": list(told.notes)}
    row |= {"precision": result.seconds["precision"], "check": result.seconds["check"]}
    return {**row, **judge(sample, result)}


def judge(sample: Any, result: Any) -> dict[str, Any]:
    """The verdict on a file, on inputs that the export did not see."""
    import onnx
    import onnx_ir as ir
    import torch

    from torch_onnx_compat.graph.rendering import render
    from torch_onnx_compat.graph.stream import write_model

    for seed in range(TRIES):
        args, kwargs = fresh_inputs(sample, seed)
        exact = eager(sample.model, args, kwargs, torch.float64) or eager(sample.model, args, kwargs, torch.float32)
        if exact is not None:
            break
    else:
        return {"verdict": "not judged", "why": "the model refuses other inputs"}
    half = eager(sample.model, args, kwargs, torch.float16)
    stored = eager(sample.model, args, kwargs, torch.float32, stored=torch.float16) if half is None else None
    model = onnx.load_model_from_string(result.model_bytes)
    buffer = io.BytesIO()
    write_model(render(ir.from_proto(model)), buffer)
    feeds = {name: tensor.numpy() for name, tensor in result.signature.feeds(args, kwargs).items()}
    worst: dict[str, Any] = {}
    for way, file in (("file", result.model_bytes), ("rendering", buffer.getvalue())):
        worst[way], worst[f"{way} unmatched"] = errors(run_file(file, feeds), exact)
    float32 = eager(sample.model, args, kwargs, torch.float32)
    for way, outputs in (("eager half", half), ("half weights", stored), ("eager float32", float32)):
        if outputs is not None:
            worst[way], worst[f"{way} unmatched"] = errors(outputs, exact)
    return {"verdict": verdict(worst), **worst}


def fresh_inputs(sample: Any, seed: int) -> tuple[Any, Any]:
    """Other values like the example's: pictures and sounds drawn anew, token numbers moved along."""
    import torch
    from torch.utils._pytree import tree_map_only

    generator = torch.Generator().manual_seed(100 + seed)

    def other(tensor: Any) -> Any:
        if tensor.is_floating_point() and tensor.numel() > 16 and sample.verify is not None:
            low, high = tensor.min(), tensor.max()
            return low + (high - low) * torch.rand(tensor.shape, generator=generator, dtype=tensor.dtype)
        return tensor.roll(1 + seed, -1) if tensor.dim() and tensor.dtype is torch.int64 else tensor

    found: tuple[Any, Any] = tree_map_only(torch.Tensor, other, (sample.args, dict(sample.kwargs)))
    return found


def run_file(model: bytes, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def eager(model: Any, args: Any, kwargs: Any, dtype: Any, *, stored: Any = None) -> list[Any] | None:
    """The outputs of eager torch in an element type; None where it does not run.

    Args:
        model: The model.
        args: Its inputs.
        kwargs: Its inputs by name.
        dtype: What it computes in.
        stored: What its weights and inputs are rounded to before; `dtype` by default.
    """
    import torch
    from torch.utils._pytree import tree_leaves, tree_map_only

    stored = stored or dtype

    def cast(tensor: Any) -> Any:
        return tensor.to(stored).to(dtype) if tensor.is_floating_point() else tensor

    args, kwargs = tree_map_only(torch.Tensor, cast, (args, kwargs))
    try:
        with torch.no_grad():
            outputs = copy.deepcopy(model).to(stored).to(dtype)(*args, **kwargs)
    except Exception:  # a model refuses an element type in any way it likes
        return None
    tensors = [o for o in tree_leaves(outputs) if isinstance(o, torch.Tensor)]
    return [o.double().numpy() if o.is_floating_point() else o.numpy() for o in tensors]


def errors(found: Sequence[Any], exact: Sequence[Any]) -> tuple[float, float | None]:
    """The largest relative error of the outputs, and the share of detections without a match, where there are some."""
    import numpy as np

    detections = as_detections(exact)
    if detections is not None and as_detections(found) is not None:
        return 0.0, unmatched([found[i] for i in detections], [exact[i] for i in detections])
    worst = 0.0
    for a, b in zip(found, exact, strict=True):
        if a.shape != b.shape:
            return math.inf, None
        b = b.astype(np.float64)
        finite = np.isfinite(b)
        if not np.isfinite(a[finite].astype(np.float64)).all():
            return math.inf, None
        scale = math.sqrt(float(np.mean(b[finite] ** 2))) if finite.any() else 1.0
        off = math.sqrt(float(np.mean((a[finite].astype(np.float64) - b[finite]) ** 2))) if finite.any() else 0.0
        worst = max(worst, off / (scale or 1.0))
    return worst, None


def as_detections(outputs: Sequence[Any]) -> tuple[int, int, int] | None:
    """Which outputs are boxes (N, 4), scores (N,) and labels (N,) of one picture; None where it is not so."""
    boxes = [i for i, o in enumerate(outputs) if o.ndim == 2 and o.shape[1] == 4 and o.dtype.kind == "f"]
    scores = [i for i, o in enumerate(outputs) if o.ndim == 1 and o.dtype.kind == "f"]
    labels = [i for i, o in enumerate(outputs) if o.ndim == 1 and o.dtype.kind == "i"]
    if len(boxes) == len(scores) == len(labels) == 1 and len(outputs) == 3:
        return boxes[0], scores[0], labels[0]
    return None


def unmatched(found: Sequence[Any], exact: Sequence[Any]) -> float:
    """The share of detections, of both sides, that have no counterpart on the other."""
    boxes, scores, labels = exact
    free = list(range(len(found[1])))
    matched = 0
    for i in range(len(scores)):
        for j in free:
            is_same = found[2][j] == labels[i] and abs(float(found[1][j]) - float(scores[i])) <= LIMIT
            if is_same and overlap(found[0][j], boxes[i]) >= OVERLAP:
                free.remove(j)
                matched += 1
                break
    total = len(scores) + len(found[1])
    return 1.0 - 2 * matched / total if total else 0.0


def overlap(a: Any, b: Any) -> float:
    """Intersection over union of two boxes, as corners."""
    sides = [max(0.0, float(min(a[i + 2], b[i + 2]) - max(a[i], b[i]))) for i in (0, 1)]
    areas = [float((c[2] - c[0]) * (c[3] - c[1])) for c in (a, b)]
    inside = sides[0] * sides[1]
    return inside / (areas[0] + areas[1] - inside) if inside else 0.0


def verdict(worst: dict[str, Any]) -> str:
    """Whether a file is right, from its largest errors, eager half's and eager float32's."""
    if (worst.get("eager float32") or 0.0) > LIMIT or (worst.get("eager float32 unmatched") or 0.0) > UNMATCHED:
        return "no verdict"
    half = worst.get("eager half") or 0.0
    off, lost = (max(worst[f"{way}{what}"] or 0.0 for way in ("file", "rendering")) for what in ("", " unmatched"))
    if lost > max(UNMATCHED, 2 * (worst.get("eager half unmatched") or 0.0)):
        return "as eager half" if lost <= (worst.get("half weights unmatched") or 0.0) else "wrong"
    if off <= max(LIMIT, 2 * half if half <= EXCUSED else 0.0):
        return "right"
    return "as eager half" if off <= 2 * half < math.inf else "wrong"


_HEAD = """# Files in float16 over the zoo

`python benchmarks/precision_zoo.py` measures it again and goes on where this run was stopped; its first lines say how a
file is judged. Axes are dynamic as the zoo says, batches among them; weights are random. Inputs are ones that no export
saw, drawn evenly between the example's least and largest value, which some random networks amplify: "as eager half".
"""


def page(path: Path) -> str:
    """The results in Markdown."""
    rows = sorted(rows_of(path), key=lambda row: row["model"])
    for row in rows:
        row["verdict"] = verdict(row) if "file" in row else row["verdict"]
    packages = ("torch", "torchvision", "timm", "transformers", "ultralytics", "segmentation-models-pytorch")
    packages += ("onnx", "onnx-ir", "onnxruntime")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    counts = Counter(row["verdict"] for row in rows)
    made = [row for row in rows if "share" in row]
    zoos = Counter(row["model"].partition(":")[0] for row in rows)
    shares = [row["share"] for row in made if row["share"] is not None]
    ratios = [row["seconds"] / row["seconds float32"] for row in made]
    sizes = [row["bytes"] / row["bytes float32"] for row in made]
    lines = [
        _HEAD,
        f"Measured with {versions}; one thread, processor time. "
        + " ".join(f"{count} rows are of {date}." for date, count in sorted(Counter(r["date"] for r in rows).items())),
        "",
        f"{len(rows)} models ({', '.join(f'{count} of {zoo}' for zoo, count in zoos.most_common())}): "
        + ", ".join(f"{count} {what}" for what, count in counts.most_common())
        + ".",
        f"At least 90 % of the multiplications in float16: {sum(s >= 0.9 for s in shares)} of {len(shares)} models "
        f"that multiply. Size / float32: {geometric_mean(sizes):.2f}; time / float32: {geometric_mean(ratios):.2f} "
        f"(geometric means).",
        "",
        "| model | verdict | error | eager half | in float16 | casts | size / float32 | time / float32 | remark |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        if "share" not in row:
            cells = [row["model"], row["verdict"], *[""] * 6, row.get("why", "").replace("|", "/")[:160]]
        else:
            share = "" if row["share"] is None else f"{row['share']:.0%}"
            size = f"{row['bytes'] / row['bytes float32']:.2f}"
            spent = f"{row['seconds'] / row['seconds float32']:.2f}"
            remark = "; ".join([*_amplifies(row), *row["notes"]])[:160].replace("|", "/")
            half = _error(row, "eager half") or f"({_error(row, 'half weights')})".replace("()", "")
            cells = [row["model"], row["verdict"], _error(row, "rendering"), half, share]
            cells += [row["casts"], size, spent, remark]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _amplifies(row: dict[str, Any]) -> list[str]:
    off = row.get("eager float32") or 0.0
    return [f"float32 is off by {off:.1e} itself"] if off > 0.01 * LIMIT else []


def _error(row: dict[str, Any], way: str) -> str:
    if row.get(f"{way} unmatched") is not None:
        return f"{row[f'{way} unmatched']:.0%} unmatched"
    return f"{row[way]:.1e}" if row.get(way) is not None else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["run", "page"])
    parser.add_argument("path", nargs="?")
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--out", type=Path, default=Path("precision_zoo.jsonl"))
    parser.add_argument("--seconds", type=float, default=240.0, help="processor time of one model at most")
    parser.add_argument("--until", default="99:99", help="the time of day after which no further model is begun")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "page":
        print(page(Path(arguments.path)))
    else:
        run(arguments.out, arguments.models, arguments.seconds, arguments.until)


if __name__ == "__main__":
    main()
