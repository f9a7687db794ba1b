"""What became of the questions about sizes, and what is known of each dynamic axis."""

from __future__ import annotations

from dataclasses import dataclass

from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sizes

TOO_LARGE = "too large to try"

NO_MATTER = "the same either way"

CHOSEN = "the caller chose the sizes"


@dataclass
class Verdict:
    """What became of one question."""

    question: Question
    outcome: str = ""
    """``proven``, ``both sides``, ``the model's own check``, ``one side``, ``not tried``, ``too large to try`` or ``the
    same either way``."""
    detail: str = ""
    too_large: Sizes | None = None
    """Sizes on the other side that cost too much, if nothing there costs less."""
    other: Sizes | None = None
    """Sizes on the other side at which the file was right."""
    is_each_tried: bool = False
    """Whether it is about a number of few values, and the file was right at each of them that the model takes."""


@dataclass(frozen=True)
class AxisProof:
    """What is known of one dynamic axis."""

    name: str
    least: int
    most: int | None
    tried: tuple[int, ...]
    """Sizes that the file was right at."""
    proven: bool
    """Whether nothing in the model depends on which size within the range it is."""
    asked: tuple[str, ...] = ()
    """The questions about it that have more than one answer."""

    def __str__(self) -> str:
        sizes = ", ".join(map(str, self.tried))
        limit = f"{self.least} to {self.most}" if self.most is not None else f"{self.least} and more"
        if self.proven:
            return f"axis {self.name}: proven for all sizes, {limit}; tried at {sizes}"
        return f"axis {self.name}: tried at {sizes}" + (f"; {'; '.join(self.asked[:3])}" if self.asked else "")
