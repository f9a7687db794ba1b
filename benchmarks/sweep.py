"""The cost of a sweep: its wall time over what its jobs spend on loading, exporting and checking models.

python benchmarks/sweep.py [--models timm:resnet18 ...]
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import tempfile
import time
from pathlib import Path

from torch_onnx_compat.sweep import sweep

MODELS = (
    "torchvision:resnet18",
    "torchvision:mobilenet_v3_large",
    "torchvision:densenet121",
    "torchvision:swin_t",
    "torchvision:vit_b_32",
    "timm:convnext_atto",
    "timm:ghostnet_050",
    "timm:vit_tiny_patch16_224",
    "timm:efficientnet_b0",
    "timm:regnetx_002",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sweep.md")
    options = parser.parse_args()
    times: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        rows = sweep(
            options.models, Path(folder) / "rows.jsonl", progress=lambda _: times.append(time.perf_counter() - start)
        )
    spent = sum(row.load_s + row.export_s + row.check_s for row in rows)
    first = times[1] - sum(getattr(rows[0], name) for name in ("load_s", "export_s", "check_s"))
    rest = (times[-1] - spent - first) / (len(rows) - 1)
    packages = ("torch", "torchvision", "timm", "onnxruntime")
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
    verdicts = sum(row.verdict == "verified" for row in rows)
    text = (
        f"Measured {datetime.date.today()} with {versions}; {len(rows)} models, {verdicts} verified, one at a time.\n\n"
        f"| | s |\n|---|---|\n| the sweep | {times[-1]:.1f} |\n| loading, exporting and checking | {spent:.1f} |\n"
        f"| once: starting the server, importing torch | {first:.1f} |\n| each job besides | {rest:.2f} |\n\n"
        f"Overhead {100 * (times[-1] - spent) / times[-1]:.1f} % of the sweep; without the start "
        f"{100 * (times[-1] - spent - first) / (times[-1] - first):.1f} %.\n"
    )
    options.output.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
