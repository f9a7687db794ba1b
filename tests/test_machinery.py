"""Entries that a package of their own carries out: `include` and `exclude` mean what the keywords mean."""

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import Machinery


class Gate(nn.Module):
    def forward(self, x):
        return x * 2 if x.sum() > 1 else x + 1


class Classifier(nn.Module):
    """Normalizes a picture, convolves it, and ends in a softmax."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, image):
        return self.conv((image / 255 - 0.5) / 0.25).softmax(1)


IMAGE = torch.rand(1, 3, 8, 6) * 255


def test_each_says_where_to_read_on():
    found = {entry.name: entry.package for entry in catalogue() if isinstance(entry, Machinery)}
    assert set(found) == {"control_flow", "extract_preprocessing", "fold_preprocessing", "strip_postprocessing"}
    for package in found.values():
        assert __import__(package, fromlist=["_"]).__doc__


def test_control_flow_is_applied_and_excluded(exporter):
    result = export_compat(Gate(), torch.rand(3, 4), exporter=exporter)
    assert [note.reason for note in result.applied if note.entry == "control_flow"] == ["masked"]
    messages = []
    for options in ({"exclude": ["control_flow"]}, {"control_flow": False}):
        with pytest.raises(CompatError) as caught:
            export_compat(Gate(), torch.rand(3, 4), exporter=exporter, **options)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("name", "keyword"),
    [
        ("extract_preprocessing", {"preprocess": "extract"}),
        ("fold_preprocessing", {"preprocess": "fold"}),
        ("strip_postprocessing", {"postprocess": "strip"}),
    ],
)
def test_include_means_the_keyword(name, keyword, exporter):
    model = Classifier().eval()
    by_name = export_compat(model, IMAGE, exporter=exporter, include=[name])
    by_keyword = export_compat(model, IMAGE, exporter=exporter, **keyword)
    assert by_name.nodes == by_keyword.nodes != export_compat(model, IMAGE, exporter=exporter).nodes
    assert name in {note.entry for note in by_name.applied}
    assert by_name.unused == ()
    with pytest.raises(CompatError, match=f"and exclude=\\['{name}'\\] contradict each other"):
        export_compat(model, IMAGE, exporter=exporter, exclude=[name], **keyword)


def test_two_ways_that_contradict_each_other():
    with pytest.raises(CompatError, match=r"preprocess='fold' and include=\['extract_preprocessing'\] contradict"):
        export_compat(Classifier(), IMAGE, preprocess="fold", include=["extract_preprocessing"])


def test_what_finds_nothing_to_do_is_unused():
    result = export_compat(nn.ReLU(), torch.rand(2, 3), include=["strip_postprocessing"])
    assert result.unused == ("strip_postprocessing",)


class WithOptions(torch.nn.Module):
    """Notes in its state how it was made, as neuraloperator's models do."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x)

    def state_dict(self, *args, **options):
        return super().state_dict(*args, **options) | {"_metadata": {"width": 2}, "version": 1}


@pytest.mark.parametrize("make", [WithOptions, lambda: torch.nn.Sequential(WithOptions(), torch.nn.ReLU())])
def test_a_state_may_hold_what_is_no_tensor(make, exporter):
    result = export_compat(make().eval(), torch.rand(2, 3), dynamic="batch", exporter=exporter)
    assert result.axes[0].proven
