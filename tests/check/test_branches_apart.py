"""Branches whose results have one shape at the example's sizes and others beyond a size that one of them names."""

import pytest
import torch

from torch_onnx_compat import export_compat


def cut_at_forty(x):
    return x * 2 if x.mean() > 0 else x[:, :40]


def sums_of_a_part(x):
    return (x * 2 if x.mean() > 0 else x[:, :40]).sum(1)


def last_eight_rows(x):
    return x if x.mean() > 0 else x[-8:]


def every_other(x):
    return x if x.mean() > 0 else x[:, :: max(1, x.shape[1] // 30)]


@pytest.mark.parametrize("model", [cut_at_forty, sums_of_a_part, last_eight_rows, every_other])
def test_both_branches_at_sizes_on_both_sides(model):
    torch.manual_seed(0)
    result = export_compat(
        model, torch.randn(3, 5), dynamic={"x": {0: "rows", 1: "length"}}, exporter="torchscript", verify=True
    )
    session = result.session()
    for rows in (1, 3, 8, 9, 17):
        for length in (1, 5, 39, 40, 41, 59, 60, 64, 100):
            for mean in (-3, 3):
                x = torch.randn(rows, length) + mean
                (found,) = session.run(None, {"x": x.numpy()})
                torch.testing.assert_close(torch.from_numpy(found), model(x), rtol=1e-4, atol=1e-4)
