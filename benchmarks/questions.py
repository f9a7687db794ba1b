"""What the symbolic run costs and proves: zoo models with dynamic axes, exported with proof, and judged once more.

Every model is exported in a process of its own, with one torch thread. The judge compares the file with eager torch at
two sizes that no default of the proof tries. Rows are kept: a second run with the same file goes on where the first
stopped.

    python benchmarks/questions.py [--models torchvision:resnet18 ...] [--axes batch | all] [--out rows.jsonl]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

MODELS = (
    *(f"torchvision:{name}" for name in ("resnet18", "mobilenet_v3_small", "mobilenet_v2", "efficientnet_b0")),
    *(f"torchvision:{name}" for name in ("shufflenet_v2_x0_5", "squeezenet1_1", "mnasnet0_5", "regnet_y_400mf")),
    *(f"torchvision:{name}" for name in ("googlenet", "densenet121", "alexnet", "swin_t", "vit_b_32", "convnext_tiny")),
    *(f"torchvision:{name}" for name in ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large")),
    *(f"timm:{name}" for name in ("convnext_atto", "vit_tiny_patch16_224", "ghostnet_050", "levit_128s", "pit_ti_224")),
    *(
        f"timm:{name}"
        for name in ("swinv2_cr_tiny_224", "efficientformerv2_s0", "crossvit_tiny_240", "edgenext_x_small")
    ),
    *(f"timm:{name}" for name in ("poolformer_s12", "xcit_nano_12_p16_224", "hiera_tiny_224", "fastvit_t8")),
    *(
        f"timm:{name}"
        for name in ("mvitv2_tiny", "regnety_002", "coat_lite_tiny", "mobilevit_xxs", "tf_efficientnetv2_b0")
    ),
    *(f"timm:{name}" for name in ("tiny_vit_5m_224", "mobileone_s0", "repvit_m0_9", "lcnet_050", "hardcorenas_a")),
    *(f"timm:{name}" for name in ("volo_d1_224", "maxvit_tiny_rw_224", "gcvit_xxtiny", "botnet26t_256", "resnest14d")),
)
STEPS = (3, 32)
"""By how much the judge lengthens every dynamic axis; a batch by the first only."""


def measure(spec: str, axes: str) -> dict[str, Any]:
    """Exports one model in this process.

    Args:
        spec: As ``zoo.load`` takes it.
        axes: ``batch``, or ``all`` for height and width, too.
    """
    import torch

    from torch_onnx_compat import CompatError, export_compat
    from torch_onnx_compat.check import cases
    from torch_onnx_compat.zoo import load

    warnings.simplefilter("ignore")
    sample = load(spec)
    model, args = sample.model.eval(), tuple(sample.args)
    args = tuple(torch.cat([a, a.flip(-1)]) if isinstance(a, torch.Tensor) and len(a) == 1 else a for a in args)
    export_compat(torch.nn.ReLU(), (torch.rand(2, 3),), dynamic="batch")  # what is imported once
    seconds = {"run": 0.0}
    plain = cases.run_symbolically

    def run(*arguments: Any) -> Any:
        start = time.process_time()
        try:
            return plain(*arguments)
        finally:
            seconds["run"] += time.process_time() - start

    cases.run_symbolically = run
    dynamic: Any = "batch" if axes == "batch" else {0: {0: "batch", 2: "height", 3: "width"}}
    if axes != "batch":
        from torch_onnx_compat.inputs.inputs import bind

        dynamic = {bind(model, args, None, None).names[0]: dynamic[0]}
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        try:
            result = export_compat(model, args, f"{folder}/m.onnx", dynamic=dynamic)
        except CompatError as error:
            return {"verdict": "refused", "reason": str(error), "cpu_s": time.process_time() - start, **seconds}
        whole = time.process_time() - start
        verdict = judge(model, args, f"{folder}/m.onnx", axes)
    proofs = {proof.name: str(proof) for proof in result.axes}
    return {"verdict": verdict, "cpu_s": whole, **seconds, "exporter": result.exporter, "axes": proofs}


def judge(model: Any, args: tuple[Any, ...], path: str, axes: str) -> str:
    """``right`` or ``WRONG``: the file beside eager torch in float64, at sizes that were not tried."""
    import copy

    import onnxruntime
    import torch
    from torch.utils import _pytree as pytree

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    exact = copy.deepcopy(model).double()
    for step in STEPS[: 1 if axes == "batch" else 2]:
        torch.manual_seed(step)
        x = args[0]
        shape = (
            [len(x) + STEPS[0], *x.shape[1:]] if axes == "batch" else [3, x.shape[1], *(n + step for n in x.shape[2:])]
        )
        drawn = x.flatten()[torch.randint(x.numel(), shape)]
        with torch.no_grad():
            try:
                wanted, plain = exact(drawn.double()), model(drawn)
            except Exception:  # the model's own limits; it says nothing about the file
                continue
        found = session.run(None, {session.get_inputs()[0].name: drawn.numpy()})
        for one, other, mine in zip(pytree.tree_leaves(wanted), pytree.tree_leaves(plain), found, strict=True):
            limit = 20 * (one - other).abs().max() + 1e-4 * one.abs().max()
            if one.shape != mine.shape or not (torch.from_numpy(mine) - one).abs().max() <= limit:
                return "WRONG"
    return "right"


def in_its_own_process(spec: str, axes: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, __file__, "--one", spec, "--axes", axes],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return (
        json.loads(lines[-1]) if lines else {"verdict": "died", "reason": done.stderr[-300:], "cpu_s": 0.0, "run": 0.0}
    )


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table, and their sums."""
    lines = ["| model | axes | verdict | export, s | of it the run, s | what is known |", "|---|---|---|---|---|---|"]
    shares = []
    for row in rows:
        known = "; ".join(row.get("axes", {}).values()) or row.get("reason", "").splitlines()[0][:160]
        cells = (row["model"], row["dynamic"], row["verdict"], f"{row['cpu_s']:.1f}", f"{row['run']:.1f}", known)
        lines.append(f"| {' | '.join(cells)} |")
        if row["verdict"] == "right":
            shares.append(row["cpu_s"] / max(row["cpu_s"] - row["run"], 1e-3))
    right = [row for row in rows if row["verdict"] == "right"]
    proven = sum(all("proven" in text for text in row["axes"].values()) for row in right)
    mean = math.exp(sum(map(math.log, shares)) / max(len(shares), 1))
    lines += [
        "",
        f"{len(rows)} exports: {len(right)} right, {sum(r['verdict'] == 'WRONG' for r in rows)} wrong, "
        f"{sum(r['verdict'] == 'refused' for r in rows)} refused; every axis proven in {proven}. "
        f"Export over export without the run, geometric mean: {mean:.2f}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", metavar="SPEC")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--axes", choices=("batch", "all"), default="batch")
    parser.add_argument("--out", type=Path, default=Path("questions.jsonl"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one, options.axes)))
        return
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["model"], row["dynamic"]) for row in rows}
    with options.out.open("a") as file:
        for spec in options.models:
            if (spec, options.axes) not in done:
                row = {"model": spec, "dynamic": options.axes, **in_its_own_process(spec, options.axes)}
                rows.append(row)
                file.write(json.dumps(row) + "\n")
                file.flush()
    packages = ("torch", "torchvision", "timm", "onnxruntime")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    print(f"Measured {datetime.date.today()} with {versions}.\n\n{table(rows)}")


if __name__ == "__main__":
    main()
