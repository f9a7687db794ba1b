"""Lists of varying length that are read by number are right at other sizes and values."""

import onnxruntime
import pytest
import torch

from torch_onnx_compat import CompatError, export_compat


def nested(x):
    return x * 2 if x.tolist()[0][0] > 0.5 else x * 3


def last(x):
    rows = x.tolist()
    return x * rows[1][2] if rows[-1][0] > 0.5 else x * 3


def computed(x):
    factor = 0.1 * x.tolist()[0][1]
    return x * factor if factor > 0.04 else x / (factor + 1)


def flat(x):
    return x * 2 if x.flatten().tolist()[0] > 0.5 else x * 3


def rows_of_tensors(x):
    rows = x.unbind(0)
    return x * 2 if rows[1].sum() > 4 else x * 3 - rows[-1]


def counted(x):
    rows = x.tolist()
    if len(rows) > 4:
        return x * rows[1][0]
    return x


@pytest.mark.parametrize("model", [nested, last, computed, flat, rows_of_tensors, counted])
def test_items_are_read_by_number(model, exporter, tmp_path):
    path = tmp_path / "model.onnx"
    export_compat(model, torch.rand(3, 8) * 0.4, path, dynamic="batch", exporter=exporter)
    session = onnxruntime.InferenceSession(path)
    for x in (torch.rand(2, 8), torch.rand(5, 8) + 0.6, torch.rand(4, 8), torch.rand(9, 8), torch.rand(20, 8) * 50):
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), model(x))


def sliced(x):
    return x * 2 if sum(row[0] for row in x.tolist()[1:]) > 1 else x * 3


def test_a_slice_is_refused(exporter, tmp_path):
    with pytest.raises(CompatError, match="a slice is taken of a list whose length depends on the inputs"):
        export_compat(sliced, torch.rand(3, 8), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)
