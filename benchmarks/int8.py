"""Accuracy, size and latency of files in eight bits: by quantize_static's defaults, and by precision=Int8(...).

Five small networks are trained here, in minutes, on data that ships with scikit-learn. Of each the float32 file, the
float16 file, a file by onnxruntime's `quant_pre_process` and `quantize_static` at their defaults, and the file of
Int8 are measured on test data that neither training nor calibration saw. Latency is the median of interleaved runs.

    python benchmarks/int8.py measure --out int8.jsonl [--models cnn vit ...]
    python benchmarks/int8.py page int8.jsonl > results/int8-DATE.md

It needs scikit-learn; with OpenVINO installed, its accuracy and latency are measured too.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import importlib.metadata
import importlib.util
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn import datasets
from torch import Tensor, nn
from torch.nn import functional

from torch_onnx_compat import Int8, export_compat
from torch_onnx_compat.session import open_session

BATCH, CALIBRATION = 16, 400
RUNS = 200


# Networks


class Separable(nn.Module):
    """A depthwise and a pointwise convolution, each with batch normalisation."""

    def __init__(self, inner: int, outer: int, stride: int = 1) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inner, inner, 3, stride, 1, groups=inner, bias=False)
        self.norm = nn.BatchNorm2d(inner)
        self.pointwise = nn.Conv2d(inner, outer, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outer)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm2(self.pointwise(self.norm(self.depthwise(x)).relu())).relu()


class Cnn(nn.Module):
    """Depthwise separable convolutions; batch normalisation begins with gains over two decades."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 32, 3, padding=1)
        self.blocks = nn.Sequential(Separable(32, 64), Separable(64, 64, 2), Separable(64, 128), Separable(128, 128, 2))
        self.head = nn.Linear(128, 10)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.weight.data = 10 ** torch.empty(module.num_features).uniform_(-1.5, 0.5)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(image).relu()).mean((2, 3)))


class Block(nn.Module):
    """Pre-norm attention and a two-layer network."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        q, k, v = self.qkv(self.norm(x)).view(n, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, length, width)
        x = x + self.out(attended)
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """A vision transformer on patches of 2 x 2."""

    def __init__(self, width: int = 96, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.position = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


class Segmenter(nn.Module):
    """An encoder and a decoder with skips; gives scores (N, 11, H, W), the last class is the background."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()

        def step(inner: int, outer: int, stride: int = 1) -> nn.Sequential:
            conv = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            return nn.Sequential(conv, nn.BatchNorm2d(outer), nn.SiLU())

        self.down = nn.ModuleList([step(1, width), step(width, 2 * width, 2), step(2 * width, 4 * width, 2)])
        self.middle = step(4 * width, 4 * width)
        self.up = nn.ModuleList([step(6 * width, 2 * width), step(3 * width, width)])
        self.head = nn.Conv2d(width, 11, 1)

    def forward(self, image: Tensor) -> Tensor:
        skips = []
        for step in self.down:
            image = step(image)
            skips.append(image)
        image = self.middle(image)
        for step, skip in zip(self.up, skips[1::-1], strict=True):
            image = step(torch.cat([functional.interpolate(image, scale_factor=2.0), skip], 1))
        return self.head(image)


