"""Reading and writing by index, mask and slice."""

import torch
from torch import nn

from operator_cases import naive
from operator_cases.case import Case


def floats(*size: int):
    return lambda n: (torch.randn(n, *size),)


def two(*size: int):
    return lambda n: (torch.randn(n, *size), torch.randn(n, *size))


def ints(*size: int):
    return lambda n: (torch.randint(-9, 10, (n, *size)),)


def repeated(n: int):
    """A table of 6 rows, n rows to add, and where to, with repetitions."""
    return torch.randn(6, 3), torch.randint(0, 3, (n,)), torch.randn(n, 3)


def distinct(n: int):
    """As `repeated`, each place once."""
    return torch.randn(6, 3), torch.randperm(6)[:n], torch.randn(n, 3)


def grid(n: int):
    """A table that grows with the batch, an index of its rank with repetitions, and values."""
    return torch.randn(n, 4), torch.randint(0, 4, (n, 6)), torch.randn(n, 6)


def rows(n: int):
    """As `grid`, but the index goes along the dynamic axis."""
    return torch.randn(n, 4), torch.randint(0, n, (3, 4)), torch.randn(3, 4)


def looked_up(n: int):
    return torch.randn(n, 4, 5), torch.tensor([[0, 2], [-1, 3]])


def square(n: int):
    return (torch.randn(n, n),)


class Written(nn.Module):
    """A statement on a copy of the first input."""

    def __init__(self, statement) -> None:
        super().__init__()
        self.statement = statement

    def forward(self, x, *others):
        y = x.clone()
        self.statement(y, *others)
        return y


def set_mask(y, *_):
    y[y > 0.3] = -1.0


def set_mask_tensor(y, v):
    y[y > 0] = v[y > 0] * 2


def set_mask_rows(y, *_):
    y[y[:, 0] > 0] = 7.0


def set_mask_trailing(y, v):
    y[:, v[0, :] > -9] = 3.0


def set_mask_int(y, *_):
    y[y < 0] = 0


def set_mask_of_scalar_tensor(y, v):
    y[y > 0] = v.mean()


def add_at_mask(y, *_):
    y[y > 0] += 2.0


def scale_at_mask(y, *_):
    y[y < 0] *= -0.5


def set_repeated(y, i, v):
    y[i] = v[:1]


def set_rows(y, i, v):
    y[i] = v


def set_columns(y, *_):
    y[:, [0, 2]] = 5.0


def set_columns_tensor(y, v):
    y[:, [3, 0]] = v[:, :2]


def set_pairs(y, *_):
    y[torch.tensor([0, 1]), torch.tensor([2, -1])] = 4.0


def set_split(y, *_):
    y[torch.tensor([0, 1]), :, torch.tensor([2, -1])] = 4.0


def set_batch_arange(y, *_):
    y[torch.arange(y.shape[0]), 0] = 9.0


def set_none(y, v):
    y[:, None, 1] = v[:, :1]


def add_rows(y, i, v):
    y.index_put_((i,), v, accumulate=True)


def add_pairs(y, i, v):
    y.index_put_((i, i.flip(0) % 3), v[:, 0], accumulate=True)


def add_number(y, i, _):
    y.index_put_((i,), torch.tensor(1.0), accumulate=True)


def add_after_slice(y, i, v):
    y.t().index_put_((torch.tensor([0, 0, 2]),), torch.ones(3, 1), accumulate=True)


def add_plain_statement(y, i, v):
    y[i] += 1.0


def fill_step(y, v):
    y[:, ::2] = v[:, ::2]


def fill_step_offset(y, *_):
    y[:, 1::3] = 8.0


def fill_last(y, *_):
    y[..., -1] = 0


def fill_negative(y, v):
    y[:, -3:-1] = v[:, :2]


def fill_broadcast(y, v):
    y[:, 1:3] = v[0, :2]


def fill_all(y, v):
    y[:] = v


def fill_from_end(y, v):
    y[:, -2:] = v[:, :1]


def fill_two_axes(y, v):
    y[:, 1:3, ::2] = v[:, 1:3, :1]


def fill_rows(y, *_):
    y[1:] = 2.0


def fill_row_step(y, v):
    y[::2] = v[::2] * 3


