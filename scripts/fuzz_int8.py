"""Exports random networks in eight bits for engines that are installed, and runs them there; writes a row for each.

    python scripts/fuzz_int8.py --first-seed 0 --count 100 [--engines openvino opencv] --out int8.jsonl
    python scripts/fuzz_int8.py --page int8.jsonl

The verdicts: right (off by at most the limit, or twice what onnxruntime makes of the same file), wrong, refused (one
clear error), fails (any other error), not run (the engine refuses the float32 file too). The networks are judged on
inputs that no export has seen, at another batch size where the batch is dynamic.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from torch_onnx_compat import CompatError, Int8, export_compat  # noqa: E402
from torch_onnx_compat.engines import EngineProcess, find_engine  # noqa: E402
from torch_onnx_compat.precision.int8.loss import relative_distance  # noqa: E402
from torch_onnx_compat.session import open_session  # noqa: E402

LIMIT = 0.1
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "relu6": functional.relu6,
    "sigmoid": torch.sigmoid,
    "silu": functional.silu,
    "hardswish": functional.hardswish,
    "leaky_relu": lambda x: functional.leaky_relu(x, 0.1),
    "gelu": functional.gelu,
    "tanh": torch.tanh,
    "clamp": lambda x: x.clamp(-1, 1),
    "none": lambda x: x,
}


class Step(nn.Module):
    """One step on images (N, C, H, W); `kind` and its numbers are drawn."""

    def __init__(self, draw: random.Random, channels: int) -> None:
        super().__init__()
        kinds = ["conv"] * 4 + ["depthwise", "pool", "gate", "residual", "join", "resize", "norm", "scale", "split"]
        self.kind = draw.choice(kinds)
        self.activation = draw.choice(list(ACTIVATIONS))
        self.out = channels
        size, bias = draw.choice([1, 3]), draw.random() < 0.6
        if self.kind == "conv":
            self.out = draw.choice([4, 8, 12])
            self.layer = nn.Conv2d(channels, self.out, size, draw.choice([1, 2]), size // 2, bias=bias)
        elif self.kind == "depthwise":
            self.layer = nn.Conv2d(channels, channels, 3, 1, 1, groups=channels, bias=bias)
        elif self.kind == "pool":
            counts, ceil = draw.random() < 0.5, draw.random() < 0.3
            pools = [nn.AvgPool2d(3, 1, 1, ceil, counts), nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(2, 2, 0, ceil)]
            self.pool = draw.choice(pools)
        elif self.kind in ("gate", "residual", "join", "norm"):
            self.layer = nn.Conv2d(channels, channels, 1, bias=bias)
            self.out = channels * (2 if self.kind == "join" else 1)
            self.norm = nn.GroupNorm(1, channels)
        elif self.kind == "resize":
            self.mode = draw.choice(["nearest", "bilinear"])
        elif self.kind == "scale":
            self.factor = nn.Parameter(torch.rand(channels, 1, 1) + 0.5)
        elif self.kind == "split":
            self.axis = draw.choice([1, 3])

    def forward(self, x: Tensor) -> Tensor:
        act = ACTIVATIONS[self.activation]
        own = {
            "pool": lambda: act(self.pool(x)) if min(x.shape[-2:]) > 2 else act(x),
            "gate": lambda: x * torch.sigmoid(self.layer(x.mean((2, 3), keepdim=True))),
            "residual": lambda: act(self.layer(x) + x),
            "join": lambda: torch.cat([act(self.layer(x)), x], 1),
            "norm": lambda: act(self.norm(self.layer(x))),
            "resize": lambda: self._resized(x) if max(x.shape[-2:]) < 20 else act(x),
            "scale": lambda: act(x * self.factor),
            "split": lambda: torch.cat(x.chunk(2, self.axis)[::-1], self.axis),
        }
        return own.get(self.kind, lambda: act(self.layer(x)))()

    def _resized(self, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=2, mode=self.mode)


class Tail(nn.Module):
    """What follows the images: a mean, or tokens with attention; then products, with and without a bias."""

    def __init__(self, draw: random.Random, channels: int) -> None:
        super().__init__()
        self.is_tokens, self.has_class = draw.random() < 0.5, draw.random() < 0.6
        self.token = nn.Parameter(torch.randn(1, 1, channels))
        self.qkv = nn.Linear(channels, 3 * channels, bias=draw.random() < 0.5)
        self.norm = nn.LayerNorm(channels)
        self.activation = draw.choice(list(ACTIVATIONS))
        widths = [channels, *(draw.choice([6, 16]) for _ in range(draw.randint(0, 2))), 5]
        pairs = itertools.pairwise(widths)
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=draw.random() < 0.6) for a, b in pairs)

    def forward(self, x: Tensor) -> Tensor:
        if self.is_tokens:
            x = x.flatten(2).transpose(1, 2)
            if self.has_class:
                x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1)
            q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
            x = x + functional.scaled_dot_product_attention(q, k, v)
            x = x[:, 0] if self.has_class else x.mean(1)
        else:
            x = x.mean((2, 3))
        for layer in self.layers[:-1]:
            x = ACTIVATIONS[self.activation](layer(x))
        return self.layers[-1](x)


def network(seed: int) -> nn.Module:
    """A random network that takes images (N, 3, 12, 12)."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    steps: list[nn.Module] = [nn.Conv2d(3, 8, 3, 1, 1)]
    channels = 8
    for _ in range(draw.randint(1, 5)):
        step = Step(draw, channels)
        steps.append(step)
        channels = step.out
    return nn.Sequential(*steps, Tail(draw, channels)).eval()