class Recurrent(nn.Module):
    """A gated recurrent network over the rows of a picture, written out."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.gates, self.new = nn.Linear(8 + width, 2 * width), nn.Linear(8 + width, width)
        self.head = nn.Linear(width, 10)
        self.width = width

    def forward(self, image: Tensor) -> Tensor:
        rows = image.squeeze(1)
        state = rows.new_zeros(rows.shape[0], self.width)
        for row in rows.unbind(1):
            update, reset = self.gates(torch.cat([row, state], 1)).sigmoid().chunk(2, 1)
            state = update * state + (1 - update) * self.new(torch.cat([row, reset * state], 1)).tanh()
        return self.head(state)


class Text(nn.Module):
    """A transformer over the bytes of a text."""

    def __init__(self, classes: int, length: int = 64, width: int = 64) -> None:
        super().__init__()
        self.letters = nn.Embedding(128, width)
        self.position = nn.Parameter(torch.randn(1, length, width) * 0.02)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, letters: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.letters(letters) + self.position)).mean(1))


# Data: (training inputs, labels), calibration inputs, (test inputs, labels)


@dataclass
class Data:
    train: tuple[Tensor, Tensor]
    calibration: Tensor
    test: tuple[Tensor, Tensor]


def _split(inputs: Tensor, labels: Tensor, test: int) -> Data:
    order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(0))
    last, first = order[-test:], order[:-test]
    training, calibration = first[:-CALIBRATION], first[-CALIBRATION:]
    return Data((inputs[training], labels[training]), inputs[calibration], (inputs[last], labels[last]))


def digits() -> Data:
    pictures, labels = datasets.load_digits(return_X_y=True)
    images = torch.tensor(pictures, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    return _split(images, torch.tensor(labels), 497)


def scenes() -> Data:
    """Pictures of 32 x 32 with three digits, of other brightness each, on a noisy ground."""
    pictures, labels = datasets.load_digits(return_X_y=True)
    draw = np.random.default_rng(0)
    images = draw.normal(0, 0.1, (1600, 1, 32, 32)).astype(np.float32)
    classes = np.full((1600, 32, 32), 10)
    for image, marks in zip(images, classes, strict=True):
        for number in draw.integers(len(pictures), size=3):
            top, left = draw.integers(0, 16, size=2)
            digit = np.kron(pictures[number].reshape(8, 8) / 16, np.ones((2, 2))) * draw.uniform(0.5, 4)
            place = slice(top, top + 16), slice(left, left + 16)
            image[0][place] = np.maximum(image[0][place], digit)
            marks[place] = np.where(digit > 0.3 * digit.max(), labels[number], marks[place])
    return _split(torch.tensor(images), torch.tensor(classes), 300)


def texts() -> Data:
    """Windows of 64 letters; the label is the data set whose description they are from."""
    names = ("iris", "wine", "breast_cancer", "diabetes", "digits", "linnerud")
    loaders = [getattr(datasets, f"load_{name}") for name in names]
    rows, labels = [], []
    for label, loader in enumerate(loaders):
        letters = torch.tensor([min(ord(letter), 127) for letter in loader().DESCR])
        windows = letters.unfold(0, 64, max(1, (len(letters) - 64) // 500))[:500]
        rows.append(windows)
        labels.append(torch.full((len(windows),), label))
    return _split(torch.cat(rows), torch.cat(labels), 600)


# Training and points


def train(model: nn.Module, data: Data, epochs: int, rate: float = 2e-3) -> nn.Module:
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=1e-2)
    inputs, labels = data.train
    steps = epochs * -(-len(inputs) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(epochs):
        for rows in torch.randperm(len(inputs)).split(64):
            loss = functional.cross_entropy(model(inputs[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model.eval()


def accuracy(scores: np.ndarray, labels: np.ndarray) -> float:
    """Per cent of the rows that are right."""
    return 100 * float((scores.argmax(1) == labels).mean())


def mean_iou(scores: np.ndarray, labels: np.ndarray) -> float:
    """Intersection over union in per cent, the mean of the classes."""
    found = scores.argmax(1)
    each = [((found == c) & (labels == c)).sum() / max(((found == c) | (labels == c)).sum(), 1) for c in range(11)]
    return 100 * float(np.mean(each))


@dataclass
class Entry:
    make: Callable[[], nn.Module]
    data: Callable[[], Data]
    points: Callable[[np.ndarray, np.ndarray], float] = accuracy
    epochs: int = 30


ENTRIES = {
    "cnn": Entry(Cnn, digits, epochs=40),
    "vit": Entry(Vit, digits, epochs=60),
    "segmenter": Entry(Segmenter, scenes, mean_iou, epochs=20),
    "recurrent": Entry(Recurrent, digits, epochs=60),
    "text": Entry(lambda: Text(6), texts, epochs=12),
}


# Files


class Reader(CalibrationDataReader):
    def __init__(self, name: str, batches: list[Tensor]) -> None:
        self._batches = iter([{name: batch.numpy()} for batch in batches])

    def get_next(self) -> Any:
        return next(self._batches, None)


def by_default(float32: Path, batches: list[Tensor], folder: Path) -> Path:
    """By onnxruntime's preprocessing and quantize_static, every argument at its default."""
    prepared, made = folder / "prepared.onnx", folder / "default.onnx"
    try:
        quant_pre_process(str(float32), str(prepared))
    except Exception as error:  # it raises no other
        print(f"{float32}: {error}; without the symbolic shapes then", file=sys.stderr)
        quant_pre_process(str(float32), str(prepared), skip_symbolic_shape=True)
    name = onnxruntime.InferenceSession(str(float32), providers=["CPUExecutionProvider"]).get_inputs()[0].name
    quantize_static(str(prepared), str(made), Reader(name, batches))
    return made


