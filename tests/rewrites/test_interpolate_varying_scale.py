import pytest
import torch
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.entry import EXPORTERS
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.testing import assert_entry, assert_same_outputs, assert_still_needed

NAME = "interpolate_varying_scale"
IMAGE = torch.randn(2, 3, 12, 16)
DYNAMIC = {"x": {0: "batch", 2: "height", 3: "width"}}
# In float32, height times (20 / height) is on the other side of a whole number at 77 and 133; so is 7 / width at 23.
SAMPLES = [(torch.randn(1, 3, 77, 23),), (torch.randn(1, 3, 133, 46),)]


def by_ratio(x, mode="bilinear", **more):
    return F.interpolate(x, scale_factor=(20 / x.shape[2], 7 / x.shape[3]), mode=mode, **more)


def many(x):
    scales = ((1.5 * x.shape[2] + 0.7) / x.shape[2], 2 - 0.3 / x.shape[3])
    return (
        *(by_ratio(x, "nearest"), by_ratio(x)),
        F.interpolate(x, scale_factor=scales, mode="bilinear", align_corners=True),
        F.interpolate(x[..., 0], scale_factor=20 / x.shape[2], mode="linear"),
    )


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_matches(exporter):
    assert_entry(NAME, many, (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_matches_as_models_do(exporter):
    # Resize rounds its places in its own way; weights of bicubic are polynomials of places that torch rounds.
    def both(x):
        return by_ratio(x, recompute_scale_factor=True), by_ratio(x, "bicubic")

    assert_same_outputs(both, (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)


def test_matches_at_an_early_opset():
    assert_entry(NAME, many, (IMAGE,), "torchscript", dynamic=DYNAMIC, samples=SAMPLES, opset=11)


def by_shorter_side(x):
    return F.interpolate(x, scale_factor=24 / min(x.shape[-2:]), mode="bilinear")


def test_a_scale_that_a_decision_yields():
    result = assert_same_outputs(by_shorter_side, (IMAGE,), "torchscript", dynamic=DYNAMIC, samples=SAMPLES)
    assert {note.entry for note in result.applied} >= {NAME, "control_flow"}


@pytest.mark.parametrize("recompute", [None, True])
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "area"])
@pytest.mark.parametrize("exporter", EXPORTERS)
def test_a_number_that_float32_does_not_hold(exporter, mode, recompute):
    """In float64, 90 * 0.7 and 170 * 0.7 are less than 63 and 119; in float32, 3 / 0.3 is less than 10."""

    def model(x):
        scaled = [F.interpolate(x, scale_factor=s, mode=mode, recompute_scale_factor=recompute) for s in (0.7, 0.3)]
        return scaled[0], scaled[1]

    samples = [(torch.randn(1, 1, height, 24),) for height in (34, 90, 112, 170)]
    assert_same_outputs(
        model, (IMAGE,), exporter, dynamic=DYNAMIC, samples=[(s[0].expand(1, 3, -1, -1),) for s in samples]
    )


def test_plain_numbers_are_left_alone():
    result = assert_same_outputs(lambda x: F.interpolate(x, scale_factor=1.5), (IMAGE,), "torchscript", dynamic=DYNAMIC)
    assert not result.applied


def test_equals_eager():
    body = catalogue()[NAME].body
    for size in (5, 8, 13):
        for scale in (0.3, 0.5, 1.7, 2.0, 3.3):
            x = torch.randn(1, 2, size, size + 1)
            for mode in ("nearest", "bilinear", "bicubic"):
                given = (scale, torch.tensor(scale, dtype=torch.float64))
                found = body(x, None, given, mode, None if mode == "nearest" else False)
                torch.testing.assert_close(found, F.interpolate(x, scale_factor=(scale, scale), mode=mode))


def test_integers_are_declined():
    def resized(x):
        return F.interpolate(x, scale_factor=20 / x.shape[2], mode="bilinear")

    image = torch.randint(0, 255, (1, 3, 12, 16), dtype=torch.uint8)
    with pytest.raises(CompatError, match=r"the image must be of floating-point type, got torch\.uint8"):
        assert_same_outputs(resized, (image,), "torchscript", dynamic=DYNAMIC)


def test_sentinel():
    @rewrite(F.interpolate, name=NAME, needed_on=("torchscript",), registry=None)
    def broken(input, size=None, scale_factor=None, mode="nearest", *_, **__):
        return F.interpolate(input, (20, 7), None, mode).flip(-1)

    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        assert_same_outputs(by_ratio, (IMAGE,), "torchscript", rewrites=[broken], control_flow=False)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_still_needed(exporter):
    assert_still_needed(NAME, by_ratio, (IMAGE,), exporter, dynamic=DYNAMIC, samples=SAMPLES)
