"""Sample: what a forward is called with, resized and reshaped."""

import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import CompatError
from torch_onnx_compat.zoo import Sample
from torch_onnx_compat.zoo.sample import image_sample


class Pair(nn.Module):
    def forward(self, image: Tensor, ids: Tensor, *, scale: Tensor | None = None) -> Tensor:
        return image


def test_inputs_have_the_names_of_forward() -> None:
    image, ids, scale = torch.zeros(1), torch.ones(1), torch.ones(2)
    sample = Sample(Pair(), (image, ids), {"scale": scale})
    assert sample.input_names == ["image", "ids", "scale"]
    assert sample.inputs == {"image": image, "ids": ids, "scale": scale}


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
def test_input_names_of_a_script_module() -> None:
    assert Sample(torch.jit.trace(nn.ReLU(), torch.zeros(1))).input_names == ["input"]


def test_resized_reaches_nested_pictures_and_leaves_other_tensors() -> None:
    sample = Sample(nn.Identity(), ([torch.full((3, 8, 6), 0.5)], torch.zeros(2, 2)), {"depth": torch.ones(1, 4, 4)})
    at_size = sample.at_size((5, 7))
    assert at_size.args[0][0].shape == (3, 5, 7)
    torch.testing.assert_close(at_size.args[0][0], torch.full((3, 5, 7), 0.5))
    assert at_size.args[1].shape == (2, 2)
    assert at_size.kwargs["depth"].shape == (1, 5, 7)


def test_resized_keeps_dtype_and_leading_axes() -> None:
    clip = torch.randint(0, 255, (1, 3, 4, 8, 8), dtype=torch.uint8)
    at_size = Sample(nn.Identity(), (clip,)).at_size((4, 6)).args[0]
    assert at_size.shape == (1, 3, 4, 4, 6)
    assert at_size.dtype == torch.uint8


def test_with_shapes_makes_positional_and_keyword_inputs() -> None:
    sample = Sample(Pair()).with_shapes({"scale": (2,), "ids": (1, 7), "image": (1, 3, 4, 4)})
    assert [tuple(t.shape) for t in sample.args] == [(1, 3, 4, 4), (1, 7)]
    assert sample.kwargs["scale"].shape == (2,)


def test_with_shapes_repeats_itself() -> None:
    first, second = (Sample(Pair()).with_shapes({"image": (2, 3)}).args[0] for _ in range(2))
    assert torch.equal(first, second)


def test_with_shapes_keeps_dtype_and_range_of_integers() -> None:
    sample = Sample(Pair(), (torch.zeros(1, dtype=torch.float16), torch.tensor([5, 9])))
    image, ids = sample.with_shapes({"image": (2, 2), "ids": (3, 50)}).args
    assert image.dtype == torch.float16
    assert ids.dtype == torch.int64
    assert set(ids.flatten().tolist()) <= set(range(5, 10))


def test_with_shapes_refuses_unknown_names() -> None:
    with pytest.raises(CompatError, match=r"unknown input 'imge'; did you mean 'image'\?"):
        Sample(Pair()).with_shapes({"imge": (1,)})


def test_checked_names_what_is_missing() -> None:
    with pytest.raises(CompatError, match=r"m.py:make: .*forward\(image, ids, \*, scale=None\): .*'ids'.*--shape"):
        Sample(Pair(), (torch.zeros(1),)).validate("m.py:make")


def test_image_sample_names_the_picture_after_forward() -> None:
    assert image_sample(nn.ReLU(), torch.zeros(1), {0: "batch"}).dynamic == {"input": {0: "batch"}}
