"""Regions of pictures: torch's kernels do not look whether a region's picture is there, onnxruntime's do."""

import pytest
import torch
import torchvision

from torch_onnx_compat import CompatError, export_compat

OPERATORS = {
    "roi_align": lambda x, rois: torchvision.ops.roi_align(x, rois, 2, 1.0, 2, True),
    "roi_pool": lambda x, rois: torchvision.ops.roi_pool(x, rois, 2, 1.0),
    "ps_roi_align": lambda x, rois: torchvision.ops.ps_roi_align(x, rois, 2, 1.0, 2),
}


def regions(count, pictures):
    corner, size = torch.rand(count, 2) * 4, torch.rand(count, 2) * 4 + 0.3
    return torch.cat([torch.randint(0, pictures, (count, 1)).float(), corner, corner + size], 1)


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
@pytest.mark.parametrize(
    ("dynamic", "pictures"), [({"x": {0: "batch"}, "rois": {0: "regions"}}, 2), ({"rois": {0: "regions"}}, 1)]
)
@pytest.mark.parametrize("name", OPERATORS)
def test_regions_as_an_input(name, dynamic, pictures, exporter):
    torch.manual_seed(0)
    model = OPERATORS[name]
    example = torch.randn(pictures, 4, 8, 9), regions(5, pictures)
    session = export_compat(model, example, dynamic=dynamic, exporter=exporter).session()
    for batch in (1, 2, 4) if "x" in dynamic else (1,):
        for count in (1, 5, 9):
            x, rois = torch.randn(batch, 4, 8, 9), regions(count, batch)
            (found,) = session.run(None, {"x": x.numpy(), "rois": rois.numpy()})
            torch.testing.assert_close(torch.from_numpy(found), model(x, rois), rtol=1e-4, atol=1e-4)


def test_an_example_whose_picture_is_not_there():
    with pytest.raises(CompatError, match="a region of picture 3, and there are 2"):
        export_compat(OPERATORS["roi_align"], (torch.randn(2, 4, 8, 9), torch.tensor([[3.0, 1, 1, 4, 4]])))