def fill_row_negative(y, v):
    y[-1] = v[0]


def fill_beyond(y, *_):
    y[:, 2:99] = 1.5


def fill_int_from_float(y, *_):
    y[:, 0] = 2.7


def add_slice(y, v):
    y[:, 1:] += v[:, 1:]


def add_shifted(y, _):
    y[:, 1:] += y[:, :-1].clone()


def scale_slice(y, *_):
    y[..., 0] *= 2.0


def zero_view(y, *_):
    y[:, 1].zero_()


def chained(y, v):
    z = y[:, 1:]
    z[..., ::2] = v[:, 1:, ::2]


def copied(y, v):
    y[:, :2].copy_(v[:, 1:3])


def fill_by_select(y, *_):
    y.select(1, 2).fill_(3.0)
    y.narrow(1, 0, 2).mul_(2.0)


def fill_diagonal(y, *_):
    y.fill_diagonal_(9.0)


def fill_diagonal_view(y, *_):
    y.diagonal(dim1=-2, dim2=-1).fill_(1.0)


READS = [
    Case("getitem", "mask", lambda x: x[x > 0], floats(4)),
    Case("getitem", "mask of rows", lambda x: x[x[:, 0] > 0], floats(4)),
    Case("getitem", "mask on the second axis", lambda x: x[:, torch.tensor([True, False, True])], floats(3, 2)),
    Case("getitem", "mask of two axes", lambda x: x[x[..., 0] > 0], floats(4, 3)),
    Case("getitem", "mask after an ellipsis", lambda x: x[..., x[0, 0] > 0], floats(4, 3)),
    Case("getitem", "mask with an index", lambda x: x[x[:, 0, 0] > -9, 1], floats(4, 3)),
    Case("getitem", "mask of bytes cast to bool", lambda x: x[(x > 0).to(torch.uint8).bool()], floats(4)),
    Case("getitem", "2-D index", lambda x, i: x[:, i], looked_up),
    Case("getitem", "2-D index on the batch", lambda x: x[torch.tensor([[0, 1], [1, -1]])], floats(4, 5)),
    Case("getitem", "two indices", lambda x: x[torch.tensor([0, 1, -1]), torch.tensor([3, -1, 0])], floats(4, 5)),
    Case("getitem", "broadcast indices", lambda x: x[torch.tensor([[0], [1]]), torch.tensor([2, -2, 1])], floats(4, 5)),
    Case("getitem", "split indices", lambda x: x[torch.tensor([0, 1]), :, torch.tensor([2, -1])], floats(4, 5)),
    Case(
        "getitem", "adjacent, after a slice", lambda x: x[:, torch.tensor([0, 1]), torch.tensor([2, -1])], floats(4, 5)
    ),
    Case("getitem", "index and integer", lambda x: x[:, 1, torch.tensor([2, -1])], floats(4, 5)),
    Case("getitem", "None and index", lambda x: x[:, None, torch.tensor([2, -1, 0])], floats(4, 5)),
    Case("getitem", "ellipsis and index", lambda x: x[..., torch.tensor([2, -1, 0])], floats(4, 5)),
    Case("getitem", "index, slice with step", lambda x: x[:, torch.tensor([2, -1]), ::2], floats(4, 5)),
    Case("getitem", "list", lambda x: x[:, [3, 0, -2]], floats(4, 5)),
    Case("getitem", "batch arange", lambda x: x[torch.arange(x.shape[0]), x.argmax(1)], floats(4)),
    Case("getitem", "steps and negatives", lambda x: (x[:, 1::2], x[:, -3:], x[..., :-1:2], x[-1]), floats(4, 5)),
    Case("getitem", "beyond the size", lambda x: (x[:, 2:99], x[:, -99:2]), floats(4, 5)),
    Case("getitem", "flip of the batch", lambda x: x[torch.arange(x.shape[0] - 1, -1, -1)], floats(4)),
    Case("getitem", "tensor of 0 dimensions", lambda x: x[:, x[0].argmax()], floats(4)),
    Case("masked_select", "", lambda x: torch.masked_select(x, x > 0), floats(4)),
    Case("masked_select", "broadcast mask", lambda x: x.masked_select(x[:1] > 0), floats(4)),
    Case("index_select", "", lambda x: x.index_select(1, torch.tensor([3, 0, 0])), floats(4)),
    Case("index_select", "negative dim, int32", lambda x: x.index_select(-1, torch.tensor([3, 0]).int()), floats(4)),
    Case("index_select", "0-d index", lambda x: x.index_select(1, torch.tensor(2)), floats(4)),
    Case("gather", "negative dim", lambda x: x.gather(-1, x.argsort(-1)), floats(4, 5)),
    Case(
        "gather",
        "fewer rows",
        lambda x: x.gather(1, torch.tensor([[[3, 0, 0]]]).expand(x.shape[0], 1, 3)),
        floats(4, 5),
    ),
    Case("gather", "dynamic axis", lambda x, i, v: x.gather(0, i), rows),
    Case("take", "", lambda x: x.take(torch.tensor([[0, 5], [-1, 3]])), floats(4)),
    Case("take_along_dim", "", lambda x: torch.take_along_dim(x, x.argsort(1), 1), floats(4)),
    Case("take_along_dim", "broadcast", lambda x: torch.take_along_dim(x, torch.tensor([[3, 0]]), -1), floats(4)),
    Case("take_along_dim", "flattened", lambda x: torch.take_along_dim(x, torch.tensor([3, 0, 7])), floats(4)),
    Case("take_along_dim", "argmax, keepdim", lambda x: x.take_along_dim(x.argmax(1, keepdim=True), 1), floats(4, 3)),
    Case("nonzero", "", lambda x: torch.nonzero(x > 0), floats(4)),
    Case("nonzero", "fixed capacity", lambda x: torch.nonzero_static(x > 0, size=7), floats(4)),
    Case("nonzero", "as_tuple", lambda x: torch.nonzero(x > 0, as_tuple=True), floats(4)),
    Case("nonzero", "of integers", lambda x: (x % 2).nonzero(), ints(4)),
    Case("argwhere", "", lambda x: torch.argwhere(x > 0), floats(4)),
    Case("where", "one argument", lambda x: torch.where(x > 0), floats(4)),
    Case("isin", "", lambda x: torch.isin(x, torch.tensor([1, -3, 5])), ints(4)),
    Case("isin", "inverted", lambda x: torch.isin(x, torch.tensor([1, -3, 5]), invert=True), ints(4)),
    Case("isin", "a number", lambda x: (torch.isin(x, 3), torch.isin(3, x)), ints(4)),
    Case("isin", "floats of another input", torch.isin, lambda n: (torch.randn(n, 3).round(), torch.randn(4).round())),
]

