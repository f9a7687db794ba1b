"""Where a target does not run the branches of the file, it is the obstacle, and to freeze them is no way out."""

import pytest
import torch
import torchvision
from torch import nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import UnsupportedError


class Detector(nn.Module):
    def forward(self, boxes, scores):
        keep = scores > 2
        boxes, scores = boxes[keep], scores[keep]
        if boxes.numel() == 0:
            return boxes, scores
        kept = torchvision.ops.nms(boxes, scores, 0.5)[:5]
        return boxes[kept], scores[kept]


EXAMPLE = (torch.rand(6, 4), torch.rand(6))
PLACE = f"targets/test_decisions.py:{Detector.forward.__code__.co_firstlineno + 3}"


def test_the_targets_obstacle_comes_first_and_nothing_is_frozen(exporter):
    with pytest.raises(UnsupportedError) as refusal:
        export_compat(Detector().eval(), EXAMPLE, target="opencv", exporter=exporter)
    text = str(refusal.value)
    assert text.startswith("target 'opencv' at opset")
    assert f"decisions that the model takes: {PLACE}" in text
    assert "allow_baked" not in text


def test_a_file_of_which_nothing_was_compared_is_not_verified():
    result = export_compat(Detector().eval(), EXAMPLE, exporter="torchscript", allow_baked=[PLACE])
    assert str(result).splitlines()[0].endswith("no output had a value to compare")
    assert all("nothing of it was compared" in note for note in result.notes[:2])
    assert any(note.startswith(f"{PLACE}: frozen at its value") for note in result.notes)


def test_an_output_of_which_nothing_was_compared_is_named():
    result = export_compat(lambda x: (x * 2, x[x > 9], x / 0), torch.rand(4) + 1, exporter="torchscript")
    assert ", but for output_1, output_2, of which no case had a value to compare" in str(result).splitlines()[0]
