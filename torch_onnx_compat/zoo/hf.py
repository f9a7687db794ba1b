"""Models of transformers by their name on the Hub or their folder: ``hf:org/name``, ``hf:./folder#task``.

The inputs, their axes and the longest text follow from the configuration. The task chooses the head; without one it is
the class that the configuration names.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from torch_onnx_compat.errors import CompatError, unknown_name
from torch_onnx_compat.zoo.sample import DEFAULT, SEED, Sample, Size
from torch_onnx_compat.zoo.weights import build_with_seed, quiet_hub

PACKAGES = ("transformers",)
TRAINED = True

BATCH, TOKENS, WAVE, FRAMES = 2, 16, 16000, 3000
"""Sizes of the example: texts, tokens of each, samples of a wave, frames of a spectrogram."""

_TASKS = {
    "audio-classification": "AutoModelForAudioClassification",
    "automatic-speech-recognition": "AutoModelForCTC",
    "depth-estimation": "AutoModelForDepthEstimation",
    "feature-extraction": "AutoModel",
    "fill-mask": "AutoModelForMaskedLM",
    "image-classification": "AutoModelForImageClassification",
    "image-segmentation": "AutoModelForImageSegmentation",
    "object-detection": "AutoModelForObjectDetection",
    "question-answering": "AutoModelForQuestionAnswering",
    "semantic-segmentation": "AutoModelForSemanticSegmentation",
    "text-classification": "AutoModelForSequenceClassification",
    "text-generation": "AutoModelForCausalLM",
    "text2text-generation": "AutoModelForSeq2SeqLM",
    "token-classification": "AutoModelForTokenClassification",
}
"""transformers' automatic class for each task."""

Axes = dict[int, str | tuple[str, int, int | None]]


def names() -> list[str]:
    """The models that are in the cache of this machine; every other one of the Hub works too."""
    from huggingface_hub import scan_cache_dir
    from huggingface_hub.errors import CacheNotFound

    try:
        return sorted(repo.repo_id for repo in scan_cache_dir().repos if repo.repo_type == "model")
    except CacheNotFound:
        return []


def family(name: str) -> str:
    """The organisation, or the folder above."""
    return name.partition("#")[0].rstrip("/").rpartition("/")[0] or name


def build(name: str, size: Size | None = None) -> Sample:
    """Builds one model with its weights; a folder that holds a configuration only gives random ones.

    Args:
        name: ``org/name`` or a folder, perhaps with ``#task``.
        size: Height and width of its pictures.
    """
    place, _, task = name.partition("#")
    if task and task not in _TASKS:
        raise unknown_name("task", task, _TASKS)
    with _quiet():
        config = _had(place, lambda: AutoConfig.from_pretrained(place))
        if hasattr(config, "use_cache"):
            config.use_cache = False  # the caches would be outputs
        kind = _class(config, task)
        has_weights = not Path(place).is_dir() or any(
            file.suffix in (".safetensors", ".bin") for file in Path(place).iterdir()
        )
        if has_weights:
            model = _had(place, lambda: kind.from_pretrained(place, config=config)).eval()
            inputs, dynamic = _inputs(place, model, size)
            return Sample(model, kwargs=inputs, dynamic=dynamic).positional()
        make = kind.from_config if hasattr(kind, "from_config") else kind._from_config
        inputs, dynamic = _inputs(place, make(config), size)
        model = build_with_seed(lambda: make(config), (), kwargs=inputs)
        return replace(Sample(model, kwargs=inputs, dynamic=dynamic).positional(), random="all")


def build_trained(name: str, weights: str, size: Size | None = None) -> Sample:
    """As `build`, but refuses a folder without weights; a model has one set of them, which is the default."""
    if weights != DEFAULT:
        raise unknown_name(f"weights of {name}", weights, [DEFAULT])
    sample = build(name, size)
    if sample.random:
        raise CompatError(f"hf:{name}: the folder holds a configuration, and no weights (*.safetensors).")
    return sample


@contextmanager
def _quiet() -> Iterator[None]:
    """No advice while a model is loaded, and bars on a terminal only; errors are told by `_had`."""
    level = logging.get_verbosity()
    had_bars = logging.is_progress_bar_enabled()
    try:
        if not sys.stderr.isatty():
            logging.disable_progress_bar()
        logging.set_verbosity_error()
        with quiet_hub():
            yield
    finally:
        logging.set_verbosity(level)
        if had_bars:
            logging.enable_progress_bar()


def _had(place: str, fetch: Any) -> Any:
    """What transformers reads or downloads.

    Raises:
        CompatError: It cannot.
    """
    try:
        return fetch()
    except Exception as error:  # the Hub's, the file system's and the configuration's errors have no common class
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CompatError(
            f"hf:{place}: cannot be had: {first} ({type(error).__name__}). transformers downloads a model once; "
            f"without a network, give the folder that save_pretrained wrote."
        ) from error


