"""Windows as large as the map, at other sizes of it; windows that only look so."""

import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import export_compat
from torch_onnx_compat.errors import CompatError
from torch_onnx_compat.functional.arithmetic import is_size_of
from torch_onnx_compat.testing import Example

MAPS = {1: torch.randn(2, 3, 9), 2: torch.randn(2, 3, 9, 7), 3: torch.randn(2, 2, 5, 7, 6)}
SIZES = {1: {0: "batch", 2: "length"}, 2: {2: "height", 3: "width"}, 3: {2: "depth", 3: "height", 4: "width"}}
POOLS = {
    "avg": {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d},
    "max": {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d},
}


def pools(kind, axes):
    """The whole map; its activations'; one axis of it; an image without a batch axis."""
    pool = POOLS[kind][axes]

    def forward(x):
        y, image = F.relu(x), x[0]
        results = [pool(x, x.shape[2:]), pool(y, kernel_size=x.size()[2:]), pool(image, image.shape[1:], padding=0)]
        if axes > 1:
            first = (x.shape[2], *[2] * (axes - 1))
            results += [pool(x, first), pool(x, first, [1, *[2] * (axes - 1)], [0, *[1] * (axes - 1)])]
        else:
            results += [pool(x, x.size(2)), pool(x, kernel_size=x.shape[-1], stride=1)]
        return tuple(results)

    return forward


def pool_all_but_one(kind, axes):
    """Leaves the first cell of each axis out."""
    reduce = {"avg": torch.mean, "max": torch.amax}[kind]

    def broken(input, kernel_size, *windows, **options):
        return reduce(input[(..., *[slice(1, None)] * axes)], list(range(-axes, 0)), keepdim=True)

    return broken


EXAMPLES = [
    Example(
        f"{kind}_pool{axes}d_of_whole_map",
        pools(kind, axes),
        (MAPS[axes],),
        dynamic={"x": SIZES[axes]},
        broken=pool_all_but_one(kind, axes),
        leaves=lambda x, pool=POOLS[kind][axes]: pool(x, 2),
    )
    for kind in ("avg", "max")
    for axes in (1, 2, 3)
]


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_at_many_sizes(kind, exporter):
    class Text(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Conv1d(3, 4, k, padding=k // 2) for k in (1, 3, 5))

        def forward(self, x):
            rows = [F.relu(layer(x)) for layer in self.layers]
            return torch.cat([POOLS[kind][1](row, row.size(2)).squeeze(2) for row in rows], 1)

    model = Text().eval()
    result = export_compat(model, torch.randn(2, 3, 9), dynamic={"x": {0: "n", 2: "length"}}, exporter=exporter)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for length in (5, 6, 9, 10, 31, 100):
        x = torch.randn(3, 3, length)
        torch.testing.assert_close(torch.from_numpy(session.run(None, {"x": x.numpy()})[0]), model(x).detach())


@pytest.mark.parametrize("kind", ["AvgPool", "MaxPool"])
@pytest.mark.parametrize("axes", [2, 3])
def test_modules_that_are_made_of_the_sizes(kind, axes, exporter):
    """nn.AvgPool2d gives its options in their order."""
    module = getattr(nn, f"{kind}{axes}d")

    class Global(nn.Module):
        def forward(self, x):
            rest = [2] * (axes - 1)
            return module(x.size()[2:])(x), module((x.size(2), *rest), [1, *rest], [0, *[1] * (axes - 1)])(x)

    sizes = {"x": SIZES[axes]}
    result = export_compat(Global().eval(), MAPS[axes], dynamic=sizes, exporter=exporter)
    session = onnxruntime.InferenceSession(result.model_bytes)
    for more in (-3, 0, 4):
        x = torch.randn(*MAPS[axes].shape[:2], *(size + more for size in MAPS[axes].shape[2:]))
        for found, wanted in zip(session.run(None, {"x": x.numpy()}), Global()(x), strict=True):
            torch.testing.assert_close(torch.from_numpy(found), wanted)


def test_a_window_of_another_tensors_size_is_no_whole_map(exporter):
    """It is a window of a size that the file would have to compute."""

    class Longer(nn.Module):
        def forward(self, x, y):
            return F.max_pool1d(x, y.size(2) - 4)

    args = torch.randn(1, 3, 12), torch.randn(1, 3, 9)
    with pytest.raises(CompatError):
        export_compat(Longer().eval(), args, dynamic={"x": {2: "m"}, "y": {2: "n"}}, exporter=exporter)


@pytest.mark.parametrize("seed", range(4))
def test_a_window_that_c_took_from_a_size_is_a_decision(seed):
    """The largest of the first nine is often the largest of eleven: the values alone do not tell."""

    class Frozen(nn.Module):
        def forward(self, x):
            return F.max_pool1d(x, x.size(2) - 1)

    torch.manual_seed(seed)
    told = r"freeze a Python decision.*max_pool1d\(\) of a size|kernel_size must be an int"  # or so, before 2.15
    with pytest.raises(CompatError, match=told):
        export_compat(Frozen().eval(), torch.randn(1, 3, 9), dynamic={"x": {2: "n"}}, exporter="torchscript")


def test_a_window_that_the_file_would_have_to_compute_is_refused_in_words():
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), Window()).eval()
    with pytest.raises(CompatError, match="sizes of a window have to be constants in ONNX") as error:
        export_compat(model, torch.randn(1, 3, 9, 8), dynamic={"input": {2: "h"}}, exporter="torchscript")
    assert "%" not in str(error.value)


class Window(nn.Module):
    def forward(self, x):
        return F.max_pool2d(x, (x.size(2) - 1, 2))


@pytest.mark.filterwarnings("ignore:.*torch.jit.trace")
@pytest.mark.parametrize(("is_whole", "bound"), [(True, 0.0), (True, torch.tensor(0.0)), (False, torch.zeros(1, 3, 9))])
def test_a_bound_of_more_cells_hides_whose_size_it_is(is_whole, bound):
    """With one cell on an axis, clamp yields as many as the bound has."""
    found = []

    def look(x):
        found.append(is_size_of(x.size(2), x.clamp(min=bound), 2))
        return x

    torch.jit.trace(look, torch.randn(1, 3, 9), check_trace=False)
    assert found == [is_whole]
