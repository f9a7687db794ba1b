# ruff: noqa: SIM108, RUF046 - the statements are what is tested
"""Small models that take decisions, each with inputs that take every branch."""

import math
from collections import namedtuple
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

PLUS, MINUS, BIG = torch.rand(3, 4) + 0.1, -torch.rand(3, 4) - 0.1, torch.rand(3, 4) * 50 + 20
VALUES = ((PLUS,), (MINUS,), (BIG,), (-BIG,))
SIZES = tuple((torch.randn(n, 4),) for n in (1, 2, 4, 5, 7))


@dataclass
class Program:
    """A model, an example, further inputs, and the axes that vary."""

    model: nn.Module
    samples: tuple = VALUES
    dynamic: object = None

    @property
    def example(self):
        return self.samples[0] if self.dynamic is None else (torch.randn(3, 4),)


PROGRAMS: dict[str, Program] = {}


def program(samples=VALUES, dynamic=None):
    """Registers a forward function, or a module class, under its name."""

    def register(made):
        torch.manual_seed(0)
        model = made() if isinstance(made, type) else type(made.__name__, (nn.Module,), {"forward": made})()
        PROGRAMS[made.__name__] = Program(model.eval(), samples, dynamic)
        return made

    return register


by_size = program(SIZES, "batch")


# The two that started it


@by_size
class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.a(x) if x.shape[0] > 1 else self.b(x)


@by_size
class MaskOfCondition(nn.Module):
    def cond(self, x):
        if x.shape[0] > 1:
            return x > x.mean(0, keepdim=True)
        return x > 0

    def forward(self, x):
        mask = self.cond(x)
        return torch.where(mask, x, x * 0.1)


# Statements


