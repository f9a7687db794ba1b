"""Names of places inside a model: ``layer3``, ``head:1`` for its second call, ``fc:input``, ``a:attention``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from torch import nn

from torch_onnx_compat.errors import ArgumentError

Part = Literal["output", "input", "attention"]
OWN = "output"
"""Name of the model's own result, unless a module of the model has this name."""


@dataclass(frozen=True)
class Selector:
    """One place in a model."""

    text: str
    """The caller's text, which becomes the output's name."""
    path: str | None
    """Of the module; None for the model's own result."""
    call: int | None = None
    """Which of the module's calls, from 0; None where it must be called once."""
    part: Part = "output"


def parse_all(keyword: str, texts: Sequence[str] | str, model: nn.Module) -> tuple[Selector, ...]:
    """Reads the names that the caller gave in a keyword.

    Raises:
        CompatError: There are none, one is given twice, or one names no module; says which names are similar.
    """
    if isinstance(texts, str):
        texts = [texts]
    selectors = tuple(parse(keyword, text, model) for text in texts)
    if not selectors:
        raise ArgumentError(f"{keyword} is empty; name at least one module, e.g. {keyword}=['layer3'].")
    for selector in selectors:
        if selectors.count(selector) > 1:
            raise ArgumentError(f"{keyword} holds {selector.text!r} twice; name it once.")
    return selectors


def parse(keyword: str, text: str, model: nn.Module) -> Selector:
    """Reads one name.

    Raises:
        CompatError: It is no text, or names no module.
    """
    if not isinstance(text, str):
        raise ArgumentError(
            f"{keyword}: {text!r} is a {type(text).__name__}; wanted the path of a module, e.g. 'layer3'."
        )
    modules = dict(model.named_modules(remove_duplicate=False))
    if text == "" or (text == OWN and OWN not in modules):
        return Selector(OWN, None)
    path, *rest = text.split(":")
    call: int | None = None
    part: Part = "output"
    for word in rest:
        if word in ("input", "attention"):
            part = "input" if word == "input" else "attention"
        elif word.isdigit():
            call = int(word)
        else:
            raise ArgumentError(
                f"{keyword}: {text!r} ends in {word!r}; wanted the number of a call from 0, 'input' or 'attention'."
            )
    if path not in modules:
        raise ArgumentError(f"{keyword}: {_unknown_module_text(path, model)}")
    return Selector(text, path, call, part)


def _unknown_module_text(path: str, model: nn.Module) -> str:
    parent, prefix = model, ""
    for word in path.split("."):
        child = dict(parent.named_children()).get(word)
        if child is None:
            break
        parent, prefix = child, f"{prefix}.{word}".lstrip(".")
    names = [name for name, _ in model.named_modules(remove_duplicate=False) if name]
    close = get_close_matches(path, names, n=3, cutoff=0.6)
    children = ", ".join(name for name, _ in parent.named_children()) or "none"
    near = f"near it: {', '.join(close)}" if close else "nothing has a name like it"
    return f"the model has no module {path!r}; {near}. {prefix or 'The model'} holds: {children}."
