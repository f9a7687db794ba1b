"""The sizes that a file is tried at before anybody knows what the model asks."""

import numpy as np
import pytest
import torch
from torch import nn

from torch_onnx_compat import export_compat, rewrite
from torch_onnx_compat.errors import CompatError, VerificationError
from torch_onnx_compat.tracing import size_tensor


class Frames(nn.Module):
    """Takes nothing shorter than a frame."""

    def forward(self, x):
        return x.unfold(1, 3, 1).sum(-1).mean(1) + x.frac()[:, 0]


@rewrite(torch.frac, name="frac_but_of_three", needed_on=("torchscript", "dynamo"), registry=None)
def frac_but_of_three(input):
    return torch.fmod(input, 1) + (size_tensor(input, 1) == 3) * 0.5


X = torch.rand(2, 12) + 1


def cases_of(model, x, dynamic, **options):
    return {row.case for row in export_compat(model, (x,), dynamic=dynamic, exporter="torchscript", **options).table}


def test_the_smallest_size_that_the_model_accepts_is_tried():
    assert "length=3" in cases_of(Frames().eval(), X, {"x": {1: "length"}})


def test_a_file_that_is_wrong_there_only_is_refused():
    with pytest.raises(VerificationError, match="length=3"):
        export_compat(
            Frames().eval(),
            (X,),
            dynamic={"x": {1: "length"}},
            exporter="torchscript",
            rewrites=[frac_but_of_three],
            exclude=["frac_to_fmod"],
        )


def test_a_declared_range_is_tried_at_its_end():
    assert "length=5" in cases_of(nn.ReLU(), X, {"input": {1: ("length", 5, 40)}})
    assert not {"length=1", "length=2"} & cases_of(nn.ReLU(), X, {"input": {0: "batch", 1: ("length", 3, 40)}})


def test_where_1_is_accepted_nothing_else_is_searched():
    assert not {f"length={n}" for n in range(2, 12)} & cases_of(nn.ReLU(), X, {"input": {1: "length"}})


class SplitByLengths(nn.Module):
    def forward(self, x, lengths):
        return torch.stack([part.sum(0) for part in torch.split(x, lengths.tolist())])


def ragged(lengths):
    return torch.randn(sum(lengths), 4), torch.tensor(lengths)


def test_an_axis_that_values_decide_names_their_input():
    with pytest.raises(
        CompatError, match=r"takes no size but 12, with .*if the values of lengths decide it, give samples"
    ):
        export_compat(SplitByLengths(), ragged([3, 4, 5]), dynamic={"x": {0: "n"}})


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_an_axis_that_values_decide_is_tried_at_the_samples_sizes(exporter):
    samples = [ragged([1, 1, 7]), ragged([9, 2, 2])]
    result = export_compat(
        SplitByLengths(), ragged([3, 4, 5]), dynamic={"x": {0: "n"}}, samples=samples, exporter=exporter
    )
    x, lengths = ragged([2, 6, 1])
    found = result.session().run(None, {"x": x.numpy(), "lengths": lengths.numpy()})[0]
    np.testing.assert_allclose(found, SplitByLengths()(x, lengths), atol=1e-5)


class Padded(nn.Module):
    """Sums what a mask leaves, in words whose numbers are below 3; refuses a mask of twos."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(3, 4)

    def forward(self, ids, mask):
        if mask.max() > 1:
            raise ValueError("a mask is 0 or 1")
        return (self.table(ids) * mask[..., None]).sum(1)


@rewrite(nn.functional.embedding, name="first_word_only", needed_on=("torchscript", "dynamo"), registry=None)
def first_word_only(input, weight, *args, **kwargs):
    return weight[1].expand(*input.shape, weight.shape[1])


ONES = torch.ones(2, 6, dtype=torch.int64)


@pytest.mark.parametrize("dynamic", [None, {"ids": {1: "length"}, "mask": {1: "length"}}])
def test_an_example_of_ones_is_tried_with_other_numbers(dynamic):
    options = {"dynamic": dynamic, "exporter": "torchscript"}
    result = export_compat(Padded().eval(), (ONES, ONES), **options)
    assert "other numbers" in {row.case for row in result.table}
    with pytest.raises(VerificationError, match=r"other numbers.* If they mean nothing to the model, give"):
        export_compat(Padded().eval(), (ONES, ONES), rewrites=[first_word_only], **options)


def test_what_the_model_takes_of_one_input_only():
    """The lengths have to be what they are."""

    def forward(ids, lengths):
        if (lengths != ids.shape[1]).any():
            raise ValueError("a length is not right")
        return ids * 2.0 + lengths[:, None]

    ids, lengths = torch.ones(5, 6, dtype=torch.int64), torch.full((5,), 6)
    result = export_compat(forward, (ids, lengths), exporter="torchscript")
    labels = {row.case for row in result.table}
    assert "other numbers in 'ids'" in labels
    assert not {"other numbers", "other numbers in 'lengths'"} & labels


@pytest.mark.parametrize(
    ("model", "numbers"),
    [
        (lambda x, n: x[:, :n].mean(1), torch.tensor(3)),  # of nothing, NaN
        (lambda x, n: nn.functional.embedding_bag(n.new_zeros(8), x.T, n), torch.zeros(3, dtype=torch.int64)),
    ],
    ids=["mean of nothing", "offsets"],
)
def test_numbers_that_make_no_sense_refuse_nothing(model, numbers):
    export_compat(model, (torch.randn(2, 5), numbers), exporter="torchscript", control_flow=True)


def test_infinities_of_the_example_hide_no_other_numbers():
    """Scores that a mask leaves out are -inf everywhere."""

    def forward(ids):
        scores = nn.functional.one_hot(ids, 4).float()
        return torch.where(torch.arange(4) == 3, -torch.inf, scores)

    result = export_compat(forward, (ONES,), exporter="torchscript")
    assert "other numbers in 'ids'" in {row.case for row in result.table}


def test_an_output_without_values_is_told():
    result = export_compat(lambda x: (x * 2, x[x > 1e6]), (torch.randn(4, 5),), exporter="torchscript")
    (note,) = (note for note in result.notes if "nothing of it was compared" in note)
    assert note.startswith("output 'output_1' is empty")
