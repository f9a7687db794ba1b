"""Latency in onnxruntime of what the rewrites write, over the stock form and over the obvious other form, in one run.

The forms of a case take turns on one thread until the time is up; the figure is each one's best run. Usage:

    python benchmarks/rewrites.py [--only grid_sample] [--seconds 2] [--markdown]

results/transforms.md is what --only transform --markdown printed.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import onnxruntime as ort
import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional
from torch_onnx_compat.symbolics.grid_sampling import ROWS_FROM
from torch_onnx_compat.symbolics.short_time import stft_filters

from torch_onnx_compat import export_compat
from torch_onnx_compat.catalogue.entry import Exporter
from torch_onnx_compat.functional.fourier import table

PACKAGES = ("torch", "onnxruntime", "onnx")
FOCUS = ("focus_to_conv", "focus_to_space_to_depth")


@dataclass(frozen=True)
class Form:
    """One way of writing a case: a function, and how it is exported."""

    function: Any
    opset: int = 17
    exporter: Exporter = "torchscript"
    verify: bool = True
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """The same computation in two or three forms."""

    name: str
    args: tuple[Tensor, ...]
    stock: Form
    ours: Form
    naive: Form | None = None


def cases() -> Iterator[Case]:
    """All cases."""
    yield from grid_samples()
    yield from focuses()
    yield from rolls()
    yield from transforms()


# grid_sample: GridSample, our gathers, one GatherElements a corner over a padded image


def grid_samples() -> Iterator[Case]:
    shapes = [
        (1, 1, 64, 64),
        (1, 3, 64, 64),
        (1, 16, 64, 64),
        (1, ROWS_FROM, 64, 64),
        (1, 128, 64, 64),
        (1, 3, 256, 256),
    ]
    for shape in shapes:
        yield grid_sample(shape, (shape[0], *shape[2:], 2))
    yield grid_sample((256, 1, 16, 16), (256, 9, 9, 2))
    yield grid_sample((1, 3, 64, 64), (1, 64, 64, 2), "bicubic", padded_bilinear=False)
    yield grid_sample((1, 64, 64, 64), (1, 64, 64, 2), "nearest", padded_bilinear=False)
    yield grid_sample((1, 4, 16, 16, 16), (1, 16, 16, 16, 3), padded_bilinear=False)


def grid_sample(
    image: tuple[int, ...], grid: tuple[int, ...], mode: str = "bilinear", *, padded_bilinear: bool = True
) -> Case:
    args = (torch.rand(image), torch.rand(grid) * 2.4 - 1.2)

    def sample(image: Tensor, grid: Tensor) -> Tensor:
        return functional.grid_sample(image, grid, mode, align_corners=False)

    stock = Form(sample, opset=20)
    naive = Form(bilinear_from_padded) if padded_bilinear else None
    return Case(f"grid_sample {mode} {image}", args, stock, Form(sample, include=("grid_sample_to_gather",)), naive)


def bilinear_from_padded(image: Tensor, grid: Tensor) -> Tensor:
    """The form that is found in the wild: a border of zeros, and one expanded index a corner."""
    batch, channels, height, width = image.shape
    x, y = ((grid[..., k].flatten(1) + 1) * size / 2 - 0.5 for k, size in enumerate((width, height)))
    left, top = x.floor(), y.floor()
    padded = functional.pad(image, (1, 1, 1, 1)).flatten(2)
    total = torch.zeros(())
    for column, row in ((0, 0), (1, 0), (0, 1), (1, 1)):
        i, j = left + column, top + row
        weight = (1 - (x - i).abs()) * (1 - (y - j).abs())
        i, j = (i + 1).clamp(0, width + 1), (j + 1).clamp(0, height + 1)
        index = (j * (width + 2) + i).long().unsqueeze(1).expand(-1, channels, -1)
        total = total + padded.gather(2, index) * weight.unsqueeze(1)
    return total.reshape(batch, channels, *grid.shape[1:-1])


# Focus: slices and convolution, our one convolution or space to depth, a one-hot convolution and convolution


class Focus(nn.Module):
    """YOLOv5's."""

    def __init__(self, channels: int, groups: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(4 * channels, 32, 3, padding=1, groups=groups)

    def forward(self, x: Tensor) -> Tensor:
        """Slices, then convolves."""
        slices = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        result: Tensor = self.conv(torch.cat(slices, 1))
        return result


class OneHotFocus(Focus):
    """The slices as a convolution of their own."""

    def __init__(self, channels: int, groups: int = 1) -> None:
        super().__init__(channels, groups)
        slices = torch.zeros(4 * channels, channels, 2, 2)
        for k in range(4 * channels):
            quarter, channel = divmod(k, channels)
            slices[k, channel, quarter % 2, quarter // 2] = 1
        self.slices = nn.Parameter(slices)

    def forward(self, x: Tensor) -> Tensor:
        """Convolves twice."""
        result: Tensor = self.conv(functional.conv2d(x, self.slices, stride=2))
        return result


def focuses() -> Iterator[Case]:
    for channels, size, groups in ((3, 224, 1), (3, 640, 1), (16, 160, 4)):
        stock, naive = Focus(channels, groups).eval(), OneHotFocus(channels, groups).eval()
        naive.conv = stock.conv
        name = f"Focus {channels}x{size}x{size}, {groups} group(s)"
        yield Case(name, (torch.rand(1, channels, size, size),), Form(stock, exclude=FOCUS), Form(stock), Form(naive))


# roll: what stock TorchScript writes, our slices, a gather


def rolls() -> Iterator[Case]:
    for shape, dims in (((1, 56, 56, 96), (1, 2)), ((1, 64, 128, 128), (2, 3)), ((1, 200_000), (1,))):
        roll = rolled(dims)
        stock = Form(roll, exclude=("roll_to_slices",))
        yield Case(f"roll {shape}", (torch.rand(shape),), stock, Form(roll), Form(gathered(dims)))


def rolled(dims: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.roll(x, (3,) * len(dims), dims)


def gathered(dims: tuple[int, ...]) -> Callable[[Tensor], Tensor]:
    def roll(x: Tensor) -> Tensor:
        for dim in dims:
            x = x.index_select(dim, (torch.arange(x.shape[dim]) - 3) % x.shape[dim])
        return x

    return roll


# Transforms: DFT and STFT, our products or convolution, one product or convolution whatever the length


def transforms() -> Iterator[Case]:
    # Not verified: onnxruntime's DFT of 400 points is off by 0.002 where the spectrum is 0.
    for points in (128, 256, 400, 512, 1024, 2048):
        spectrum, args = spectrum_of(points), (torch.randn(400, points),)
        stock = Form(spectrum, 20, "dynamo", verify=False, exclude=("rfft_to_matmul",))
        yield Case(f"transform of 400 rows, {points} points", args, stock, Form(spectrum), Form(product(points)))
    for points in (400, 512, 640, 1024, 2048):
        short, args = short_time(points), (torch.randn(1, 100 * points),)
        stock = Form(short, 20, "dynamo", verify=False, exclude=("stft_to_conv",))
        yield Case(f"short-time transform, {points} points", args, stock, Form(short), Form(convolution(points)))


def spectrum_of(points: int) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.view_as_real(torch.fft.rfft(x, points))


def product(points: int) -> Callable[[Tensor], Tensor]:
    factors = torch.view_as_real(torch.tensor(table(points, points, points // 2 + 1, None, False)))
    real, imag = factors.float().unbind(-1)
    return lambda x: torch.stack((x @ real, x @ imag), -1)


def short_time(points: int) -> Callable[[Tensor], Tensor]:
    window = torch.hann_window(points)
    return lambda x: torch.view_as_real(torch.stft(x, points, window=window, center=False, return_complex=True))


def convolution(points: int) -> Callable[[Tensor], Tensor]:
    filters = torch.tensor(stft_filters(points, points // 2 + 1, 1.0)).float() * torch.hann_window(points)
    return lambda x: torch.stack(functional.conv1d(x.unsqueeze(1), filters, stride=points // 4).chunk(2, 1), -1)


# Measuring


def session(form: Form, args: tuple[Tensor, ...]) -> ort.InferenceSession:
    """The form, exported and loaded for one thread."""
    result = export_compat(
        form.function,
        args,
        exporter=form.exporter,
        verify=form.verify,
        opset_version=form.opset,
        include=form.include,
        exclude=form.exclude,
    )
    assert result.model_bytes is not None
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    return ort.InferenceSession(result.model_bytes, options)


def best_times(case: Case, seconds: float) -> dict[str, float]:
    """Best run of each form, in ms."""
    forms = {"stock": case.stock, "ours": case.ours, "naive": case.naive}
    sessions = {name: session(form, case.args) for name, form in forms.items() if form is not None}
    feeds = {
        name: {i.name: a.numpy() for i, a in zip(s.get_inputs(), case.args, strict=True)}
        for name, s in sessions.items()
    }
    best = dict.fromkeys(sessions, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, running in sessions.items():
            start = time.perf_counter()
            running.run(None, feeds[name])
            best[name] = min(best[name], 1e3 * (time.perf_counter() - start))
    return best


def main(
    only: Annotated[str, typer.Option(help="Run the cases whose name contains this.")] = "",
    seconds: Annotated[float, typer.Option(help="Time for each case.")] = 2.0,
    markdown: Annotated[bool, typer.Option(help="Print a Markdown table.")] = False,
) -> None:
    """Prints one row a case: each form's best time, and ours as a fraction of the others'."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    title = f"{datetime.date.today()}, {versions}, CPU, 1 thread, best run in ms"
    header = ("case", "stock", "ours", "naive", "ours / stock", "ours / naive")
    rows = []
    for case in cases():
        if only in case.name:
            times = best_times(case, seconds)
            figures = [f"{times[form]:.3f}" if form in times else "-" for form in ("stock", "ours", "naive")]
            ratios = [f"{times['ours'] / times[f]:.2f}" if f in times else "-" for f in ("stock", "naive")]
            rows.append((case.name, *figures, *ratios))
    if markdown:
        print(f"{title}\n")
        for row in (header, ("---",) * len(header), *rows):
            print("| " + " | ".join(row) + " |")
        return
    table = Table(*header, title=title)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
