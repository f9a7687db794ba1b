"""torch's fast path of attention: what asks for it, and what the caller has it set to.

Without gradients, torch's encoder layers and attention may take kernels of their own, which have no ONNX form. Their
values are others where masks are floats or rows are padded.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

import torch
from torch import nn

from torch_onnx_compat.stack import frames

_settings: list[bool] = []
"""What torch was set to before each export that is under way, the caller's own first; its lock is the exports'."""


def switch_off() -> Callable[[], None]:
    """Switches the fast path off for an export; returns what undoes that."""
    before = torch.backends.mha.get_fastpath_enabled()
    _settings.append(before)

    def undo() -> None:
        torch.backends.mha.set_fastpath_enabled(before)
        del _settings[-1:]

    torch.backends.mha.set_fastpath_enabled(False)
    return undo


def is_on_for_caller() -> bool:
    """Whether the fast path is on where the caller runs the model."""
    return bool(_settings[0] if _settings else torch.backends.mha.get_fastpath_enabled())


class FastPath:
    """While active, torch's setting of the fast path, which notes the modules that ask for it.

    Args:
        is_on: What they are told.
    """

    def __init__(self, *, is_on: bool) -> None:
        self._is_on = is_on
        self._askers: dict[int, nn.Module] = {}

    def __enter__(self) -> FastPath:
        self._before = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(self)  # type: ignore[arg-type]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        torch.backends.mha.set_fastpath_enabled(self._before)

    def __bool__(self) -> bool:
        selves = (frame.f_locals.get("self") for frame in frames())
        asker = next((one for one in selves if isinstance(one, nn.Module)), None)
        if asker is not None:
            self._askers[id(asker)] = asker
        return self._is_on

    def askers(self, model: nn.Module) -> tuple[str, ...]:
        """Paths of the modules that have asked. One whose parts have asked, too, did not take the fast path itself.

        Args:
            model: What they are modules of.
        """
        if not self._askers:
            return ()
        paths = [path for path, module in model.named_modules() if id(module) in self._askers]
        return tuple(path for path in paths if not any(_is_within(other, path) for other in paths))


def _is_within(path: str, parent: str) -> bool:
    return path != parent and (not parent or path.startswith(f"{parent}."))
