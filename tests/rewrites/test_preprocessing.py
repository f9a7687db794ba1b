"""Preprocessing by torchvision's functions, in rows; nodes; what is declined."""

import pytest
import torch
from torchvision import transforms
from torchvision.transforms import functional

from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.testing import Example, assert_same_outputs

PICTURES = torch.rand(2, 3, 4, 5)

# Normalization

MEAN, STD = [0.4, 0.5, 0.3], [0.2, 0.3, 0.25]
NORMALIZATION = [
    Example(
        "normalize_to_div",
        lambda x: (
            transforms.Normalize(MEAN, STD)(x),
            functional.normalize(x, [0.5], [2]),
            functional.normalize(x[0], MEAN, STD),
            functional.normalize(x.double(), MEAN, STD),
        ),
        (PICTURES,),
        dynamic={"x": {0: "batch", 3: "width"}},
        broken=lambda tensor, mean, std, inplace=False: tensor - mean[0],
        leaves=lambda x: torch.nn.functional.normalize(x),
        exporters=("dynamo", "torchscript"),  # left alone on the first, which is the one that needs the entry
    ),
]


def test_normalization_takes_two_nodes():
    result = assert_same_outputs(transforms.Normalize(MEAN, STD), PICTURES, "dynamo", uses=("normalize_to_div",))
    assert set(result.nodes) - {"Constant"} == {"Sub", "Div"}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: functional.normalize(x, MEAN, STD, inplace=True), "inplace=False"),
        (lambda x: functional.normalize(x, torch.tensor(MEAN), STD), "must be numbers"),
    ],
)
def test_normalization_declines(call, reason):
    result = assert_same_outputs(call, PICTURES, "torchscript", include=["normalize_to_div"])
    assert reason in str(result.declined)


def test_a_deviation_of_zero_stays_an_error():
    model = lambda x: functional.normalize(x, MEAN, [0.0] * 3)  # noqa: E731
    with pytest.raises(CompatError, match="std evaluated to zero"):
        assert_same_outputs(model, PICTURES, "torchscript", include=["normalize_to_div"])


def test_normalization_fails_without_the_entry():
    with pytest.raises(CompatError, match="data-dependent"):
        assert_same_outputs(transforms.Normalize(MEAN, STD), PICTURES, "dynamo", exclude=["normalize_to_div"])


EXAMPLES = [*NORMALIZATION]
