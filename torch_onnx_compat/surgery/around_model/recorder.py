"""Records inputs and outputs of modules during one call of a model, with hooks that are removed afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from torch_onnx_compat.backends.internals import suppress_in_capture
from torch_onnx_compat.errors import ArgumentError
from torch_onnx_compat.inputs import tree
from torch_onnx_compat.surgery.around_model.attention import AttentionLog
from torch_onnx_compat.surgery.around_model.selectors import OWN, Selector


class _AllRecorded(BaseException):
    """Ends the call when everything is recorded; no Exception, since a model might catch it."""


@dataclass
class Recorder:
    """Records the values at some places in a model during one call.

    A tensor is copied when it is recorded, since the next module may write to it in place.

    Attributes:
        found: The values, by selector; the model's own result under OWN.
        given: Arguments of the calls whose input was asked for.
        calls: How many times each module was called.
    """

    selectors: Sequence[Selector]
    to_the_end: bool = False
    """Whether the call goes on when everything is recorded."""
    found: dict[str, Any] = field(default_factory=dict)
    arguments: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)

    def run(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Calls the model and returns the values, in the order of the selectors."""
        attention = AttentionLog() if any(s.part == "attention" for s in self.selectors) else None
        with ExitStack() as stack:
            for path in dict.fromkeys(s.path for s in self.selectors if s.path is not None):
                for handle in self._hooks(model, path, attention):
                    stack.callback(handle.remove)
            stack.enter_context(attention or nullcontext())
            with suppress_in_capture(_AllRecorded):
                self._find(Selector(OWN, None), model(*args, **kwargs))
        return {s.text: self.found[s.text] for s in self.selectors if s.text in self.found}

    def _hooks(self, model: nn.Module, path: str, attention: AttentionLog | None) -> list[Any]:
        module = model.get_submodule(path)
        mine = [s for s in self.selectors if s.path == path]

        def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._take(mine, "input", lambda: (args, kwargs))
            if attention is not None and any(s.part == "attention" for s in mine):
                attention.logs.append([])

        def after(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
            if attention is not None and any(s.part == "attention" for s in mine):
                weights = attention.logs.pop()
                self._take(mine, "attention", lambda: weights[0] if len(weights) == 1 else weights)
            self._take(mine, "output", lambda: result)
            self.calls[path] += 1
            self._stop_if_done()

        return [
            module.register_forward_pre_hook(before, with_kwargs=True),
            module.register_forward_hook(after, with_kwargs=True),
        ]

    def _take(self, mine: Sequence[Selector], part: str, value: Callable[[], Any]) -> None:
        for selector in mine:
            if selector.part == part and self.calls[str(selector.path)] == (selector.call or 0):
                self._find(selector, value())

    def _find(self, selector: Selector, value: Any) -> None:
        value = _copy_leaves(value)
        if selector.part == "input":
            args, kwargs = self.arguments[selector.text] = value
            value = args[0] if len(args) == 1 and not kwargs else {**dict(enumerate(args)), **kwargs}
        self.found[selector.text] = value

    def _stop_if_done(self) -> None:
        if not self.to_the_end and all(s.text in self.found for s in self.selectors):
            raise _AllRecorded


def _copy_leaves(value: Any) -> Any:
    return tree.map_leaves(value, lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf)


def check_values(keyword: str, selectors: Sequence[Selector], recorder: Recorder, model: nn.Module) -> None:
    """Checks the values of a complete run.

    Raises:
        CompatError: A module is not called, or is called several times and no call is named, or its value holds no
            tensor.
    """
    for selector in selectors:
        check_called(keyword, selector, recorder, model)
        if not tree.tensors_in(recorder.found[selector.text]):
            found = _describe_value(selector, recorder.found[selector.text])
            raise ArgumentError(f"{keyword}: {selector.text!r} {found}; name another module.")


def check_called(keyword: str, selector: Selector, recorder: Recorder, model: nn.Module) -> None:
    """Checks that a complete run made the call of a module that a selector names.

    Raises:
        CompatError: It did not.
    """
    calls = recorder.calls[str(selector.path)]
    where = f"{keyword}: {selector.text!r}"
    if selector.path is None:
        return
    if calls == 0:
        raise ArgumentError(f"{where} is never called on the example input{_why_not(selector.path, model)}.")
    if selector.call is None and calls > 1:
        raise ArgumentError(
            f"{where} is called {calls} times; say which call, {f'{selector.path}:0'!r} to "
            f"{f'{selector.path}:{calls - 1}'!r}."
        )
    if (selector.call or 0) >= calls:
        raise ArgumentError(f"{where}: the module is called {calls} times; the last call is number {calls - 1}.")


def _describe_value(selector: Selector, value: Any) -> str:
    if selector.part == "attention":
        return "computes no attention that is a softmax"
    return f"{'takes' if selector.part == 'input' else 'returns'} a {type(value).__name__} without a tensor"


def _why_not(path: str, model: nn.Module) -> str:
    parent, _, _ = path.rpartition(".")
    owner = model.get_submodule(parent)
    if getattr(owner, "fused_attn", False):
        return f", because {parent!r} computes attention in one fused call; its weights are {f'{parent}:attention'!r}"
    if isinstance(owner, nn.MultiheadAttention):
        return f", because {parent!r} reads its weights only; name {parent!r}"
    if isinstance(model.get_submodule(path), (nn.ModuleList, nn.ModuleDict)):
        return ", because it only holds modules; name one of these"
    return ""
