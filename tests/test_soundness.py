"""Files that are accepted are right where nobody looked: at the sizes and values on which decisions turn."""

import numpy as np
import pytest
import torch
from soundness_models import ON_SIZES, ON_VALUES, JoinedSelection, PooledSelection

from torch_onnx_compat import export_compat
from torch_onnx_compat.backends.data_sizes import DataSizes
from torch_onnx_compat.errors import CompatError

SIZES = (
    *((2, 3, 32, 32), (1, 3, 31, 32), (1, 3, 48, 48), (1, 3, 224, 224), (1, 3, 240, 224), (2, 3, 65, 65)),
    *(
        (1, 3, 130, 129),
        (3, 3, 80, 16),
        (1, 3, 513, 33),
        (1, 3, 101, 512),
        (520, 3, 32, 16),
        (1, 3, 40, 40),
        (1, 3, 42, 32),
    ),
)
BOXES, SCORES = torch.randn(6, 4), torch.rand(6) * 0.8
VALUES = (
    (BOXES, SCORES),
    (torch.randn(6, 4), torch.tensor([0.1, 0.95, 0.2, 0.97, 0.3, 0.1])),
    (BOXES * 1000, SCORES),
    (BOXES.round(), SCORES),
    (BOXES.abs() * -10, SCORES),
    (BOXES * torch.inf, SCORES),
    (torch.zeros(6, 4), SCORES),
    (BOXES.abs() + 100, torch.ones(6)),
)

REFUSED = {
    "torchscript": {
        *("TextOfSize", "SizeAsKey", "TypeOfSize", "PiecesOf64", "ProductByNumpy", "Stride", "Bytes"),
        *("StorageSize", "CountInSizes", "LoopOverFound", "ItemByOperator", "ByDlpack", "NumpyByDlpack", "TextOfValue"),
        *("Repr", "StorageItem", "CaughtRaise", "CaughtInCaller", "PooledSelection"),
        *(
            "IndexOrLast",
            "OperatorOrMean",
            "FlagAsKey",
            "BoolAsKey",
            "TextOfFlag",
            "CountAsKey",
            "RankAfterSqueeze",
            "ShapeAfterSqueeze",
        ),
        *("PlaceOutside", "SelectionsThatFit", "SelectionBeforeElif"),
    },
    "dynamo": {
        *("TextOfSize", "SizeAsKey", "NumberOfParts", "TypeOfSize", "PiecesOf64", "ProductByNumpy", "Stride", "Bytes"),
        *("CountInSizes", "CacheBySize", "ByDlpack", "NumpyByDlpack", "TextOfValue", "Repr"),
        *("StorageItem", "CaughtRaise", "CaughtInCaller", "SliceBeyondExample", "PooledSelection"),
        *(
            "TableOfDistances",
            "IndexOrLast",
            "OperatorOrMean",
            "FlagAsKey",
            "BoolAsKey",
            "TextOfFlag",
            "CountAsKey",
            "RankAfterSqueeze",
        ),
        *("ShapeAfterSqueeze", "PlaceOutside", "SelectionsThatFit", "SelectionBeforeElif"),
    },
}
"""Models that have no file today. A file that is right is no failure: the name goes from this list then."""

IS_OLDER = tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15)
"""Whether torch is another one than that of the list."""


def check(kind, example, inputs, dynamic, exporter):
    torch.manual_seed(0)
    model = kind().eval()
    try:
        result = export_compat(model, example, dynamic=dynamic, exporter=exporter)
    except CompatError:
        assert IS_OLDER or kind.__name__ in REFUSED[exporter]
        return
    session = result.session()
    for tensors in inputs:
        with torch.no_grad():
            try:
                wanted = kind.forward(model, *[t.clone() for t in tensors]).numpy()
            except (RuntimeError, ValueError, AssertionError):
                continue
        names = [i.name for i in session.get_inputs()]
        arguments = dict(
            zip(["x", "boxes", "s", "scores"], [tensors[0], tensors[0], tensors[-1], tensors[-1]], strict=True)
        )
        (found,) = session.run(None, {name: arguments[name].numpy() for name in names})
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=str([tuple(t.shape) for t in tensors]))
    assert IS_OLDER or kind.__name__ not in REFUSED[exporter], (
        "there is a file now, and it is right: take the name off the list"
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_exporter
@pytest.mark.parametrize("kind", ON_SIZES, ids=lambda kind: kind.__name__)
def test_decisions_on_sizes(kind, exporter):
    inputs = [(torch.randn(shape),) for shape in SIZES]
    dynamic = {"x": {0: "batch", 2: "height", 3: "width"}}
    check(kind, (torch.randn(2, 3, 32, 32),), inputs, dynamic, exporter)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_exporter
@pytest.mark.parametrize("kind", ON_VALUES, ids=lambda kind: kind.__name__)
def test_decisions_on_values(kind, exporter):
    check(kind, (BOXES, SCORES), VALUES, "batch", exporter)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", [JoinedSelection, PooledSelection], ids=lambda kind: kind.__name__)
def test_a_size_of_data_that_the_trace_takes_for_a_fixed_one(kind, monkeypatch):
    """The run without values has the last word: a trace can only guess where its sizes come from."""
    monkeypatch.setattr(DataSizes, "is_of_data", lambda self, node: self.dims(next(node.inputs())) is None)
    monkeypatch.setattr(DataSizes, "has_sources", True)
    with pytest.raises(CompatError, match="a size that values decide"):
        export_compat(kind().eval(), (BOXES, SCORES), exporter="torchscript")