def files(model: nn.Module, data: Data, folder: Path) -> dict[str, tuple[Path, Any]]:
    batches = list(data.calibration.split(BATCH))
    made: dict[str, tuple[Path, Any]] = {}
    ways = {"float32": None, "float16": "float16", "int8": Int8(calibration=batches, metric="top1")}
    for name, precision in ways.items():
        path = folder / f"{name}.onnx"
        start = time.process_time()
        result = export_compat(model, (batches[0],), str(path), dynamic="batch", precision=precision)
        made[name] = (path, {"seconds": time.process_time() - start, "precision": result.precision})
        if precision is None:
            start = time.process_time()
            made["default"] = (by_default(path, batches, folder), {"seconds": time.process_time() - start})
    return made


def scores_of(run: Callable[[np.ndarray], np.ndarray], inputs: Tensor) -> np.ndarray:
    return np.concatenate([run(batch.numpy()) for batch in inputs.split(BATCH)])


def onnxruntime_runner(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = open_session(path, sess_options=options)
    name = session.get_inputs()[0].name
    return lambda batch: session.run(None, {name: batch})[0]


def openvino_runner(path: Path) -> Callable[[np.ndarray], np.ndarray]:
    import openvino

    compiled = openvino.Core().compile_model(str(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
    return lambda batch: compiled(batch)[0]


def latency(runners: dict[str, Callable[[np.ndarray], np.ndarray]], batch: np.ndarray) -> dict[str, float]:
    """Median milliseconds of a batch; one run of each file after the other."""
    times: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(RUNS):
        for name, run in runners.items():
            start = time.perf_counter()
            run(batch)
            times[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(found) for name, found in times.items()}


def measure(name: str) -> dict[str, Any]:
    torch.manual_seed(0)
    entry, row = ENTRIES[name], {"model": name}
    data = entry.data()
    model = train(entry.make(), data, entry.epochs)
    labels = data.test[1].numpy()
    engines = {"onnxruntime": onnxruntime_runner}
    if importlib.util.find_spec("openvino") is not None:
        engines["openvino"] = openvino_runner
    with tempfile.TemporaryDirectory() as folder:
        made = files(copy.deepcopy(model), data, Path(folder))
        row["bytes"] = {way: path.stat().st_size for way, (path, _) in made.items()}
        row["seconds"] = {way: told["seconds"] for way, (_, told) in made.items()}
        row["told"] = str(made["int8"][1]["precision"])
        found = made["int8"][1]["precision"]
        row["kept"] = [len(found.kept), len(found.layers)]
        for engine, open_file in engines.items():
            runners, refused = {}, {}
            for way, (path, _) in made.items():
                try:
                    runners[way] = open_file(path)
                except Exception as error:  # whatever the engine raises
                    refused[way] = " ".join(str(error).split())[:300]
            points = {way: entry.points(scores_of(run, data.test[0]), labels) for way, run in runners.items()}
            times = latency(runners, data.test[0][:BATCH].numpy())
            row[engine] = {"points": points, "latency": times, "refused": refused}
    return row


# The page

WAYS = ("float32", "float16", "default", "int8")


def page(rows: list[dict[str, Any]]) -> str:
    names = ("torch", "onnx", "onnxruntime", "openvino", "scikit-learn")
    versions = ", ".join(f"{n} {rows[0]['versions'][n]}" for n in names if rows[0]["versions"].get(n))
    lines = [
        "# Files in eight bits",
        "",
        f"Measured {datetime.date.today()} with {versions}, by benchmarks/int8.py. {rows[0]['machine']}.",
        "",
        "*default*: `quant_pre_process` and `quantize_static` with every argument at its default; without symbolic",
        "shapes where they cannot be inferred. *int8*:",
        '`precision=Int8(calibration=batches, metric="top1")`. Points are per cent of the rows that are right, of the',
        "segmenter the mean intersection over union, on data that neither training nor calibration saw.",
        "",
        "| model | float32 | float16 | INT8 by default | INT8 | default loses | int8 loses | layers in float32 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        points = row["onnxruntime"]["points"]
        lost = [f"{points['float32'] - points[way]:.2f}" for way in ("default", "int8")]
        cells = [row["model"], *(f"{points[way]:.2f}" for way in WAYS), *lost, f"{row['kept'][0]} of {row['kept'][1]}"]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "## Size of the file, kilobytes", "", *_head()]
    lines += [_row(row["model"], [f"{row['bytes'][way] / 1e3:.0f}" for way in WAYS]) for row in rows]
    for engine in ("onnxruntime", "openvino"):
        if any(engine in row for row in rows):
            lines += ["", f"## Latency in {engine}, milliseconds for a batch of {BATCH}, one thread", "", *_head()]
            lines += [_row(r["model"], [_cell(r[engine]["latency"], w) for w in WAYS]) for r in rows if engine in r]
    if any("openvino" in row for row in rows):
        lines += ["", "## Points in OpenVINO", "", *_head()]
        lines += [_row(r["model"], [_cell(r["openvino"]["points"], w) for w in WAYS]) for r in rows if "openvino" in r]
    lines += ["", "## Processor seconds of making the file", "", *_head()]
    lines += [_row(row["model"], [f"{row['seconds'][way]:.1f}" for way in WAYS]) for row in rows]
    return "\n".join(lines) + "\n"


def _head() -> list[str]:
    return ["| model | float32 | float16 | INT8 by default | INT8 |", "|---|---|---|---|---|"]


def _row(name: str, cells: list[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def _cell(numbers: dict[str, float], way: str) -> str:
    return f"{numbers[way]:.2f}" if way in numbers else "refused"


def _versions() -> dict[str, str]:
    found = {}
    for name in ("torch", "onnx", "onnxruntime", "openvino", "scikit-learn"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _machine() -> str:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    vnni = "with" if "vnni" in flags else "without"
    return f"{platform.machine()}, one thread, a processor {vnni} VNNI; other work was on the machine"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["measure", "page"])
    parser.add_argument("file", nargs="?")
    parser.add_argument("--out", default="int8.jsonl")
    parser.add_argument("--models", nargs="*", default=list(ENTRIES))
    given = parser.parse_args()
    if given.what == "page":
        print(page([json.loads(line) for line in Path(given.file).read_text().splitlines()]), end="")
        return
    torch.set_num_threads(1)
    for name in given.models:
        row = {**measure(name), "versions": _versions(), "machine": _machine()}
        print(name, row["onnxruntime"], row.get("openvino"), row["told"], sep="\n", file=sys.stderr)
        with open(given.out, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
