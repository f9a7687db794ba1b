"""What a function returns may be of one kind or another, such as None or a tensor: the caller goes on with each."""

import functools
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from control_flow.files import export_and_compare
from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.control_flow.find import calls

pytestmark = pytest.mark.one_exporter


def mask_by_size(x):
    """None for one row; the mask of more is not all true, so that it shows."""
    mask = None
    if x.shape[0] > 1:
        mask = x.sum(-1) > 0
    return mask


def weights_by_value(x):
    return None if x.mean() > 0 else x.abs().sum(-1)


def several_by_value(x):
    if x.mean() > 0:
        return x, None
    return x * 2, x.sum(-1)


def pieces_by_value(x):
    if x.mean() > 0:
        return (x, x * 2)
    return (x,)


def mode_by_value(x):
    return "relu" if x.mean() > 0 else "tanh"


def options_by_value(x):
    return {} if x.mean() > 0 else {"weights": x * 2}


def dtype_by_value(x):
    return (x * 8).long() if x.mean() > 0 else x * 0.5


def passed_on(x):
    return weights_by_value(x)


def handed_through(function):
    @functools.wraps(function)
    def call(*args):
        result = function(*args)
        return result

    return call


decorated = handed_through(weights_by_value)


def attend(x, mask):
    if mask is not None:
        x = x.masked_fill(mask[..., None], -1.0)
    return x.softmax(-1)


def scaled(x, weights=None):
    return x if weights is None else x * weights


def assigned(x):
    mask = mask_by_size(x)
    return attend(x, mask)


def as_an_argument(x):
    return attend(x * 2, mask_by_size(x)) + 1


def in_a_test(x):
    if weights_by_value(x) is None:
        return x * 2
    return x - 1


def bound_in_a_test(x):
    if (weights := weights_by_value(x)) is not None:
        return x + weights[:, None]
    return x


def through_two_functions(x):
    weights = passed_on(x)
    return x if weights is None else x + weights[:, None]


def through_a_decorator(x):
    weights = decorated(x)
    return x if weights is None else x + weights[:, None]


def in_a_dict(x):
    found = {"weights": weights_by_value(x), "x": x}
    return found["x"] if found["weights"] is None else found["x"] + found["weights"][:, None]


def of_two_lengths(x):
    return sum(pieces_by_value(x))


def of_two_texts(x):
    mode = mode_by_value(x)
    return getattr(F, mode)(x) if mode == "relu" else torch.tanh(x)


def of_two_dicts(x):
    return scaled(x, **options_by_value(x))


def of_two_dtypes(x):
    return dtype_by_value(x).float() + 1


def in_a_block(x):
    with torch.no_grad():
        weights = weights_by_value(x)
        y = x if weights is None else x + weights[:, None]
    return y * 2


def in_rounds(x):
    for sign in (1, -1, 1):
        y, weights = several_by_value(x * sign)
        x = y if weights is None else y - weights[:, None]
    return x


def ends_the_loop(x):
    y = x.abs()
    for _ in range(4):
        more = None if y.sum() > 40 else y * 2
        if more is None:
            break
        y = more
    return y


def skips_rounds(x):
    y = x
    for number in range(3):
        weights = weights_by_value(y * (-1) ** number)
        if weights is None:
            continue
        y = y + weights[:, None]
    return y


def written_after(x):
    y = x.clone()
    weights = weights_by_value(x)
    y[:, 1] = 3.0
    if weights is not None:
        y[:, 0] = weights * 2
    return y.cumsum(-1)


def called_twice(x):
    one = weights_by_value(x)
    other = weights_by_value(-x)
    chosen = other if one is None else one
    return x if chosen is None else x + chosen[:, None]


class Holder(nn.Module):
    """A property of two kinds."""

    @property
    def weights(self):
        return None if self.x.mean() > 0 else self.x[:, 0]

    def forward(self, x):
        self.x = x
        weights = self.weights
        return x if weights is None else x + weights[:, None]


@pytest.mark.parametrize(
    "function",
    [
        assigned,
        as_an_argument,
        in_a_test,
        bound_in_a_test,
        through_two_functions,
        through_a_decorator,
        in_a_dict,
        of_two_lengths,
        of_two_texts,
        of_two_dicts,
        of_two_dtypes,
        in_a_block,
        in_rounds,
        ends_the_loop,
        skips_rounds,
        written_after,
        called_twice,
        Holder(),
    ],
    ids=lambda f: getattr(f, "__name__", type(f).__name__),
)
def test_the_rest_goes_on_with_each_kind(function, exporter, tmp_path):
    export_and_compare(function, exporter, tmp_path)


def mapped(x):
    one, other = map(weights_by_value, (x, -x))
    y = x if one is None else x + one[:, None]
    return y if other is None else y - other[:, None]


def collected(x):
    return sum(w[:, None] for w in [weights_by_value(s * x) for s in (1, -1)] if w is not None) + x


def listed(x):
    found = list(map(weights_by_value, (x, -x)))
    return sum(w[:, None] for w in found if w is not None) + x


def greatest(x):
    return max((x, -x), key=lambda y: 1.0 if weights_by_value(y) is None else 2.0)


@pytest.mark.parametrize("function", [mapped, collected, greatest])
def test_what_keeps_a_result_of_two_kinds_is_refused(function, exporter, tmp_path):
    with pytest.raises(CompatError, match=r"NoneType in one branch|call it in a statement of its own"):
        export_compat(function, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)


