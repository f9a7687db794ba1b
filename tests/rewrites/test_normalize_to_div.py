import pytest
import torch
from torchvision import transforms
from torchvision.transforms import functional

from torch_onnx_compat import rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_same_outputs

NAME = "normalize_to_div"
MEAN, STD = [0.4, 0.5, 0.3], [0.2, 0.3, 0.25]
X = torch.rand(2, 3, 4, 5)


def many(x):
    return (
        transforms.Normalize(MEAN, STD)(x),
        functional.normalize(x, [0.5], [2]),
        functional.normalize(x[0], MEAN, STD),
        functional.normalize(x.double(), MEAN, STD),
    )


def test_matches(exporter):
    uses = (NAME,) if exporter == "dynamo" else ()
    assert_same_outputs(many, X, exporter, dynamic={"x": {0: "batch", 3: "width"}}, uses=uses)


def test_applied():
    result = assert_same_outputs(transforms.Normalize(MEAN, STD), X, "dynamo", uses=(NAME,))
    assert set(result.nodes) - {"Constant"} == {"Sub", "Div"}


def test_other_normalisation_is_left_alone():
    result = assert_same_outputs(lambda x: torch.nn.functional.normalize(x), X, "dynamo")
    assert NAME not in {note.entry for note in (*result.applied, *result.declined)}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: functional.normalize(x, MEAN, STD, inplace=True), "inplace=False"),
        (lambda x: functional.normalize(x, torch.tensor(MEAN), STD), "must be numbers"),
    ],
)
def test_declines(call, reason):
    result = assert_same_outputs(call, X, "torchscript", include=[NAME])
    assert reason in str(result.declined)


def test_a_deviation_of_zero_stays_an_error():
    with pytest.raises(CompatError, match="std evaluated to zero"):
        assert_same_outputs(lambda x: functional.normalize(x, MEAN, [0.0] * 3), X, "torchscript", include=[NAME])


def test_sentinel():
    @rewrite("torchvision.transforms._functional_tensor.normalize", name=NAME, needed_on=("dynamo",), registry=None)
    def broken(tensor, mean, std, inplace=False):
        return tensor - mean[0]

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(transforms.Normalize(MEAN, STD), X, "dynamo", rewrites=[broken])


def test_still_needed():
    with pytest.raises(CompatError, match="data-dependent"):
        assert_same_outputs(transforms.Normalize(MEAN, STD), X, "dynamo", exclude=[NAME])