def judge(seed: int, engine: Any, process: EngineProcess) -> dict[str, Any]:
    """The row of one network."""
    model, is_dynamic = network(seed), seed % 2 == 0
    x = torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(seed))
    inputs = [torch.randn(4, 3, 12, 12, generator=torch.Generator().manual_seed(seed + 1 + i)) for i in range(6)]
    other = torch.randn(7 if is_dynamic else 4, 3, 12, 12, generator=torch.Generator().manual_seed(seed + 99))
    row: dict[str, Any] = {"seed": seed, "engine": engine.name}
    try:
        result = export_compat(
            model,
            x,
            dynamic="batch" if is_dynamic else None,
            target=engine.name,
            precision=Int8(inputs, limit=LIMIT),
        )
    except CompatError as problem:
        return {**row, "verdict": "refused", "why": str(problem)[:300]}
    except Exception as problem:  # the fuzzer tells of every other error
        return {**row, "verdict": "fails", "why": f"{type(problem).__name__}: {problem}"[:300]}
    told = result.precision
    row["layers"] = len(told.layers)
    row["for the engine"] = [layer.op_type for layer in told.kept if "computes something else" in layer.why]
    wanted = [[model.double()(other.double()).detach().numpy()]]
    feeds = {name: tensor.numpy() for name, tensor in result.signature.feeds((other,), {}).items()}
    own = relative_distance([open_session(result.model_bytes).run(None, feeds)], wanted)  # type: ignore[list-item]
    outcome = process.run(result.model_bytes, feeds, [result.model_proto.graph.output[0].name])
    if outcome.status != "ran":
        noted = any("with every layer in float32 too" in note for note in told.notes)
        return {**row, "verdict": "not run" if noted else "wrong", "why": outcome.error[:300]}
    off = relative_distance([outcome.outputs], wanted)
    row |= {"off": off, "own": own}
    return {**row, "verdict": "right" if off <= max(LIMIT, 2 * own) else "wrong"}


def page(path: Path) -> str:
    """The counts in Markdown."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lines = ["| engine | networks | right | wrong | refused | fails | not run | layers kept for the engine |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for name in sorted({row["engine"] for row in rows}):
        of = [row for row in rows if row["engine"] == name]
        counts = Counter(row["verdict"] for row in of)
        kept = Counter(op for row in of for op in row.get("for the engine", ()))
        told = ", ".join(f"{count} {op}" for op, count in kept.most_common()) or "none"
        cells = [name, len(of), *(counts[v] for v in ("right", "wrong", "refused", "fails", "not run")), told]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    bad = [row for row in rows if row["verdict"] in ("wrong", "fails")]
    return "\n".join([*lines, "", *(f"* {row}" for row in bad)])


def main() -> None:
    """Runs the seeds, or prints the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--engines", nargs="+", default=["openvino", "opencv"])
    parser.add_argument("--out", type=Path, default=Path("int8.jsonl"))
    parser.add_argument("--page", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if arguments.page:
        print(page(arguments.page))
        return
    print(f"{datetime.date.today()}, torch {torch.__version__}, numpy {np.__version__}")
    for name in arguments.engines:
        engine = find_engine(name)
        if engine.interpreter() is None:
            print(f"{name} is not installed")
            continue
        with EngineProcess(engine, limit=60.0) as process:
            for seed in range(arguments.first_seed, arguments.first_seed + arguments.count):
                row = judge(seed, engine, process)
                with arguments.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(row, flush=True)


if __name__ == "__main__":
    main()
