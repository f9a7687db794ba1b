"""Arguments of export_compat in a message as the options of the command line that is running."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable
from typing import Any

_KEYWORDS = {"opset_version": "opset"}
"""Keywords of which the option has another name."""

_VALUE = r"(\[[^\[\]]*\]|\{(?:[^{}]|\{[^{}]*\})*\}|'[^']*'|True|\d+|\w+\([^()]*\))"
"""A list, a dict of dicts, a text, True, a number, or the call of a class."""

_options: dict[str, tuple[str, bool]] = {}
"""The options of the command that is running by the name of their argument, and whether each may be repeated."""


def learn_options(params: Iterable[Any]) -> None:
    """Says which options there are; the others keep Python's spelling."""
    _options.clear()
    _options.update(
        {param.name: (param.opts[0], bool(param.multiple)) for param in params if param.opts[0].startswith("--")}
    )


def as_options(message: str) -> str:
    """The message with ``allow_baked=['net.py:3']`` as ``--allow-baked net.py:3``."""
    names = {keyword: _KEYWORDS.get(keyword, keyword) for keyword in (*_KEYWORDS, *_options)}
    names = {keyword: name for keyword, name in names.items() if name in _options}
    if not names:
        return message
    words = "|".join(names)
    message = re.sub(rf"(?<![\w.(])({words})={_VALUE}", lambda found: _option(names[found[1]], found), message)
    with_underscore = "|".join(keyword for keyword in names if "_" in keyword)
    if not with_underscore:
        return message
    return re.sub(rf"(?<![\w.'/-])({with_underscore})\b(?![\w='(/-]|\.\w)", lambda m: _options[names[m[1]]][0], message)


def _option(name: str, found: re.Match[str]) -> str:
    option, repeats = _options[name]
    value = _value(found[2])
    if value is None:
        return found[0]
    if value is True:
        return option
    if isinstance(value, list) and repeats:
        return " ".join(f"{option} {_word(item)}" for item in value)
    return f"{option} {_word(','.join(map(str, value)) if isinstance(value, list) else value)}"


def _word(value: Any) -> str:
    return "..." if value is ... else shlex.quote(str(value))


def _value(text: str) -> Any:
    """What the option takes: True, a text, or texts that stand for one use each; None where it cannot be said."""
    call = re.fullmatch(r"\w+\(([^()]*)\)", text)
    if call is not None:
        return _pairs(call[1])
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return None
    if isinstance(value, dict):
        return [_of_axes(name, axes) for name, axes in value.items()]
    return value


def _of_axes(name: Any, value: Any) -> str:
    """``image:2=height,3=width`` of the names of axes, ``batch=1`` of anything else."""
    if not isinstance(value, dict):
        return f"{name}={value}"
    return f"{name}:{','.join(f'{axis}={value[axis]}' for axis in value)}"


def _pairs(arguments: str) -> str | None:
    """``'nms', boxes=0, scores=1`` as ``form=nms boxes=0 scores=1``."""
    pairs = [part.strip() for part in arguments.split(",")]
    pairs = [f"form={pair}" if "=" not in pair else pair for pair in pairs]
    return " ".join(pair.replace("'", "") for pair in pairs)
