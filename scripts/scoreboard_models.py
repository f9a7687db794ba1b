"""Chooses the scoreboard's models, at small pictures where they take them.

All models of torchvision and transformers, of every family of the other zoos the smallest, and as `timm_random` models
of timm that a seed draws from the rest. Writes docs/scoreboard/LIST.txt, a spec a line, as `torch-onnx-compat sweep
@FILE` reads them. Usage:

    python scripts/scoreboard_models.py timm timm_random torchvision ultralytics smp transformers
"""

from __future__ import annotations

import contextlib
import io
import random
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import timm
import torch
import typer
from rich.console import Console
from rich.progress import track
from torch.utils._pytree import tree_leaves, tree_map_only

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from torch_onnx_compat import zoo  # noqa: E402
from torch_onnx_compat.zoo.sample import Size  # noqa: E402
from torch_onnx_compat.zoo.timm import options as timm_options  # noqa: E402

FOLDER = ROOT / "docs" / "scoreboard"
SMALL: dict[str, Size] = {"timm": (128, 128), "torchvision": (96, 96), "smp": (128, 128), "ultralytics": (192, 192)}
"""Pictures that most models of a zoo take; the others get the zoo's own size."""
NOISE = 1e-3
"""A model that is so far off a float64 run at small pictures amplifies rounding there; it gets its own size."""
RANDOM = "_random"
"""Ends the name of a list of models drawn at random from those that the zoo's other list lacks."""
DRAWN, DRAWN_BY = 300, 1
"""How many, and the seed."""
LARGEST = 500_000_000
"""Parameters of the largest model that is drawn: 2 GB, which exports and is verified within 9 GB."""
SHORTLIST = 8
"""How many of a family are built to count their parameters."""
SMALL_WORDS = (
    *("test", "atto", "femto", "pico", "nano", "xxs", "xxtiny", "xx", "n0", "m0", "b0", "s0", "x0", "h1"),
    *("xs", "xtiny", "x", "tiny", "t", "ti", "mini", "050", "small", "s", "lite", "m1", "b1", "s1", "14", "18"),
)
"""What the names of small models contain, smallest first."""


@cache
def families(source: str) -> dict[str, list[str]]:
    """Names by family."""
    found = defaultdict(list)
    for name in zoo.find(source).names():
        found[zoo.family(f"{source}:{name}")].append(name)
    return dict(sorted(found.items()))


def parameters(name: str) -> float:
    """How many parameters a model of timm has, built without memory; infinite where that does not work."""
    try:
        with torch.device("meta"):
            model = _builder(name)
        return sum(p.numel() for p in model.parameters())
    except Exception:  # a zoo's code raises anything
        return float("inf")


def _builder(name: str, **options: Any) -> torch.nn.Module:
    return timm.create_model(name, pretrained=False, **options)


def chosen(title: str) -> Iterable[str]:
    """The names of one list."""
    source = title.removesuffix(RANDOM)
    if title.endswith(RANDOM):
        listed = (FOLDER / f"{source}.txt").read_text(encoding="utf-8").splitlines()
        taken = {text.split()[0].partition(":")[2] for text in listed}
        rest = sorted(set(zoo.find(source).names()) - taken)
        random.Random(DRAWN_BY).shuffle(rest)
        return islice((name for name in rest if parameters(name) <= LARGEST), DRAWN)
    if source in ("torchvision", "transformers"):
        return zoo.find(source).names()
    if source == "smp":
        return [f"{f}-resnet18" if f != "dpt" else names[0] for f, names in families(source).items()]
    if source == "ultralytics":  # the names of a family differ in the letter of the scale
        return [min(names, key=lambda n: (_scale(n), n)) for names in families(source).values()]
    items = list(families(source).items())
    return [
        min(sorted(names, key=_rank)[:SHORTLIST], key=lambda n: (parameters(n), n))
        for _, names in track(items, source, console=Console(stderr=True))
    ]


def _rank(name: str) -> tuple[int, str]:
    """How early a word of `SMALL_WORDS` stands in the name."""
    words = re.split(r"[_.]", name)
    return next((rank for rank, word in enumerate(SMALL_WORDS) if word in words), len(SMALL_WORDS)), name


def _scale(name: str) -> int:
    from torch_onnx_compat.zoo.ultralytics import _files

    return "ntsmblcex".find(_files()[name][1])


def line(title: str, name: str) -> str:
    """The spec, with the small pictures if the model takes them.

    What models of torchvision take, the first of the family tells; of those drawn at random only whether they run.
    """
    source = title.removesuffix(RANDOM)
    small = SMALL.get(source)
    if small is None:
        fits = False
    elif title.endswith(RANDOM):
        fits = _runs(name, small)
    elif source == "torchvision":
        fits = _fits(f"{source}:{families(source)[zoo.family(f'{source}:{name}')][0]}", small)
    else:
        fits = _fits(f"{source}:{name}", small)
    return f"{source}:{name} {small[0]}x{small[1]}" if small and fits else f"{source}:{name}"


@cache
def _fits(spec: str, small: Size) -> bool:
    """Whether a model takes the pictures and does not amplify rounding there."""
    try:
        return _noise(zoo.load(spec, small)) < NOISE
    except Exception:  # a model that takes its own size only raises anything
        return False


def _runs(name: str, small: Size) -> bool:
    """Whether a model of timm takes the pictures, tried without memory."""
    try:
        with torch.device("meta"):
            _builder(name, **timm_options(name, small)).eval()(torch.empty(1, 3, *small))
    except Exception:  # a model that takes its own size only, or runs with real numbers only, raises anything
        return False
    return True


def _noise(sample: zoo.Sample) -> float:
    """Largest rounding error of the model's outputs over their largest value; 0 where it runs in no other type."""
    with torch.no_grad():
        found = _tensors(sample.model(*sample.args, **sample.kwargs))
        try:
            inputs = tree_map_only(torch.Tensor, _as_double, (sample.args, dict(sample.kwargs)))
            exact = _tensors(sample.model.double()(*inputs[0], **inputs[1]))
        except RuntimeError:
            return 0.0
    pairs = [(a, b) for a, b in zip(found, exact, strict=True) if a.is_floating_point() and a.shape == b.shape]
    return max((float((a - b).abs().max() / b.abs().max()) for a, b in pairs if a.numel()), default=0.0)


def _as_double(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _tensors(value: object) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def main(titles: list[str]) -> None:
    """Chooses and writes."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for title in titles:
        with contextlib.redirect_stdout(io.StringIO()):
            lines = [line(title, name) for name in track(list(chosen(title)), title, console=Console(stderr=True))]
        (FOLDER / f"{title}.txt").write_text("".join(f"{text}\n" for text in lines), encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
