"""Pooling."""

import torch
from torch.nn import functional as F

from operator_cases.case import Case


def image(*size: int):
    return lambda n: (torch.randn(n, *size),)


CASES = [
    Case("adaptive_avg_pool2d", "7x5 to 3x2", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), image(3, 7, 5)),
    Case("adaptive_max_pool2d", "7x5 to 3x2", lambda x: F.adaptive_max_pool2d(x, (3, 2)), image(3, 7, 5)),
]
