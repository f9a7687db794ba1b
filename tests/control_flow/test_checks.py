"""What a model only checks is not in the file, whoever raises the error: torch's assertions, and functions called."""

import pytest
import torch

from control_flow.files import export_and_compare
from torch_onnx_compat import CompatError, export_compat


def cells(x):
    """The number of cells, as code computes it that has the sizes of several pictures in a tensor."""
    sizes = torch.tensor([[x.shape[0], x.shape[1]]])
    return (sizes[:, 0] * sizes[:, 1]).sum()


def ensure(condition, message):
    """As transformers has it."""
    condition = condition() if callable(condition) else condition
    if isinstance(condition, torch.Tensor):
        torch._check_tensor_all_with(ValueError, condition, lambda: message)
    else:
        torch._check_with(ValueError, condition, lambda: message)


def ensure_all(condition, message):
    if isinstance(condition, torch.Tensor):
        condition = bool(condition.all())
    if not condition:
        raise ValueError(message)


def fail(found):
    raise ValueError(f"found {found} cells")


def of_tensors(x):
    torch._check_tensor_all_with(ValueError, cells(x) == x.numel(), lambda: "cells")
    torch._check_tensor_all(cells(x) == x.numel())
    return x * 2


def of_a_number(x):
    torch._check_with(ValueError, (cells(x) == x.numel()).item(), lambda: "cells")
    torch._check_value(cells(x).item() == x.numel())
    return x * 2


def of_a_truth(x):
    torch._check(bool(cells(x) == x.numel()), lambda: "cells")
    return x * 2


def of_a_tensor_of_one(x):
    torch._assert(cells(x) == x.numel(), "cells")
    return x * 2


def of_a_helper(x):
    ensure(cells(x) == x.numel(), "cells")
    return x * 2


def of_a_helper_given_a_function(x):
    ensure(lambda: cells(x) == x.numel(), "cells")
    return x * 2


def of_a_helper_given_a_number(x):
    ensure((cells(x) == x.numel()).item(), "cells")
    return x * 2


def of_a_helper_that_raises(x):
    ensure_all(cells(x) == x.numel(), "cells")
    return x * 2


def of_a_helper_that_only_fails(x):
    if cells(x).item() != x.numel():
        fail(cells(x))
    return x * 2


def of_values(x):
    torch._check_tensor_all(x < 1e6)
    torch._assert(x.abs().max() < 1e6, "large")
    return x * 2


CHECKS = [
    of_tensors,
    of_a_number,
    of_a_truth,
    of_a_tensor_of_one,
    of_a_helper,
    of_a_helper_given_a_function,
    of_a_helper_given_a_number,
    of_a_helper_that_raises,
    of_a_helper_that_only_fails,
    of_values,
]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize("model", CHECKS, ids=lambda model: model.__name__)
def test_checks_are_left_out(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path)


def caught(x):
    try:
        torch._check_value((x.sum() > 0).item())
    except ValueError:
        return x + 1
    return x * 2


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_check_that_the_model_catches_is_a_decision(exporter, tmp_path):
    with pytest.raises(CompatError):
        export_compat(caught, torch.rand(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
