"""What is not run again asks nothing that was not asked before."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from torch_onnx_compat.backends.internals import symbolic
from torch_onnx_compat.observe import Observation
from torch_onnx_compat.prepare import export_conditions, prepare
from torch_onnx_compat.questions.arguments import leaves_of, replace_leaves
from torch_onnx_compat.questions.beside import Beside
from torch_onnx_compat.questions.memo import ShapeMemo, _is_pointwise
from torch_onnx_compat.questions.run import run_symbolically


class Blocks(nn.Module):
    """The same block three times, with views, in-place operators, broadcasting and reductions."""

    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList(nn.Conv2d(4, 4, 3, padding=1) for _ in range(3))
        self.norms = nn.ModuleList(nn.BatchNorm2d(4) for _ in range(3))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            y = norm(conv(x))
            y = y.relu_() + F.hardswish(y, inplace=True) * y.mean((2, 3), keepdim=True)
            y = y.flatten(2).transpose(1, 2).contiguous().transpose(1, 2).reshape(x.shape)
            x = (x + y).clamp(-1, 1).add_(1)
        return F.gelu(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class Decides(Blocks):
    def forward(self, x):
        x = super().forward(x)
        x.unsqueeze_(0)
        x = x.relu().squeeze(0)
        return F.max_pool2d(x, 2) if x.shape[2] > x.shape[3] * 2 else x.sum(1)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), 2)

    def forward(self, x):
        return self.layers(x.flatten(2))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("kind", "size"), [(Blocks, (2, 4, 8, 10)), (Decides, (2, 4, 8, 10)), (Attention, (3, 5, 4, 4))]
)
def test_questions_are_those_of_every_operator_run(kind, size, monkeypatch):
    def questions():
        ran.clear()
        with export_conditions():
            axes = {"x": {0: "batch", 2: "height", 3: "width"} if kind is not Attention else {0: "batch", 1: "length"}}
            observation = Observation(prepare(kind().eval(), (torch.randn(size),), dynamic=axes))
            run = run_symbolically(observation, observation.trace_inputs())
        assert not run.obstacle
        return {(q.kind, str(q.expression), q.operator) for q in run.questions}, len(ran)

    def run_once(self, func, args, kwargs, plain=Beside._run_once):
        ran.append(func)
        return plain(self, func, args, kwargs)

    ran: list[object] = []
    monkeypatch.setattr(Beside, "_run_once", run_once)
    with_memo, few = questions()
    monkeypatch.setattr(ShapeMemo, "_key", lambda *args: None)
    monkeypatch.setattr(ShapeMemo, "_keeps_shape", lambda *args: False)
    without, many = questions()
    assert few < many
    # How its memory lies an operator may ask of every tensor; that chooses a kernel, and no shape.
    asked, asked_once = ({question[:2] for question in found} for found in (without, with_memo))
    assert asked_once <= asked
    lost = asked - asked_once
    assert {kind for kind, _ in lost} <= {"condition"}
    assert not [text for _, text in lost if text.endswith(", 1)") and text.startswith("Eq(")]
    assert {q for q in without if not q[2]} == {q for q in with_memo if not q[2]}


def asked_by(function, x):
    """What Python asks of a model; the run has to come to its end."""

    class Model(nn.Module):
        def forward(self, x):
            return function(x)

    with export_conditions():
        axes = {"x": {0: "batch", 1: "length"}}
        observation = Observation(prepare(Model().eval(), (x,), dynamic=axes))
        run = run_symbolically(observation, observation.trace_inputs())
    assert not run.obstacle
    return {str(q.expression) for q in run.questions if not q.operator}


def test_constants_that_come_and_go():
    """A tensor that is gone leaves its number to the next one, which may have another shape and other values."""

    def pieces(x):
        shapes = [x[:, torch.arange(count)].shape[1] for count in (2, 3, 4)]
        return x * 2 if shapes == [2, 3, 4] and x.shape[1] > 40 else x

    assert "length > 40" in asked_by(pieces, torch.randn(3, 6))


def test_a_constant_that_is_written_to():
    def pieces(x):
        counts = torch.tensor([1, 1])
        first = x[:, :2].repeat_interleave(counts, 1, output_size=2)
        counts += 1
        second = x[:, :2].repeat_interleave(counts, 1, output_size=4)
        return x * 2 if second.shape[1] - first.shape[1] == 2 and x.shape[1] > 40 else x

    assert "length > 40" in asked_by(pieces, torch.randn(3, 6))


def test_results_that_are_written_elsewhere():
    """With out=, the first argument stays as it was."""

    def writes(x):
        result = torch.empty_like(x)
        torch.add(x, x, out=result)
        return x * 2 if bool((x == 1).all()) and x.shape[1] > 40 else result

    assert "length > 40" in asked_by(writes, torch.ones(3, 6))


def test_results_that_are_resized_in_place():
    """As torch.quantile does inside; the next result of the same operator has its own shape."""

    def resized(x):
        first, second = (x.gather(1, torch.zeros(x.shape[0], 1, dtype=torch.int64)).squeeze_(1) for _ in range(2))
        quantiles = [x.quantile(q, 1, interpolation="lower") for q in (0.1, 0.9)]
        return x * 2 if first.dim() == second.dim() == quantiles[1].dim() and x.shape[1] > 40 else x

    assert asked_by(resized, torch.rand(3, 6)) == {"length > 40"}


def test_another_fake_is_the_one_that_detach_makes():
    symbols = symbolic.Symbols(lambda expression, answer: answer)
    fake, _ = symbols.fake(torch.rand(4, 6, 3), (0, 2))
    for one in (fake, symbols.run(torch.Tensor.transpose, (fake, 0, 1), {})[1:]):
        made, wanted = symbols.another(one), symbols.run(torch.ops.aten.detach.default, (one,), {})
        assert made is not one
        assert type(made) is type(wanted)
        assert str((made.shape, made.stride(), made.storage_offset(), made.dtype, made.device)) == str(
            (wanted.shape, wanted.stride(), wanted.storage_offset(), wanted.dtype, wanted.device)
        )


def test_operators_of_one_tensor_and_numbers_that_can_write_in_place_keep_its_shape():
    aten = torch.ops.aten
    assert _is_pointwise(aten.hardswish.default)
    for operator in (aten.squeeze.default, aten.t.default, aten.resize.default, aten.cumsum.default, aten.sum.default):
        assert not _is_pointwise(operator)


def test_arguments_are_walked_as_pytree_walks_them():
    pair = torch.rand(2, 3).max(1)
    value = ((1, [2.0, None, pair]), {"a": [torch.float32, (True,)], "b": torch.Size([3, 4])}, ())
    assert all(one is other for one, other in zip(leaves_of(value), pytree.tree_leaves(value), strict=True))
    mine, torchs = replace_leaves(value, str), pytree.tree_map(str, value)
    assert mine == torchs
    assert type(mine[0][1][2]) is type(pair)