WRITES = [
    Case("setitem", "mask, number", Written(set_mask), floats(4)),
    Case("setitem", "mask, tensor", Written(set_mask_tensor), two(4)),
    Case("setitem", "mask of rows, number", Written(set_mask_rows), floats(4)),
    Case("setitem", "mask on the second axis", Written(set_mask_trailing), two(4)),
    Case("setitem", "mask of integers", Written(set_mask_int), ints(4)),
    Case("setitem", "mask, scalar tensor", Written(set_mask_of_scalar_tensor), two(4)),
    Case("setitem", "mask, +=", Written(add_at_mask), floats(4)),
    Case("setitem", "mask, *=", Written(scale_at_mask), floats(4)),
    Case("masked_fill", "", lambda x: x.masked_fill(x > 0, float("-inf")), floats(4)),
    Case("masked_fill", "tensor value", lambda x: x.masked_fill(x > 0, torch.tensor(2.0)), floats(4)),
    Case("masked_fill", "in place, of integers", Written(lambda y: y.masked_fill_(y > 0, 3)), ints(4)),
    Case(
        "masked_fill",
        "broadcast mask",
        lambda x, m: x.masked_fill(m[:, None] > 0, 0.0),
        lambda n: (torch.randn(n, 3, 4), torch.randn(n, 4)),
    ),
    Case("masked_scatter", "", lambda x, v: x.masked_scatter(x > 0, v), two(4)),
    Case("masked_scatter", "broadcast mask", lambda x, v: x.masked_scatter(x[:, :1] > 0, v), two(4)),
    Case("masked_scatter", "in place", Written(lambda y, v: y.masked_scatter_(y > 0, v)), two(4)),
    Case(
        "masked_scatter",
        "longer source",
        lambda x, v: x.masked_scatter(x > 0, v),
        lambda n: (torch.randn(n, 4), torch.randn(3 * n, 4)),
    ),
    Case("setitem", "the same row again", Written(set_repeated), repeated),
    Case("setitem", "rows", Written(set_rows), distinct),
    Case("setitem", "columns, number", Written(set_columns), floats(4)),
    Case("setitem", "columns, tensor", Written(set_columns_tensor), two(4)),
    Case("setitem", "pairs", Written(set_pairs), floats(4)),
    Case("setitem", "split indices", Written(set_split), floats(3, 4)),
    Case("setitem", "batch arange", Written(set_batch_arange), floats(4)),
    Case("setitem", "None", Written(set_none), two(4)),
    Case("index_put", "accumulate, repeated", Written(add_rows), repeated),
    Case("index_put", "accumulate, two indices", Written(add_pairs), repeated),
    Case("index_put", "accumulate, number", Written(add_number), repeated),
    Case("index_put", "accumulate, into a view", Written(add_after_slice), repeated),
    Case(
        "index_put", "out of place, accumulate", lambda x, i, v: torch.index_put(x, (i,), v, accumulate=True), repeated
    ),
    Case(
        "index_put",
        "accumulate after a slice",
        lambda x, i, v: x.index_put((torch.tensor([[0], [1]]), i % 3), torch.ones(()), True),
        repeated,
    ),
    Case("index_put", "accumulate integers", lambda x, i, v: x.long().index_put((i,), v.long(), True), repeated),
    Case("setitem", "repeated, +=", Written(add_plain_statement), repeated),
    Case("index_add", "repeated", lambda x, i, v: x.index_add(0, i, v), repeated),
    Case("index_add", "alpha", lambda x, i, v: torch.index_add(x, 0, i, v, alpha=-2.5), repeated),
    Case("index_add", "in place", Written(lambda y, i, v: y.index_add_(0, i, v)), repeated),
    Case("index_add", "second axis", lambda x: x.index_add(1, torch.tensor([0, 2, 0]), x[:, :3] * 2), floats(4, 3)),
    Case("index_add", "negative dim", lambda x: x.index_add(-1, torch.tensor([0, 2, 0]), x[..., :3] * 2), floats(4, 3)),
    Case(
        "index_add",
        "vector",
        lambda i, v: torch.zeros(4).index_add(0, i, v),
        lambda n: (torch.randint(0, 3, (n,)), torch.randn(n)),
    ),
    Case(
        "index_add",
        "into zeros of a size",
        lambda i, v: v.new_zeros(i.shape[0], 3).index_add(0, i, v),
        lambda n: (torch.randint(0, 2, (n,)), torch.randn(n, 3)),
    ),
    Case("index_add", "integers", lambda x, i, v: x.long().index_add(0, i, v.long()), repeated),
    Case("index_copy", "", lambda x, i, v: x.index_copy(0, i, v), distinct),
    Case("index_copy", "second axis", lambda x: x.index_copy(1, torch.tensor([3, 0]), x[:, 1:3] * 2), floats(4, 3)),
    Case(
        "index_copy",
        "in place, negative dim",
        Written(lambda y: y.index_copy_(-1, torch.tensor([3, 0]), y[..., :2] * 2)),
        floats(4),
    ),
    Case("index_fill", "", lambda x: x.index_fill(1, torch.tensor([3, 0]), -1.0), floats(4)),
    Case(
        "index_fill",
        "in place, negative dim",
        Written(lambda y: y.index_fill_(-1, torch.tensor([3, 0]), 2)),
        floats(4, 5),
    ),
    Case("index_fill", "tensor value", lambda x: x.index_fill(1, torch.tensor([1]), torch.tensor(5.0)), floats(4)),
    Case("index_fill", "integers", lambda x: x.index_fill(1, torch.tensor([1, 1]), 5), ints(4)),
    Case(
        "index_reduce",
        "amax",
        lambda x, i, v: x.index_reduce(0, i, v, "amax"),
        repeated,
        declined="needs opset 18 or later",
    ),
    Case(
        "index_reduce",
        "amin, without self",
        lambda x, i, v: x.index_reduce(0, i, v, "amin", include_self=False),
        repeated,
        declined="needs opset 18 or later",
    ),
    Case("index_reduce", "prod", lambda x, i, v: x.index_reduce(0, i, v, "prod"), repeated),
    Case("index_reduce", "mean", lambda x, i, v: x.index_reduce(0, i, v, "mean"), repeated),
    Case("put", "", lambda x, v: x.put(torch.tensor([0, 5, -1]), v[0, :3]), two(4)),
    Case("put", "in place", Written(lambda y, v: y.put_(torch.tensor([1, 6]), v[0, :2])), two(4)),
    Case("put", "accumulate", lambda x, v: x.put(torch.tensor([0, 5, 0]), v[0, :3], accumulate=True), two(4)),
]

