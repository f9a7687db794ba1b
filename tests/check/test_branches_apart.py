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


def without_the_middle(x):
    return x if x.mean() > 0 else torch.cat([x[:, :30], x[:, 50:]], 1)


def padded_to_twelve(x):
    return x if x.mean() > 0 else torch.nn.functional.pad(x, (0, max(0, 12 - x.shape[1])))


def cut_at_two_lengths(x):
    return x[:, :25] if x.mean() > 0 else x[:, :40]


def without_an_end(x):
    return x[:, 2:] if x.max() > 1 else x[:, :-2]


CUTS = (cut_at_forty, sums_of_a_part, last_eight_rows, every_other, without_the_middle, cut_at_two_lengths)


@pytest.mark.parametrize("model", [*CUTS, padded_to_twelve, without_an_end])
def test_both_branches_at_sizes_on_both_sides(model):
    torch.manual_seed(0)
    result = export_compat(
        model, torch.randn(3, 5), dynamic={"x": {0: "rows", 1: "length"}}, exporter="torchscript", verify=True
    )
    session = result.session()
    for rows in (1, 3, 8, 9, 17):
        for length in (1, 5, 11, 12, 25, 26, 31, 39, 40, 41, 51, 59, 60, 64, 100):
            for mean in (-3, 3):
                x = torch.randn(rows, length) + mean
                (found,) = session.run(None, {"x": x.numpy()})
                torch.testing.assert_close(torch.from_numpy(found), model(x), rtol=1e-4, atol=1e-4)
