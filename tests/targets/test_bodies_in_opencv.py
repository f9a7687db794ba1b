"""What OpenCV 5 runs of branches and loops: ranks are in the file, and what it does not run is refused."""

import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError, export_compat


class Halves(nn.Module):
    """The result has another shape after one branch, so that no Where can take the place of the If."""

    def forward(self, x):
        if x.shape[2] % 2 == 0:
            return torch.cat([x, x], 2)
        return x.tanh()


class Adds(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: (x + x).sum(0), lambda x: x.amax(0), (x,))


class Average(nn.Module):
    def forward(self, x):
        y = x[:, :, 0]
        for step in range(x.shape[2]):
            y = 0.9 * y + 0.1 * x[:, :, step]
        return y


class Bins(nn.Module):
    def forward(self, x):
        return torch.zeros(x.shape[0], 3, 5).scatter_add(2, (x.abs() * 3).long().clamp(0, 4), x)


def test_values_of_branches_keep_their_ranks():
    result = export_compat(
        Halves(), torch.randn(2, 3, 6), dynamic={"x": {2: "t"}}, target="opencv", exporter="torchscript"
    )
    bodies = [a.g for node in result.model_proto.graph.node for a in node.attribute if a.type == a.GRAPH]
    told = [value.type.tensor_type for body in bodies for value in (*body.output, *body.value_info)]
    assert len(bodies) == 2
    assert [len(kind.shape.dim) for kind in told] == [3] * len(told)
    assert not any(dim.HasField("dim_value") for kind in told for dim in kind.shape.dim)
    onnx.checker.check_model(result.model_proto)


@pytest.mark.parametrize(
    ("model", "axes", "exporter"),
    [(Adds, {0: "n"}, "dynamo"), (Average, {2: "t"}, "torchscript"), (Bins, {0: "n"}, "torchscript")],
)
def test_what_opencv_does_not_run_is_refused(model, axes, exporter):
    x, options = torch.randn(4, 3, 40), {"dynamic": {"x": axes}, "exporter": exporter}
    export_compat(model(), x, **options)
    with pytest.raises(CompatError):
        export_compat(model(), x, target="opencv", **options)