SCATTERS = [
    Case("scatter", "value", lambda x: x.scatter(1, x.argmax(1, keepdim=True), 1.5), floats(4)),
    Case(
        "scatter",
        "value, integers",
        lambda x: torch.zeros_like(x).scatter_(1, x.abs().argmax(1, keepdim=True), 1),
        ints(4),
    ),
    Case("scatter", "tensor", lambda x: x.scatter(-1, x.argsort(1), x * 2), floats(4)),
    Case(
        "scatter",
        "longer source",
        lambda x: x.scatter(1, torch.tensor([[1, 0]]).expand(x.shape[0], 2), x * 2),
        floats(4),
    ),
    Case("scatter", "larger source", lambda x, i, v: torch.zeros_like(x).scatter(0, i[i.shape[0] // 2 :], v), rows),
    Case("scatter", "dynamic axis", lambda x, i, v: x.scatter(0, i.sort(0).values[:1], v), rows),
    Case("scatter", "reduce add", lambda x, i, v: x.scatter(1, i, v, reduce="add"), grid),
    Case("scatter", "reduce multiply", lambda x, i, v: x.scatter(1, i, v, reduce="multiply"), grid),
    Case("scatter", "reduce add, value", lambda x, i, v: x.scatter(1, i, 0.5, reduce="add"), grid),
    Case("scatter_add", "", lambda x, i, v: x.scatter_add(1, i, v), grid, naive=naive.scatter_add_by_one_hot),
    Case("scatter_add", "dynamic axis", lambda x, i, v: x.scatter_add(0, i, v), rows),
    Case("scatter_add", "in place, longer source", Written(lambda y, i, v: y.scatter_add_(-1, i[:, :4], v)), grid),
    Case("scatter_add", "integers", lambda x, i, v: x.long().scatter_add(1, i, v.long()), grid),
    *(
        Case(
            "scatter_reduce",
            f"{reduce}{'' if own else ', without self'}",
            lambda x, i, v, reduce=reduce, own=own: x.scatter_reduce(1, i, v, reduce=reduce, include_self=own),
            grid,
            declined="" if own or reduce not in ("amax", "amin") else "needs opset 18 or later",
        )
        for reduce in ("sum", "mean", "amax", "amin", "prod")
        for own in (True, False)
    ),
    Case(
        "scatter_reduce",
        "mean, integers",
        lambda x, i, v: (x * 9).long().scatter_reduce(1, i, (v * 9).long(), "mean"),
        grid,
    ),
    Case("scatter_reduce", "in place, dynamic axis", Written(lambda y, i, v: y.scatter_reduce_(0, i, v, "amax")), rows),
    Case(
        "scatter_reduce",
        "amax, integers, without self",
        lambda x, i, v: (x * 9).long().scatter_reduce(1, i, (v * 9).long(), "amax", include_self=False),
        grid,
        declined="needs opset 18 or later",
    ),
    Case("select_scatter", "", lambda x, v: torch.select_scatter(x, v[:, 0], 1, -2), two(4, 3)),
    Case("slice_scatter", "step", lambda x, v: torch.slice_scatter(x, v[:, :2], 1, 0, 4, 2), two(4)),
    Case("slice_scatter", "dynamic axis", lambda x, v: torch.slice_scatter(x, v[1:], 0, 1), two(4)),
    Case("diagonal_scatter", "", lambda x, v: torch.diagonal_scatter(x, v[:, 0, :4], 1, 1, 2), two(4, 5)),
]

SLICES = [
    Case("setitem", "step, tensor", Written(fill_step), two(5)),
    Case("setitem", "step with offset", Written(fill_step_offset), floats(7)),
    Case("setitem", "last", Written(fill_last), floats(3, 4)),
    Case("setitem", "negative bounds", Written(fill_negative), two(5)),
    Case("setitem", "broadcast", Written(fill_broadcast), two(5)),
    Case("setitem", "everything", Written(fill_all), two(5)),
    Case("setitem", "from the end, broadcast", Written(fill_from_end), two(5)),
    Case("setitem", "two axes", Written(fill_two_axes), two(4, 5)),
    Case("setitem", "rows from 1", Written(fill_rows), floats(5)),
    Case("setitem", "every other row", Written(fill_row_step), two(5)),
    Case("setitem", "last row", Written(fill_row_negative), two(5)),
    Case("setitem", "beyond the size", Written(fill_beyond), floats(5)),
    Case("setitem", "float into integers", Written(fill_int_from_float), ints(5)),
    Case("setitem", "slice +=", Written(add_slice), two(5)),
    Case("setitem", "shifted +=", Written(add_shifted), two(5)),
    Case("setitem", "slice *=", Written(scale_slice), floats(3, 4)),
    Case("setitem", "zero_ of a view", Written(zero_view), floats(3, 4)),
    Case("setitem", "slice of a slice", Written(chained), two(3, 5)),
    Case("setitem", "copy_ into a slice", Written(copied), two(4)),
    Case("setitem", "select and narrow in place", Written(fill_by_select), floats(4, 3)),
    Case("fill_diagonal", "", Written(fill_diagonal), square),
    Case("fill_diagonal", "wide", Written(fill_diagonal), floats(6)),
    Case(
        "fill_diagonal",
        "tall, wrapped",
        Written(lambda y: y.fill_diagonal_(9.0, wrap=True)),
        lambda n: (torch.randn(7, 2),),
    ),
    Case("fill_diagonal", "view of a batch", Written(fill_diagonal_view), floats(4, 4)),
    Case("select", "and unbind, narrow", lambda x: (x.select(1, -1), *x.unbind(1), x.narrow(-1, 1, 2)), floats(3, 4)),
    Case("narrow", "negative start", lambda x: x.narrow(1, -3, 2), floats(5)),
    Case("unbind", "negative dim", lambda x: x.unbind(-1), floats(4, 3)),
]

SHAPES = [
    Case(
        "diagonal",
        "",
        lambda x: (torch.diagonal(x, 0, 1, 2), x.diagonal(1, -2, -1), x.diagonal(-2, 2, 1)),
        floats(4, 5),
    ),
    Case("diagonal", "beyond the size", lambda x: x.diagonal(4, 1, 2), floats(4, 5)),
    Case("diagonal", "dynamic axes", lambda x: (x.diagonal(), x.diagonal(-1)), square),
    Case("diag", "of a vector", lambda x: (torch.diag(x), torch.diag(x, 1), torch.diag(x, -2)), floats()),
    Case("diag", "of a matrix", lambda x: (torch.diag(x), x.diag(1)), floats(4)),
    Case("diag_embed", "", lambda x: (torch.diag_embed(x), torch.diag_embed(x, 1), x.diag_embed(-2)), floats(4)),
    Case("diag_embed", "other axes", lambda x: torch.diag_embed(x, 1, 0, -2), floats(4)),
    Case("diag_embed", "dynamic size", lambda x: torch.diag_embed(x.t()), floats(3)),
    Case("diag_embed", "integers and bool", lambda x: (x.diag_embed(), (x > 0).diag_embed()), ints(4)),
    Case("diagflat", "", lambda x: (torch.diagflat(x), torch.diagflat(x, 1)), floats(2)),
    Case("tril", "", lambda x: (x.tril(), torch.tril(x, 1), x.tril(-1)), floats(4, 4)),
    Case("tril", "wide, beyond the size", lambda x: (x.tril(7), x.tril(-7), x.tril(2)), floats(3, 5)),
    Case("tril", "dynamic size", lambda x: (x.tril(), x.tril(-1), x.triu(1)), square),
    Case("tril", "in place", Written(lambda y: y.tril_()), floats(4, 4)),
    Case("triu", "tall, integers", lambda x: (x.triu(), torch.triu(x, 1), x.triu(-1)), ints(5, 3)),
    Case("triu", "bool", lambda x: ((x > 0).triu(), (x > 0).tril(-1)), floats(4, 5)),
    Case("triu", "in place", Written(lambda y: y.triu_(1)), floats(4, 4)),
    Case(
        "triu", "causal mask", lambda x: torch.triu(torch.full((x.shape[0], x.shape[0]), float("-inf")), 1), floats(3)
    ),
    Case("triu", "bool ones", lambda x: torch.ones(x.shape[0], x.shape[0], dtype=torch.bool).triu(1), floats(3)),
    Case("triu", "not finite", lambda x: (x / 0).triu(), floats(3, 3)),
    Case(
        "tril_indices",
        "gathered",
        lambda x: x[:, torch.tril_indices(4, 4, -1)[0], torch.tril_indices(4, 4, -1)[1]],
        floats(4, 4),
    ),
    Case(
        "triu_indices",
        "gathered",
        lambda x: x[:, torch.triu_indices(3, 4, 1)[0], torch.triu_indices(3, 4, 1)[1]],
        floats(3, 4),
    ),
    Case("tril_indices", "of a dynamic size", lambda x: torch.tril_indices(x.shape[0], x.shape[0]), floats(3)),
    Case(
        "triu_indices", "of a dynamic size", lambda x: torch.triu_indices(x.shape[0], x.shape[0], offset=1), floats(3)
    ),
    Case("meshgrid", "ij", lambda x: torch.meshgrid(x[:, 0], torch.arange(3.0), indexing="ij"), floats(4)),
    Case("meshgrid", "xy", lambda x: torch.meshgrid(x[:, 0], torch.arange(3.0), indexing="xy"), floats(4)),
    Case(
        "meshgrid",
        "of sizes",
        lambda x: torch.meshgrid(torch.arange(x.shape[0]), torch.arange(x.shape[1]), indexing="ij"),
        floats(4),
    ),
    Case("cartesian_prod", "", lambda x: torch.cartesian_prod(x[:, 0], torch.arange(3.0)), floats(4)),
    Case(
        "cartesian_prod",
        "three, and one",
        lambda x: (torch.cartesian_prod(x[:, 0], x[:, 1], x[:, 2]), torch.cartesian_prod(x[:, 0])),
        floats(4),
    ),
    Case("combinations", "fixed", lambda x: torch.combinations(x[0]), floats(4)),
    Case("combinations", "dynamic", lambda x: torch.combinations(x[:, 0]), floats(4)),
    Case("combinations", "with replacement", lambda x: torch.combinations(x[:, 0], with_replacement=True), floats(4)),
    Case("combinations", "of three", lambda x: torch.combinations(x[0], r=3), floats(5)),
    Case("block_diag", "", lambda x: torch.block_diag(x, torch.ones(2, 3), x[:1]), floats(4)),
    Case("block_diag", "vector and number", lambda x: torch.block_diag(x[0], torch.tensor(3.0), x), floats(4)),
    Case("hstack", "", lambda x: (torch.hstack((x, x * 2)), torch.hstack((x[:, 0], x[0]))), floats(4)),
    Case("vstack", "", lambda x: (torch.vstack((x, x * 2)), torch.vstack((x[0], x[1]))), floats(4)),
    Case("dstack", "", lambda x: (torch.dstack((x, x * 2)), torch.dstack((x[0], x[1]))), floats(4)),
    Case("column_stack", "", lambda x: torch.column_stack((x[:, 0], x)), floats(4)),
    Case("expand", "", lambda x: (x.expand(3, -1, 4), x[:, :1].expand(-1, 6), x[:1].expand_as(x)), floats(4)),
    Case("expand", "by a size", lambda x: x[:1].expand(x.shape[0], 3, x.shape[1]), lambda n: (torch.randn(n, 4),)),
    Case("flip", "", lambda x: (x.flip(0), x.flip(-1), torch.flip(x, (0, 2))), floats(4, 5)),
    Case("flip", "by a negative index", lambda x: x[:, torch.arange(3, -1, -1)], floats(4, 5)),
]

CASES = [*READS, *WRITES, *SCATTERS, *SLICES, *SHAPES]
