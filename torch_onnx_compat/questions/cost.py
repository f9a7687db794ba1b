"""What a case may cost: how much larger than the example its inputs may be, and how long eager torch may take."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch_onnx_compat.inputs.inputs import Inputs
from torch_onnx_compat.questions.question import Question
from torch_onnx_compat.questions.search import Sizes

AFFORDABLE_S = 15.0
"""Seconds that eager torch may need for one case, reckoned by the square of its growth."""

MOST_ELEMENTS = 2**21
"""Elements of the inputs of one case at most, or a few times those of the example."""

MOST_ELEMENTS_ASKED = 2**24
"""The same for a question of Python's that a case in proportion to its size answers: a batch of a hundred pictures."""

MOST_GROWTH, FEW_ELEMENTS = 512.0, 2**15
"""Largest ratio to the example, in elements, of the inputs of one case; elements up to which the ratio is no matter."""

MODERATE_GROWTH = 128.0
MODERATE_SIZE = 2048
"""Largest ratio to the example, in elements, or largest size of an axis, up to which a case for a question of Python's
is taken to need its time in proportion: a batch does, and a length does while it is short. It is the one case that
shows if the file holds the example's answer."""

MINOR_GROWTH = 4.0
MINOR_ELEMENTS = 2**14
"""Largest ratio to the example, in elements, of inputs that answer an operator's question, or that round otherwise; and
elements up to which the ratio is no matter."""


def count_elements(inputs: Inputs, sizes: Sizes) -> int:
    """Elements of all inputs at some sizes."""
    return sum(
        math.prod(axes[d].size(sizes) if d in axes else size for d, size in enumerate(tensor.shape))
        for tensor, axes in zip(inputs.tensors, inputs.axes, strict=True)
    )


def is_affordable(
    inputs: Inputs,
    sizes: Sizes,
    takes_at_most: Callable[[float], bool],
    power: float = 2.0,
    most_growth: float = MOST_GROWTH,
    most_elements: int = MOST_ELEMENTS,
) -> bool:
    """Whether a case may be made: distances and attention grow with the square of what they are given.

    Args:
        inputs: The example.
        sizes: Those of the case.
        takes_at_most: Whether one eager run on the example takes no more than some seconds.
        power: Of its growth, with which the time is taken to grow.
        most_growth: Largest ratio to the example, in elements.
        most_elements: Largest number of elements, unless it is a few times the example's.
    """
    example = max(count_elements(inputs, inputs.sizes()), 1)
    elements = count_elements(inputs, sizes)
    growth = elements / example
    small = elements <= max(most_elements, 4 * example) and (growth <= most_growth or elements <= FEW_ELEMENTS)
    return small and takes_at_most(AFFORDABLE_S / max(growth, growth**power, 1e-9))


def is_affordable_for(question: Question, inputs: Inputs, sizes: Sizes, takes_at_most: Callable[[float], bool]) -> bool:
    """Whether a case that answers a question otherwise may be made: questions of the model's Python are worth more.

    Args:
        question: The question.
        inputs: The example.
        sizes: Those of the case.
        takes_at_most: Whether one eager run on the example takes no more than some seconds.
    """
    elements, example = count_elements(inputs, sizes), inputs.sizes()
    growth = elements / max(count_elements(inputs, example), 1)
    is_minor = question.chooses_kernel or question.kind == "rounding"
    if is_minor and growth > MINOR_GROWTH and elements > MINOR_ELEMENTS:
        return False
    is_near = growth <= MODERATE_GROWTH or max({**example, **sizes}.values()) <= MODERATE_SIZE
    is_moderate = is_near and question.is_asked and not question.chooses_kernel
    power = 2.0 if question.chooses_kernel else 1.0 if is_moderate else 1.5
    most_growth, most = (MODERATE_SIZE, MOST_ELEMENTS_ASKED) if is_moderate else (MOST_GROWTH, MOST_ELEMENTS)
    return is_affordable(inputs, sizes, takes_at_most, power, most_growth, most)
