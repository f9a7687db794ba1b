import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import rewrite
from torch_onnx_compat.catalogue import catalogue
from torch_onnx_compat.errors import VerificationError
from torch_onnx_compat.testing import assert_same_outputs

USES = ("embedding_max_norm_to_mul",)
TABLE = torch.linspace(-3, 5, 45).sin().reshape(9, 5) * torch.linspace(0, 2, 9)[:, None]
X, OTHER = torch.tensor([[0, 3, 1], [2, 2, 0]]), torch.tensor([[8, 7, 4], [1, 5, 6], [0, 3, 3]])


class Tables(nn.Module):
    def __init__(self):
        super().__init__()
        self.long = nn.Embedding.from_pretrained(TABLE.clone(), max_norm=1.5, padding_idx=2)
        self.short = nn.Embedding.from_pretrained(TABLE.clone(), max_norm=0.5, norm_type=1.0)

    def forward(self, x):
        return self.long(x), self.short(x)


@settings(max_examples=20, deadline=None)
@given(st.sampled_from([0.1, 0.7, 3.0]), st.sampled_from([1.0, 2.0, 3.0, float("inf")]))
def test_eager_is_torchs(max_norm, norm_type):
    body = catalogue()["embedding_max_norm_to_mul"].body
    found = body(X, TABLE, None, max_norm, norm_type)
    torch.testing.assert_close(found, F.embedding(X, TABLE.clone(), None, max_norm, norm_type))


def test_matches(exporter):
    uses = USES if exporter == "torchscript" else ()
    assert_same_outputs(Tables(), X, exporter, dynamic="batch", samples=[(OTHER,)], uses=uses)


def test_writes_nothing_to_the_table():
    model = Tables()
    result = assert_same_outputs(model, X, "torchscript", dynamic="batch", uses=USES)
    assert torch.equal(model.long.weight, TABLE)
    assert result.nodes["Where"] == 2


def test_no_limit_is_left_alone():
    result = assert_same_outputs(nn.Embedding(9, 5, padding_idx=2), X, "torchscript")
    assert not result.applied


def test_sentinel():
    @rewrite(F.embedding, name="embedding_max_norm_to_mul", needed_on=("torchscript",), registry=None)
    def broken(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
        return F.embedding(input, weight)

    with pytest.raises(VerificationError):
        assert_same_outputs(Tables(), X, "torchscript", samples=[(OTHER,)], rewrites=[broken])


def test_still_needed():
    with pytest.raises(VerificationError):
        assert_same_outputs(Tables(), X, "torchscript", dynamic="batch", samples=[(OTHER,)], exclude=USES)