def test_a_result_that_does_not_arrive_is_refused_where_it_was_made(exporter, tmp_path):
    with pytest.raises(CompatError, match=r"test_openings.py:\d+: .*call it in a statement of its own"):
        export_compat(listed, torch.randn(3, 4), tmp_path / "model.onnx", dynamic="batch", exporter=exporter)


@pytest.mark.parametrize("function", [assigned, through_two_functions])
def test_calls_are_found_by_their_lines_where_python_tells_no_columns(function, exporter, tmp_path, monkeypatch):
    """As before Python 3.11."""
    monkeypatch.setattr(calls, "_span_of_call", lambda _: None)
    export_and_compare(function, exporter, tmp_path)


# A branch that fails where the other is wanted


def best_rows(x):
    if x.shape[0] <= 2:
        return None, x
    places = x.sum(-1).topk(3, dim=0).indices
    return places, x[places]


def routed(x):
    places, rows = best_rows(x)
    rows = rows.exp()
    if places is not None:
        rows = torch.zeros_like(x).index_copy(0, places, rows)
    return x - rows


class Rows(NamedTuple):
    places: torch.Tensor | None
    rows: torch.Tensor


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x, *, most):
        if x.shape[0] <= most:
            return Rows(None, x * self.weight)
        places = (x @ self.weight).topk(most + 1, dim=0).indices
        return Rows(places, x.index_select(0, places))


class Routed(nn.Module):
    """A round asks for another kind of result than the round before may have had."""

    def __init__(self):
        super().__init__()
        self.routers = nn.ModuleList([Router(), Router()])

    def forward(self, x):
        for number, router in enumerate(self.routers):
            places, rows = router(x, most=2 - number)
            rows = rows.tanh()
            x = x + (rows if places is None else torch.zeros_like(x).index_copy(0, places, rows))
        return x


@pytest.mark.parametrize("model", [routed, Routed()], ids=["function", "modules"])
def test_a_branch_that_fails_at_small_sizes_is_run_by_the_caller(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path, sizes=(1, 2, 3, 4, 17))


# Branches of two kinds within a round: the rest of the round moves into them


def none_in_rounds(x):
    for _ in range(2):
        top = None
        if x.max() > 1:
            top = x.max() / 2
        x = x + 1 if top is None else x.clamp(max=top)
    return x


def texts_in_rounds(x):
    for _ in range(2):
        mode = "nearest" if x.sum() > 0 else "linear"
        x = F.interpolate(x[None], size=4, mode=mode, align_corners=None if mode == "nearest" else True)[0] - x.mean()
    return x


class ModulesInRounds(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            for _ in range(2):
                layer = self.a if x.sum() > 0 else self.b
                x = layer(x)
        return x


@pytest.mark.parametrize(
    "model", [none_in_rounds, texts_in_rounds, ModulesInRounds()], ids=["None", "texts", "modules"]
)
def test_the_rest_of_a_round_goes_on_with_each_kind(model, exporter, tmp_path):
    export_and_compare(model, exporter, tmp_path)


# Exits of loops in decisions inside of decisions


def leaves_from_within(x):
    y = x
    for number in range(4):
        if y.sum() > 0:
            y = y - 1
            if y.mean() > 0.5:
                break
            y = y * 2
        else:
            y = y + number
            if y.max() > 2:
                continue
        y = y + 0.5
    return y


def returns_from_within(x):
    y = x
    for number in range(4):
        if y.sum() > 0:
            if y.mean() > 0.5:
                return y * 3
            if y.max() > 2:
                break
            y = y * 1.5
        else:
            if y.min() < -1:
                continue
            y = y + number
        y = y + 0.25
    return y - 1


def breaks_after_a_change(x):
    for number in range(3):
        if x.sum() > 0:
            x = x - 1
            if x.mean() > number:
                break
            x = x * 2
    return x


def returns_from_a_block(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x * 2
        y = x + 1
    return y - 3


def returns_from_a_loop_in_a_block(x):
    with torch.no_grad():
        for number in range(3):
            if x.sum() > number:
                return x * 2
            with torch.no_grad():
                x = x + 0.25
                if x.max() > 2:
                    break
        x = x - 1
    return x


def returns_from_a_try(x):
    try:
        if x.shape[0] == 2:
            return x * 2
        if x.sum() > 0:
            return x - 1
    except RuntimeError:
        return x
    else:
        x = x + 0.5
    finally:
        x = x * 1
    return x * 3


def breaks_from_a_block(x):
    for _ in range(3):
        with torch.no_grad():
            if x.sum() > 0:
                break
            x = x * 2 + 1
    return x


def says_why(x):
    if x.sum() > 1e6:
        raise ValueError("much" + ("" if x.shape[0] > 2 else f" of {x.shape[0]}") + ("!" if x.max() > 9 else "."))
    return x + 1 if x.mean() > 0 else x


def returns_from_a_block_in_a_loop_in_a_block(x):
    with torch.no_grad():
        for row in range(x.shape[0]):
            with torch.no_grad():
                if x[row].sum() > 1:
                    return x * row
            x = x + 0.1
    return x


FROM_BLOCKS = [
    returns_from_a_block_in_a_loop_in_a_block,
    returns_from_a_block,
    returns_from_a_loop_in_a_block,
    returns_from_a_try,
    breaks_from_a_block,
    says_why,
]


@pytest.mark.parametrize("function", [*FROM_BLOCKS, breaks_after_a_change, leaves_from_within, returns_from_within])
def test_exits_in_nested_decisions(function, exporter, tmp_path):
    export_and_compare(function, exporter, tmp_path)