@program()
def if_else(self, x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y + 1


@program()
def early_return(self, x):
    if x.sum() > 100:
        return x
    y = x.exp().clamp(max=10)
    if y.mean() > 1:
        return y * 2
    return y - 3


@program()
def elif_chain(self, x):
    total = x.sum()
    if total > 100:
        y = x / 10
    elif total > 0:
        y = x + 1
    elif total > -100:
        y = x * 3
    else:
        y = -x
    return y


@program()
def elif_returns(self, x):
    total = x.sum()
    if total > 100:
        return x / 10
    elif total > 0:
        return x + 1
    elif total > -100:
        return x * 3
    return -x


@program()
def nested(self, x):
    if x.mean() > 0:
        if x.max() > 20:
            y = x / x.max()
        else:
            y = x * 2
    elif x.min() < -20:
        y = x / x.min()
    else:
        y = x
    return y


@program()
def nested_returns(self, x):
    if x.mean() > 0:
        if x.max() > 20:
            return x / x.max()
        y = x * 2
    else:
        y = x - 1
    y = y + 0.5
    return y * y


@program()
def several_names(self, x):
    a, b = x, x * 2
    if x.sum() > 0:
        a, b = b, a
        c = a + b
    else:
        c = a - b
    return a, b, c


@program()
def no_else(self, x):
    y = x
    if x.sum() > 0:
        y = y + 5
    return y * 2


@program()
def bound_in_one_branch(self, x):
    if x.sum() > 0:
        shift = x.mean()
        y = x - shift
    else:
        y = x
    return y


@program()
def python_numbers(self, x):
    if x.sum() > 0:
        scale, offset = 2, 0.5
    else:
        scale, offset = 3, -0.5
    return x * scale + offset


@program()
def number_or_tensor(self, x):
    scale = 1.0
    if x.sum() > 0:
        scale = x.mean()
    return x * scale


@program()
def none_stays(self, x):
    bias = None
    if x.sum() > 0:
        y = x * 2
    else:
        y = x
    if bias is not None:
        y = y + bias
    return y


@program()
def static_and_dynamic(self, x):
    if x.dim() == 2 and x.shape[1] == 4:
        if x.sum() > 0:
            return x.relu()
        return x.abs()
    raise ValueError("wants (N, 4)")


@program()
def pass_branch(self, x):
    y = x + 1
    if x.sum() > 0:
        pass
    else:
        y = y * 2
    return y


@program()
def augmented(self, x):
    y = x.clone()
    if x.sum() > 0:
        y += 1
    else:
        y *= 2
    return y


@program()
def in_place_method(self, x):
    y = x * 1
    if x.sum() > 0:
        y.add_(3)
    return y


@program()
def in_place_item(self, x):
    y = x * 1
    if x.sum() > 0:
        y[:, 0] = 7.0
    return y


@program()
def write_through_view(self, x):
    y = x * 1
    first = y[0]
    if x.sum() > 0:
        first.add_(1)
    else:
        first.mul_(2)
    return y, y[:1] + first


@program()
def write_through_views_of_parts(self, x):
    y = x * 1
    if x.sum() > 0:
        y[:, 1:].mul_(2)
        y.t()[0] = 5.0
    return y


@program()
def write_under_view(self, x):
    y = x * 1
    first = y[0]
    if x.sum() > 0:
        y.add_(1)
    return first + y


@program()
def list_append(self, x):
    parts = [x]
    if x.sum() > 0:
        parts.append(x * 2)
    else:
        parts.append(x - 2)
    return torch.cat(parts)


@program()
def dict_write(self, x):
    table = {"a": x}
    if x.sum() > 0:
        table["b"] = x * 2
    else:
        table["b"] = x - 2
    return table["a"] + table["b"]


@program()
def raise_guard(self, x):
    if x.abs().max() > 1e6:
        raise ValueError("too large")
    if x.sum() > 0:
        return x
    return -x


@program()
def raise_in_last_branch(self, x):
    if x.sum() > 0:
        y = x
    elif x.sum() <= 0:
        y = x * 3
    else:
        raise ValueError("not a number")
    return y


@program()
def asserts(self, x):
    assert x.abs().max() < 1e6, f"too large: {x.max()}"
    if x.sum() > 0:
        return x
    return -x


@program()
def with_block(self, x):
    with torch.no_grad():
        if x.sum() > 0:
            y = x * 2
        else:
            y = x
    return y + 1


@program()
def try_block(self, x):
    try:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x
    finally:
        z = 1
    return y + z


# Expressions


@program()
def conditional_expression(self, x):
    return x * 2 if x.sum() > 0 else x - 1


@program()
def nested_conditional_expression(self, x):
    return x * 2 if x.sum() > 100 else (x + 1 if x.sum() > 0 else -x)


@program()
def and_or_not(self, x):
    if (x.sum() > 0 and x.max() < 10) or not x.min() > -20:
        return x * 2
    return x


@program()
def chained_comparison(self, x):
    if 0 < x.sum() < 100:
        return x * 2
    return x


@program()
def mixed_and(self, x):
    if self.training is False and x.sum() > 0:
        return x * 2
    return x


@program()
def flag_kept(self, x):
    positive = bool(x.sum() > 0)
    large = bool(x.abs().max() > 10)
    y = x
    if positive:
        y = y + 1
    if large and not positive:
        y = y / 2
    return y


@program()
def any_and_all(self, x):
    if any(v > 20 for v in (x.max(), -x.min())) or all([x.sum() > 0, x.max() < 10]):
        return x * 2
    return x


@program()
def walrus(self, x):
    if (total := x.sum()) > 0:
        return x / total
    return x + total


@program()
def comprehension(self, x):
    parts = [row * 2 if row.sum() > 0 else row for row in x.unbind(0)]
    return torch.stack(parts)


@program()
def truth_of_tensor(self, x):
    if (x > 0).any():
        return x
    return x * 4


@program()
def boolean_result(self, x):
    if x.sum() > 0:
        keep = x > 0.5
    else:
        keep = x < -0.5
    return torch.where(keep, x, torch.zeros_like(x))


# Values

Pair = namedtuple("Pair", "left right")


@dataclass
class Box:
    value: torch.Tensor
    name: str = "box"
    parts: list = field(default_factory=list)


@program()
def tuple_value(self, x):
    pair = (x, x + 1) if x.sum() > 0 else (x - 1, x)
    return pair[0] * pair[1]


@program()
def named_tuple_value(self, x):
    if x.sum() > 0:
        pair = Pair(x, x + 1)
    else:
        pair = Pair(x - 1, x)
    return pair.left * pair.right


@program()
def dict_value(self, x):
    if x.sum() > 0:
        return {"a": x, "b": x + 1}
    return {"a": x * 2, "b": x - 1}


@program()
def dataclass_value(self, x):
    if x.sum() > 0:
        box = Box(x * 2)
    else:
        box = Box(x - 1)
    return box.value + 1


@program()
def list_value(self, x):
    if x.sum() > 0:
        parts = [x, x * 2]
    else:
        parts = [x * 3, x]
    return torch.cat(parts)


# Where decisions are taken


def halved(x):
    if x.abs().max() > 10:
        return x / 2
    return x


def twice(function):
    def wrapper(x):
        y = function(x)
        if y.sum() > 0:
            y = function(y)
        return y

    return wrapper


@twice
def shifted(x):
    return x - 0.2 if x.mean() > 0.1 else x


class Scaler:
    def __init__(self, limit):
        self.limit = limit

    @property
    def half(self):
        return self.limit / 2

    def __call__(self, x):
        if x.max() > self.half:
            return x / self.limit
        return x

    @staticmethod
    def clipped(x):
        return x.clamp(-1, 1) if x.abs().mean() > 5 else x


@program()
def helper_function(self, x):
    return halved(x) + 1


@program()
def decorated_helper(self, x):
    return shifted(x) + 1


@program()
class HelperObject(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaler = Scaler(40.0)

    def forward(self, x):
        return self.scaler(x) + Scaler.clipped(x)


class Base(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


@program()
class SuperCall(Base):
    def forward(self, x):
        if x.mean() > 5:
            return super().forward(x) * 2
        return super().forward(x)


@program()
class PrivateName(nn.Module):
    def __init__(self):
        super().__init__()
        self.__limit = 3.0

    def __over(self, x):
        return x.max() > self.__limit

    def forward(self, x):
        if self.__over(x):
            return x / self.__limit
        return x


@program()
class Submodules(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(Base(), nn.Linear(4, 4), Base())

    def forward(self, x):
        if x.mean() > 5:
            x = x / 10
        return self.layers(x)


@program()
def inner_function(self, x):
    limit = x.abs().mean()

    def gate(y):
        if y.sum() > 0:
            return y + limit
        return y - limit

    return gate(x) * gate(x * 2)


@program()
def mapped(self, x):
    return torch.stack(list(map(halved, (x, x * 3, -x))))


@program()
class PropertyDecision(nn.Module):
    def forward(self, x):
        self.seen = x
        return x * self.factor

    @property
    def factor(self):
        return 2.0 if self.seen.sum() > 0 else 0.5


@program()
class KeywordAndDefault(nn.Module):
    def gate(self, x, *, limit=10.0, factor=2):
        if x.max() > limit:
            return x / factor
        return x

    def forward(self, x):
        return self.gate(x) + self.gate(x, limit=0.3, factor=4)


# The branch that is not taken


@program()
def nan_untaken(self, x):
    if x.min() > 0:
        return x.log()
    return x


@program()
def division_untaken(self, x):
    total = x.clamp(min=0).sum()
    if total == 0:
        return x
    return x / total


INDICES = tuple((torch.randn(5, 4), torch.tensor(n)) for n in (2, 0, 9, 40))


@program(INDICES)
def index_untaken(self, x, n):
    if n < 5:
        return x[n] * 2
    return x[0]


@program(tuple((torch.tensor([[7, -9, 20]]), torch.tensor(n)) for n in (2, 0, -3)))
def integer_division_untaken(self, x, n):
    if n == 0:
        return x
    return torch.remainder(x, n)


@program(tuple((torch.tensor([[7, -9, 20]]), torch.tensor(n)) for n in (2, 0, -3)))
def rounded_division_untaken(self, x, n):
    if n == 0:
        return x
    y = torch.div(x, n, rounding_mode="floor") + torch.div(x, other=n, rounding_mode="trunc")
    y //= n
    return y


@program(tuple((torch.rand(size, 4) + shift,) for size, shift in ((3, 9), (1, 9), (2, 9), (3, -9), (5, -9))), "batch")
def constant_index_untaken(self, x):
    if x.sum() > 0 or x[2, 0] > 0:
        return x * 2
    return x - x[1]


@program(INDICES)
def gather_untaken(self, x, n):
    index = n.reshape(1, 1).expand(1, 4)
    return torch.gather(x, 0, index) if n < 5 else x[:1]


@program()
def second_name_of_what_is_written(self, x):
    y, z = x * 2, x
    if x.sum() > 30:
        y += 1
        z = y
    return y, z


@program()
def written_and_returned(self, x):
    y = x * 2
    if x.sum() > 30:
        y.add_(1)
        return y.t(), y
    return x.t(), y


# Loops


@program()
def loop_break(self, x):
    y = x
    for _ in range(6):
        if y.abs().sum() < 5:
            break
        y = y / 2
    return y


@program()
def loop_continue(self, x):
    total = x * 0
    for i in range(4):
        if x[:, i].sum() < 0:
            continue
        total = total + x * i
    return total


@program()
def loop_return(self, x):
    for i in range(5):
        y = x / (i + 1)
        if y.abs().max() < 10:
            return y
    return x * 0


@program()
def loop_return_and_break(self, x):
    y = x
    for i in range(5):
        y = y - i
        if y.sum() < -50:
            return y * 0 - 1
        if y.sum() < 0:
            break
    return y + 100


@program()
def while_bounded(self, x):
    n = 0
    while x.norm() < 30 and n < 6:
        x = x * 2
        n += 1
    return x, torch.full((1,), 1.0) * n


@program()
def while_break(self, x):
    n = 0
    while True:
        n = n + 1
        if x.abs().max() < 3 or n >= 7:
            break
        x = x / 2
    return x * n


@program()
def while_in_branch(self, x):
    if x.sum() > 0:
        n = 0
        while x.max() > 1 and n < 7:
            x = x / 2
            n += 1
        return x
    return x - 1


@program()
def rows_of_tensor(self, x):
    out = []
    for row in x:
        if row.sum() > 0:
            out.append(row * 2)
        else:
            out.append(row)
    return torch.stack(out)


@program()
def search_loop(self, x):
    best, where = x[0], 0
    for i in range(1, 3):
        if x[i].sum() > best.sum():
            best, where = x[i], i
    return best * (where + 1)


# Numbers out of tensors


@program()
def item_in_arithmetic(self, x):
    return x * x[0, 0].item() + float(x.mean())


@program()
def item_in_condition(self, x):
    level = x.sum().item()
    if level > 100:
        return x / level
    return x + 1


@program()
def tensor_of_tensors(self, x):
    scale = torch.tensor([x[0, 0], 2.0, x[1, 1], 1.0])
    return x * scale


@program()
def largest_of_tensors(self, x):
    return x + max(x[0, 0], x[1, 1]) - min(x.mean(), 0.5)


@program()
def listed(self, x):
    first, second = x[0, :2].tolist()
    return x * first - second


@program()
def rounded(self, x):
    return x + round(x.mean().item()) + math.floor(x.max()) + math.ceil(x.min())


# Sizes


@by_size
def size_branch(self, x):
    return x * 2 if x.shape[0] > 1 else x + 1


@by_size
def size_flag(self, x):
    batched = x.shape[0] > 1
    y = x + 1
    if batched:
        y = y - y.mean(0)
    return y if not batched else y * 3


@by_size
def size_elif(self, x):
    n = x.size(0)
    if n == 1:
        return x * 2
    elif n < 5:
        return x * 3
    return x * 4


@by_size
def size_and_value(self, x):
    if x.shape[0] > 2 and x.sum() > 0:
        return x + 1
    return x - 1


@by_size
def size_as_int(self, x):
    return x.view(int(x.shape[0]), -1) * int(x.shape[0])


@by_size
def size_minimum(self, x):
    return x * min(x.shape[0], 4) + max(1, x.shape[0] - 2)


@by_size
def size_number(self, x):
    scale = 1.0 / math.sqrt(x.shape[0])
    return x * scale


@by_size
def length(self, x):
    return x / len(x)


@by_size
def size_pad(self, x):
    n = x.shape[0]
    if n % 2 == 0:
        x = x * 2
    return F.pad(x, (0, 0, 0, 1))


@by_size
def size_index(self, x):
    if x.shape[0] > 2:
        return x + x[2]
    return x + x[0]


@by_size
def size_range(self, x):
    steps = torch.arange(int(x.shape[0]), dtype=x.dtype)
    return x * steps[:, None]


@by_size
def size_slice(self, x):
    half = int(math.ceil(x.shape[0] / 2))
    return x[:half] * 2


# Branches of different shapes become an ONNX If


@program()
def shapes_differ(self, x):
    if x.sum() > 0:
        y = x[:2] * 2
    else:
        y = x - 1
    return y + 1


@program()
class ShapesDifferThroughLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 2), nn.Linear(4, 5)

    def forward(self, x):
        return self.a(x) if x.sum() > 0 else self.b(x)


@by_size
def pad_to_even(self, x):
    if x.shape[0] % 2 != 0:
        x = F.pad(x, (0, 0, 0, 1))
    return x.reshape(-1, 2, 4).sum(1)


@by_size
def pad_a_transposed_tensor(self, x):
    x = x.t()
    if x.shape[1] % 2 != 0:
        x = F.pad(x, (0, 1))
    return x.reshape(4, -1, 2).sum(-1)


@by_size
def shapes_agree_at_the_traced_size(self, x):
    if x.sum() > 0:
        y = x[:3] * 2
    else:
        y = x * 1
    return y.sum(0)


# Names that a branch deletes


@program()
def temporary_deleted(self, x):
    if x.sum() > 0:
        doubled = x * 2
        x = doubled + 1
        del doubled
    return x


@program()
def deleted_in_one_branch(self, x):
    y, z = x * 2, x * 3
    if x.sum() > 0:
        z = y + x
        del y
    else:
        z = z + y
        del (y, x)
    return z


@program()
def deleted_and_bound_again(self, x):
    y = x * 2
    if x.sum() > 0:
        del y
        y = x * 3
    else:
        y = y + 1
        z = y
        del z
    return y


@program()
def deleted_before_a_return(self, x):
    y = x.abs()
    if x.sum() > 0:
        total = y.sum()
        del y
        return total
    del x
    return y.mean()


# Tensors that a branch writes into


@program()
def write_through_contiguous(self, x):
    y = x * 1
    if x.sum() > 0:
        y.contiguous().add_(1)
    return y


@program()
def write_into_a_product(self, x):
    y = x.abs()
    if x.sum() > 0:
        z = torch.einsum("ij,kj->ik", x, x)
        z[:, 0] = 0
        y = y + z.transpose(0, 1).sum()
    return y


@program()
def write_into_a_transposed_product(self, x):
    y = x.abs()
    if x.sum() > 0:
        z = torch.einsum("ij,kl->ijk", x, x).transpose(0, 2)
        z[0] = 5
        y = y * z.sum()
    return y


# Values from outside that a branch of an If decides on


@program()
def flag_in_an_if(self, x):
    is_large = x.max() > 10
    if x.sum() > 0:
        y = x[:2]
        if is_large:
            y = y * 2
    else:
        y = x
    return y


@program()
def number_in_an_if(self, x):
    largest = float(x.max())
    return x[:2] * int(largest) if x.sum() > 0 else x


LENGTHS = tuple((torch.randn(n, 4),) for n in (1, 2, 3, 4, 5, 7, 12, 23, 40))
FEW = [1, 4, 5, 9, 12, 15, 16, 18, 22, 23, 31]


@program(LENGTHS, dynamic="batch")
def in_a_long_range(self, x):
    n = x.shape[0]
    if n in range(3, 100_000):
        x = x * 2
    if n not in range(22, -1, -3):
        x = x + 1
    return x - 1 if n in range(4, 4) else x


@program(LENGTHS, dynamic="batch")
def in_a_list_of_numbers(self, x):
    n = x.shape[0]
    if n in FEW and n + 1 not in set(FEW):
        x = x * 3
    return -x if n in dict.fromkeys(FEW) else x


@program(tuple((torch.tensor(values),) for values in ([7.0, 2.0], [7.5, 2.0], [-3.0, 0.5], [40.0, 6.0], [12.0, 1e9])))
def value_in_a_range(self, x):
    most = x.max().item()
    if most in range(0, 50, 2) or most in range(7, 8):
        x = x * 2
    return x + 1 if int(x.min()) in range(-5, 3) else x


BYTES = tuple(
    (torch.tensor(values, dtype=torch.uint8),) for values in ([0, 9], [3, 250], [200, 201], [44, 88], [7, 255])
)


@program(BYTES)
def byte_in_a_range(self, x):
    """Whole numbers of few bits: neither ``value - start`` nor the bounds fit into eight."""
    most, least = x.max().item(), x.min().item()
    y = x.float()
    if most in range(300, 0, -50) or least in range(0, 70_000, 44):
        y = y * 2
    return y + 1 if least in [0, 200, *range(1000, 1010)] else y


NEAR_2_24 = tuple((torch.tensor([value]),) for value in (2.0**24, 2.0**24 - 1, 2.0**24 + 2, 0.5, 3.0))


@program(NEAR_2_24)
def large_value_in_a_list(self, x):
    """Of these whole numbers some are no float32."""
    return x / 2 if x.item() in [2**24 + 1, 2**24 + 3, 3, *range(10, 20)] else x + 1


TENTHS = tuple((torch.tensor(values),) for values in ([0.3, 0.2], [0.1, 0.05], [0.7, 0.0], [3.0, 0.1], [0.05, 0.0]))


@program(TENTHS)
def fraction_is_no_float32(self, x):
    """Python compares float32's 0.1 with float64's, which is a little less."""
    y = x * 2 if x.max().item() > 0.1 else x - 1
    y = y * 3 if x.min().item() == 0.1 else y + 1
    return y / 7 if float(x.max()) >= 0.7 else y


@program(TENTHS)
def fraction_in_a_tuple(self, x):
    return x * 2 if x.max().item() in (0.1, 0.7, 3) else x - 1


@program(TENTHS)
def fraction_of_a_tensor(self, x):
    """torch compares a tensor with the nearest float32."""
    return x * 2 if x.max() > 0.1 else x - 1


@program(tuple((x.half(),) for (x,) in TENTHS))
def half_number_in_arithmetic(self, x):
    most = x.max().item()
    return x * 2 if most * 100_000 > 70_000 or most == 0.1 else x - 1


# Sizes that values decide, which are equal at the example by chance


@program(samples=((MINUS,), (PLUS,), (BIG,)))
def cut_where_too_many(self, x):
    found = x.flatten()[x.flatten() > 0]
    if len(found) > 4:
        found = found[:4]
    return found, found.sum()


@program(samples=((MINUS,), (PLUS,), (BIG,)))
def cut_in_a_branch(self, x):
    found = x.flatten()[x.flatten() > 0]
    if len(found) == 0:
        return found, x[0]
    if len(found) > 4:
        found = found[:4]
    return found * 2, x[1]


@program(samples=((MINUS,), (PLUS,), (BIG,)))
def written_at_places_that_values_decide(self, x):
    made = torch.zeros(12)
    places = (x.flatten() > 0).nonzero().squeeze(1)
    if len(places) > 4:
        made[places] = 1.0
    return made


# match: patterns compare inside of Python, where nothing is heard


@program(samples=SIZES, dynamic={"x": {0: "n"}})
def match_of_a_size(self, x):
    match x.shape[0]:
        case 5:
            return x
        case n if n < 3:
            return x * n
        case _:
            return x * 3


@program()
def match_of_a_value(self, x):
    match x.max().item():
        case most if most > 10:
            y = x / most
        case most if most > 0:
            y = x * most
        case _:
            y = x - 1
    return y


@program()
def match_of_an_integer(self, x):
    match int(x[0, 0]):
        case 0 | 1:
            return x * 2
        case int(whole) if whole < 0:
            return x - whole
        case whole:
            return x + whole


@program(samples=SIZES, dynamic={"x": {0: "n"}})
def match_of_a_shape(self, x):
    match x.shape:
        case (n, 4) if n > 4:
            y = x.sum(1) + n
        case (1, width):
            y = x.sum(1) - width
        case (_, width):
            y = x.mean(1) * width
    return y


@program()
def match_of_two_decisions(self, x):
    match (x.abs().max() > 1, bool(x.sum() > 0)):
        case (True, True):
            return x * 2
        case (True, False):
            return x * 3
        case (False, True):
            return x * 5
        case _:
            return x * 7