def _class(config: Any, task: str) -> Any:
    """The class that makes the model."""
    if task:
        return getattr(transformers, _TASKS[task])
    named = (getattr(config, "architectures", None) or [""])[0]
    return getattr(transformers, named, AutoModel) if named else AutoModel


def _inputs(place: str, model: nn.Module, size: Size | None) -> tuple[dict[str, Tensor], dict[str, Axes]]:
    """Example inputs and their axes, by the name of forward's parameter."""
    generator = torch.Generator().manual_seed(SEED)
    parameters = inspect.signature(model.forward).parameters
    known = {**_texts(place, model, generator), **_pictures(model, size, generator), **_sounds(model, generator)}
    chosen = {name: known[name] for name in known if name in parameters}
    if not chosen:
        raise CompatError(
            f"hf:{place}: its inputs {list(parameters)[:5]} are unknown here; write a factory, file.py:make, that "
            f"returns (model, args, kwargs)."
        )
    return {name: value for name, (value, _) in chosen.items()}, {name: axes for name, (_, axes) in chosen.items()}


def _texts(place: str, model: nn.Module, generator: torch.Generator) -> dict[str, tuple[Tensor, Axes]]:
    """Tokens, a mask that hides the end of the second text, and the kinds of tokens where the tokenizer gives them."""
    config: Any = model.config
    longest = _longest(model)

    def of(axis: str, value: Tensor) -> tuple[Tensor, Axes]:
        return value, {0: "batch", 1: (axis, 1, longest) if longest else axis}

    texts: dict[str, tuple[Tensor, Axes]] = {}
    if getattr(model, "main_input_name", "") == "input_ids" or hasattr(config, "text_config"):
        ids = torch.randint(0, _words(config), (BATCH, TOKENS), generator=generator)
        mask = torch.ones(BATCH, TOKENS, dtype=torch.int64)
        mask[1, TOKENS - 5 :] = 0
        texts = {"input_ids": of("tokens", ids), "attention_mask": of("tokens", mask)}
        if int(getattr(config, "type_vocab_size", 0) or 0) > 1 and "token_type_ids" in _told_by_tokenizer(place):
            kinds = (torch.arange(TOKENS) >= TOKENS // 2).long().repeat(BATCH, 1)
            texts["token_type_ids"] = of("tokens", kinds)
    if getattr(config, "is_encoder_decoder", False):
        start = torch.randint(0, _words(config), (BATCH, TOKENS), generator=generator)
        texts["decoder_input_ids"] = of("decoder_tokens", start)
    return texts


def _pictures(model: nn.Module, size: Size | None, generator: torch.Generator) -> dict[str, tuple[Tensor, Axes]]:
    """Pictures of the size that the configuration names."""
    config: Any = model.config
    vision = getattr(config, "vision_config", config)
    found = size or getattr(vision, "image_size", None) or 224
    side = (found[0], found[-1]) if isinstance(found, (list, tuple)) else (found, found)
    channels = int(getattr(vision, "num_channels", 3))
    return {"pixel_values": (torch.randn(BATCH, channels, *side, generator=generator), {0: "batch"})}


def _sounds(model: nn.Module, generator: torch.Generator) -> dict[str, tuple[Tensor, Axes]]:
    """Waves of any length, and spectrograms of the number of bins that the configuration names."""
    config: Any = model.config
    bins = int(getattr(config, "num_mel_bins", None) or 80)
    return {
        "input_values": (torch.randn(BATCH, WAVE, generator=generator), {0: "batch", 1: "samples"}),
        "input_features": (torch.randn(BATCH, bins, FRAMES, generator=generator), {0: "batch"}),
    }


def _told_by_tokenizer(place: str) -> list[str]:
    """The inputs that the model's tokenizer makes; all where there is none, as in a folder of the model alone."""
    try:
        return list(AutoTokenizer.from_pretrained(place).model_input_names)
    except Exception:  # no file of it, or a package of its own that is not installed
        return ["input_ids", "token_type_ids", "attention_mask"]


def _words(config: Any) -> int:
    return int(getattr(getattr(config, "text_config", config), "vocab_size", 1000))


def _longest(model: nn.Module) -> int | None:
    """The most tokens that the model's table of positions has room for; None where it has none."""
    config: Any = model.config
    longest = getattr(getattr(config, "text_config", config), "max_position_embeddings", None)
    if not longest:
        return None
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, nn.Embedding) and module.padding_idx is not None:
            return int(module.num_embeddings - module.padding_idx - 1)  # RoBERTa counts from behind the padding
    return int(longest)
