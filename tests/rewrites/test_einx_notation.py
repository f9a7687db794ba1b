"""einx's functions, in rows; against einx itself; models at any size."""

import einx
import pytest
import torch
from torch import nn

from torch_onnx_compat.functional.named_axes import NotNamed, elementwise, identity, number_or_tensor
from torch_onnx_compat.testing import Example, assert_same_outputs

X, ROW, COLUMN, MASK = torch.randn(2, 5, 4), torch.randn(5), torch.randn(4), torch.rand(2, 5) > 0.5
COUNTS = torch.randint(0, 3, (2, 5, 4))


def both(name, *tail):
    """A model of a function of (b, n, d) and the sums along d."""

    def call(x):
        return getattr(einx, name)("b n d, b n -> n (b d)", x, x.sum(-1), *tail)

    return call


def logic(name):
    return lambda x: getattr(einx, name)("b n d, b n -> n d b", x > 0, x.sum(-1) > 0)


EXAMPLES = [
    Example("einx_id", lambda x: einx.id("b n (h d) -> b h n d", x, h=2), (X,)),
    Example("einx_where", lambda x: einx.where("b n, b n d, -> b n d", x.sum(-1) > 0, x, 0.0), (X,)),
    *(
        Example(f"einx_{name}", both(name), (X,))
        for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
    ),
    *(
        Example(f"einx_{name}", both(name), (COUNTS,), broken=lambda description, x, y: torch.zeros(5, 8) > 0)
        for name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
    ),
    *(
        Example(f"einx_{name}", logic(name), (X,), broken=lambda description, x, y: torch.zeros(5, 4, 2) > 0)
        for name in ("logical_and", "logical_or")
    ),
]

CALLS = {
    "b n d, d": ("add", (X, COLUMN), {}),
    "b n d, n": ("add", (X, ROW), {}),
    "i, j -> i j": ("subtract", (ROW, COLUMN), {}),
    "i, j -> 1 j 1 i": ("subtract", (ROW, COLUMN), {}),
    "b n, b n d, -> b n d": ("where", (MASK, X, 0.0), {}),
    "b n (h d) -> b h n d": ("id", (X,), {"h": 2}),
    "b n (h d) -> h n (d b)": ("id", (X,), {"d": 2}),
    "b n d, b n -> b (n d)": ("multiply", (X, X[..., 0]), {}),
    "... i, ... j -> ... i j": ("add", (X, X[..., :2]), {}),
    "b n d, (b n) -> (b n) d": ("multiply", (X, torch.randn(10)), {}),
    "1 n, b n d -> b n d": ("add", (ROW[None], X), {}),
    "a b, ": ("maximum", (X[0], 0.1), {}),
    "b n d, b (n q) -> b n q d": ("add", (X, torch.randn(2, 15)), {}),
    "... d -> d ...": ("id", (X,), {}),
    "(1 b) n d -> n b d": ("id", (X,), {}),
    "b n d -> b 1 n (d 1)": ("id", (X,), {}),
}
FUNCTIONS = {"id": identity, "maximum": number_or_tensor(torch.maximum)}


@pytest.mark.parametrize("description", CALLS)
def test_equals_einx(description):
    name, tensors, sizes = CALLS[description]
    found = elementwise(FUNCTIONS.get(name, getattr(torch, name, None)), description, tensors, sizes)
    assert torch.equal(found, getattr(einx, name)(description, *tensors, **sizes))


@pytest.mark.parametrize(
    ("description", "tensors"),
    [
        ("b [n] d, d", (X, COLUMN)),
        ("b n... , b -> b n...", (X, X[:, 0, 0])),
        ("b (n...) -> b", (X[0],)),
        ("a -> a b", (ROW,)),
        ("a -> ", (ROW,)),
        ("a b, b a", (X[0], X[0].T)),
        ("a a, a", (X[0, :4], COLUMN)),
        ("a b, a", (X, ROW)),
        ("a, a", (ROW,)),
        ("(a b) -> a b", (ROW,)),
        ("(a a) -> a", (ROW,)),
        ("(a + b) -> a b", (ROW,)),
        ("(a (b c)) -> a b c", (ROW,)),
        ("(a", (ROW,)),
        ("2 -> 2", (ROW[:2],)),
    ],
)
def test_leaves_the_rest_to_einx(description, tensors):
    with pytest.raises(NotNamed):
        elementwise(identity if len(tensors) == 1 else torch.add, description, tensors, {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_older_name(exporter):
    model = lambda x: einx.rearrange("b n (h d) -> b h n d", x, h=2)  # noqa: E731
    assert_same_outputs(model, X, exporter, uses=["einx_id"], dynamic="batch")


class Distances(nn.Module):
    """Attention with a bias by distance, as x-transformers writes it."""

    def forward(self, x):
        steps = torch.arange(x.shape[1])
        bias = -einx.subtract("j, i -> 1 i j", steps, steps).abs()
        heads = einx.id("b n (h d) -> b h n d", x, h=2)
        scores = einx.add("b h i j, h i j", heads @ heads.mT, bias.expand(2, -1, -1))
        mixed = einx.id("b h n d -> b n (h d)", scores.softmax(-1) @ heads)
        return einx.where("b n, b n d, -> b n d", x.sum(-1) > 0, mixed, 0.0)


@pytest.mark.filterwarnings("ignore")
def test_a_model_at_any_size(exporter):
    dynamic = {"x": {0: "batch", 1: "length"}}
    samples = [(torch.randn(1, 9, 4),), (torch.randn(3, 1, 4),)]
    assert_same_outputs(Distances(), X, exporter, uses=["einx_id"], dynamic=dynamic, samples=samples)
