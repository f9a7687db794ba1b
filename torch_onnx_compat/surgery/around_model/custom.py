"""Parts of a model that become one node in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch_onnx_compat.surgery.around_model.selectors import Selector


class CustomNode:
    """An operator of the engine, which replaces a module.

    Args:
        operator: Its domain and name, ``"TRT::EfficientNMS_TRT"``.
        **attributes: Its attributes: numbers, text, or lists of these.
    """

    def __init__(self, operator: str, **attributes: Any) -> None:
        self.operator = operator
        self.attributes = attributes

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self.attributes.items())
        return f"CustomNode({self.operator!r}{given})"


@dataclass(frozen=True)
class WholeCall:
    """One call of a module that becomes one node.

    Attributes:
        inputs: Place of its arguments in a run.
        outputs: Place of its results in a run.
        domain: Of the node.
        op_type: Of the node.
        attributes: Of the node.
        has_body: Whether the file holds a function that defines the node.
        path: Of the module; empty if the call is of no module of the model.
    """

    inputs: Selector
    outputs: Selector
    domain: str
    op_type: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    has_body: bool = True
    path: str = ""

    @property
    def name(self) -> str:
        """The operator's qualified name, for messages."""
        return f"{self.domain}::{self.op_type}"
