"""Attention by functions of the model, in rows; with every option, compiled, and at other lengths."""

import inspect

import pytest
import torch
from torch import nn
from torch.nn.attention import flex_attention as torchs
from torch.nn.attention.flex_attention import and_masks, create_block_mask, create_mask, flex_attention
from torch.torch_version import TorchVersion

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.backends.internals import without_compilation
from torch_onnx_compat.backends.internals.modes import DispatchMode
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import Example, assert_same_outputs

RUNS = "supports_higher_order_operators" in inspect.getsource(torch._ops)
"""Whether torch runs an operator of functions under a dispatch mode; older versions do not."""
needs_modes = pytest.mark.skipif(not RUNS, reason="older torch runs no operators of functions under a dispatch mode")
EXPORTERS = ("torchscript", "dynamo") if RUNS else ()
Q, K, V = torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 4)
GROUPS = torch.tensor([[0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 1, 1]])
LENGTH = {name: {0: "batch", 2: "length"} for name in ("q", "k", "v")} | {"groups": {0: "batch", 1: "length"}}


def causal(batch, head, q, k):
    return q >= k


def later_only(batch, head, q, k):
    """Closes every key to the first query."""
    return q > k


def softly(score, batch, head, q, k):
    return torch.where(q >= k, 3 * torch.tanh(score / 3), -float("inf"))


def block_mask(mask, x):
    return create_block_mask(mask, None, None, x.shape[2], x.shape[2], device="cpu")


class Biased(nn.Module):
    """A table of distances, slopes of heads, fewer heads of keys, and groups that see themselves only."""

    def __init__(self):
        super().__init__()
        self.table, self.slopes = nn.Parameter(torch.randn(4, 99)), nn.Parameter(torch.rand(4))

    def forward(self, q, k, v, groups):
        def change(score, batch, head, i, j):
            return score + self.table[head, i - j + 49] - self.slopes[head] * (i - j).abs()

        def same(batch, head, i, j):
            return groups[batch, i] == groups[batch, j]

        n = q.shape[2]
        mask = create_block_mask(and_masks(same, causal), q.shape[0], None, n, n, device=q.device)
        return flex_attention(q, k[:, :2], v[:, :2], change, mask, scale=0.7, enable_gqa=True)


class StepByStep(nn.Module):
    """Indexes a table by one number, then by another."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 99))

    def change(self, score, batch, head, q, k):
        return score + self.table[head][q - k + 49]

    def forward(self, q, k, v):
        return flex_attention(q, k, v, self.change)


class Masked(nn.Module):
    def forward(self, q):
        return torch.where(create_mask(causal, None, H=4, Q_LEN=q.shape[2], KV_LEN=6, device="cpu"), q @ q.mT, 0)


COMPILED = torch.compile(flex_attention)
MODELS = {
    "plain": lambda q, k, v: flex_attention(q, k, v),
    "scores": lambda q, k, v: flex_attention(q, k, v, score_mod=softly),
    "mask": lambda q, k, v: flex_attention(q, k, v, block_mask=block_mask(causal, q)),
    "no key": lambda q, k, v: flex_attention(q, k, v, block_mask=block_mask(later_only, q)),
    "compiled": lambda q, k, v: COMPILED(q, k, v, score_mod=softly),
}

EXAMPLES = [
    Example("flex_attention_to_matmul", Biased(), (Q, K, V, GROUPS), exporters=EXPORTERS),
    Example(
        "block_mask_to_one_block",
        MODELS["mask"],
        (Q, K, V),
        broken=lambda mask, *args, **options: (
            (None, None) if isinstance(mask, torch.Tensor) else torchs._create_empty_block_mask(Q, Q)
        ),  # without the mask's function
        exporters=EXPORTERS,
    ),
    Example(
        "empty_block_mask_to_one_block",
        MODELS["plain"],
        (Q, K, V),
        broken=lambda query, key: block_mask(causal, Q[:, :, :3]),
        claims=("torchscript",),
        exporters=EXPORTERS,
    ),
    Example(
        "create_mask_to_call",
        Masked(),
        (Q,),
        claims=("torchscript",),  # older torch: dynamo, too
    ),
]


class Called(nn.Module):
    def __init__(self, call):
        super().__init__()
        self.call = call

    def forward(self, q, k, v):
        return self.call(q, k, v)


@needs_modes
@pytest.mark.filterwarnings("ignore")
@pytest.mark.one_exporter
@pytest.mark.parametrize("call", MODELS.values(), ids=MODELS)
def test_any_length(call, exporter):
    if call is MODELS["compiled"] and exporter == "torchscript" and TorchVersion(torch.__version__) < "2.14":
        pytest.skip("before torch 2.14, a trace refuses functions of torch.compile")
    dynamic = {name: LENGTH[name] for name in ("q", "k", "v")}
    longer = tuple(torch.randn(3, 4, 11, x.shape[-1]) for x in (Q, K, V))
    assert_same_outputs(
        Called(call), (Q, K, V), exporter, uses=["flex_attention_to_matmul"], dynamic=dynamic, samples=[longer]
    )


@needs_modes
@pytest.mark.filterwarnings("ignore")
def test_the_logarithm_of_a_row_without_keys(exporter):
    def call(q, k, v):
        output, logarithm = flex_attention(q, k, v, block_mask=block_mask(later_only, q), return_lse=True)
        return output, logarithm

    assert_same_outputs(Called(call), (Q, K, V), exporter, samples=[(Q * 2, K, V)])


OF_ONE_SCORE = {
    "mean": lambda score, batch, head, q, k: score + score.mean(),
    "largest number": lambda score, batch, head, q, k: score * q.max(),
    "number of elements": lambda score, batch, head, q, k: score * q.numel(),
}
"""Functions that say something else of all scores at once than of one."""


@needs_modes
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("change", OF_ONE_SCORE.values(), ids=OF_ONE_SCORE)
def test_a_function_that_is_another_for_all_scores_at_once_is_refused(change, exporter):
    with pytest.raises(VerificationError, match="does not compute what the model computes"):
        export_compat(Called(lambda q, k, v: flex_attention(q, k, v, score_mod=change)), (Q, K, V), exporter=exporter)


class Onlooker(DispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@needs_modes
@pytest.mark.parametrize(
    "change", [*OF_ONE_SCORE.values(), softly, StepByStep().change], ids=[*OF_ONE_SCORE, "mask", "steps"]
)
def test_under_a_mode_the_operator_is_eager_torch_s(change):
    """What a file is held against may not be what the entry makes of it."""
    with torch.no_grad(), without_compilation():
        wanted = flex_attention(Q, K, V, score_mod=change)
        with Onlooker():
            assert torch.equal(flex_attention(Q, K, V, score_mod=change), wanted)


@needs_modes
@pytest.mark.filterwarnings("ignore")
def test_functions_that_index_step_by_step_are_named(exporter):
    with pytest.raises(CompatError, match=r"index a table once, as in table\[head, q - k\]"):
        export_compat(StepByStep(), (Q, K, V), exporter=exporter)


@needs_modes
def test_torchs_module_is_as_before():
    names = ("setup_compilation_env", "_set_compilation_env", "create_block_mask", "create_mask", "flex_attention")
    before = {name: getattr(torchs, name, None) for name in names}
    export_compat(Called(MODELS["mask"]), (Q, K, V))
    assert {name: getattr(torchs, name, None) for name in names} == before
