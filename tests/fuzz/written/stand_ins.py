"""Programs in which the number that values decide reaches code that takes no decision of its own, and asks what it is.

In a trace a tensor stands for such a number, which is no bool, no int, and no object that `is` finds.
"""

import contextlib
import enum
import functools
import operator

import torch
from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


def double_if(flag):
    return 2.0 if flag is True else 1.0


def count_up(n):
    n += 1
    return n


@contextlib.contextmanager
def nothing():
    yield


@nothing()
def decorated(flag):
    return 2.0 if flag is True else 1.0


class Scaled:
    def __init__(self, flag):
        self.flag = flag

    @functools.cached_property
    def scale(self):
        return 2.0 if self.flag is True else 1.0


class Mode(enum.IntEnum):
    LOW = 0
    HIGH = 1


@functools.singledispatch
def weigh(n):
    return 1.0


@weigh.register
def _(n: int):
    return 3.0


@program(x="float batch=3 6")
class ThroughFunction(nn.Module):
    def forward(self, x):
        return x * double_if(bool(x.max() > 5))


@program(x="float batch=3 6")
class ThroughTwoFunctions(nn.Module):
    def outer(self, flag):
        return double_if(flag)

    def forward(self, x):
        return x * self.outer(bool(x.max() > 5))


@program(x="float batch=3 6")
class ThroughAttribute(nn.Module):
    def scale(self):
        return 2.0 if self.is_large is True else 1.0

    def forward(self, x):
        self.is_large = bool(x.max() > 5)
        return x * self.scale()


@program(x="float batch=3 6")
class ThroughResult(nn.Module):
    def is_large(self, x):
        return bool(x.max() > 5)

    def forward(self, x):
        return x * 2 if self.is_large(x) is True else x


@program(x="float batch=3 6")
class ThroughResultOfModule(nn.Module):
    def __init__(self):
        super().__init__()
        self.ask = IsLarge()

    def forward(self, x):
        answer = self.ask(x)
        return x * (2 if answer is True else 1)


class IsLarge(nn.Module):
    def forward(self, x):
        return bool(x.max() > 5)


@program(x="float batch=3 6")
class ThroughClosure(nn.Module):
    def forward(self, x):
        flag = bool(x.max() > 5)

        def scale():
            return 2.0 if flag is True else 1.0

        return x * scale()


@program(x="float batch=3 6")
class ThroughDict(nn.Module):
    def scale(self, config):
        return 2.0 if config["large"] is True else 1.0

    def forward(self, x):
        return x * self.scale({"large": bool(x.max() > 5)})


@program(x="float batch=3 6")
class ThroughPartial(nn.Module):
    def forward(self, x):
        return x * functools.partial(double_if, bool(x.max() > 5))()


@program(x="float batch=3 6")
class ThroughMap(nn.Module):
    def forward(self, x):
        return x * sum(map(double_if, [bool(x.max() > 5), bool(x.min() < -5)]))


@program(x="float batch=3 6")
class ThroughLambda(nn.Module):
    def forward(self, x):
        scale = lambda flag: 2.0 if flag is False else 1.0  # noqa: E731
        return x * scale(bool(x.max() > 5))


@program(x="float batch=3 6")
class ThroughDefault(nn.Module):
    def forward(self, x, flag=None):
        def scale(flag=bool(x.max() > 5)):  # noqa: B008
            return 2.0 if flag is True else 1.0

        return x * scale()


@program(x="float batch=3 6")
class ThroughGenerator(nn.Module):
    def factors(self, flag):
        yield 2.0 if flag is True else 1.0
        yield 3.0

    def forward(self, x):
        for factor in self.factors(bool(x.max() > 5)):
            x = x * factor
        return x


@program(x="float batch=3 6")
class ThroughProperty(nn.Module):
    @property
    def scale(self):
        return 2.0 if self._flag is True else 1.0

    def forward(self, x):
        self._flag = bool(x.max() > 5)
        return x * self.scale


@program(x="float batch=3 6")
class InPlaceInHelper(nn.Module):
    def forward(self, x):
        n = int(x.sum() > 0)
        m = count_up(n)
        return x * n + m


@program(x="float batch=3 6")
class InPlaceOnAttribute(nn.Module):
    def step(self):
        self.n += 1

    def forward(self, x):
        n = int(x.max() > 5)
        self.n = n
        self.step()
        return x * n + self.n


@program(x="float batch=3 6")
class InPlaceInList(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        counts = [n, n]
        counts[0] += 2
        return x * counts[1] + counts[0] * n


@program(x="float batch=3 6")
class MatchFlag(nn.Module):
    def scale(self, flag):
        match flag:
            case True:
                return 2.0
            case _:
                return 1.0

    def forward(self, x):
        return x * self.scale(bool(x.max() > 5))


@program(x="float batch=3 6")
class MatchType(nn.Module):
    def scale(self, n):
        match n:
            case int():
                return 2.0
            case _:
                return 1.0

    def forward(self, x):
        return x * self.scale(int(x.max() > 5))


@program(x="float batch=3 6")
class MatchNumber(nn.Module):
    def forward(self, x):
        match int(x.max() > 5):
            case 1:
                return x * 2
            case 0:
                return x * 3
        return x


@program(x="float batch=3 6")
class SingleDispatch(nn.Module):
    def forward(self, x):
        return x * weigh(int(x.max() > 5))


@program(x="float batch=3 6")
class OperatorIs(nn.Module):
    def forward(self, x):
        flag = bool(x.max() > 5)
        return x * (2.0 if operator.is_(flag, True) else 1.0)


@program(x="float batch=3 6")
class ClassOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        return x * (2.0 if n.__class__ is int else 1.0)


@program(x="float batch=3 6")
class IssubclassOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        return x * (2.0 if issubclass(type(n), int) else 1.0)


@program(x="float batch=3 6")
class EnumOfNumber(nn.Module):
    def forward(self, x):
        return x * 2 if Mode(int(x.max() > 5)) is Mode.HIGH else x


@program(x="float batch=3 6")
class HasAttributeOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        return x * (2.0 if hasattr(n, "shape") else 1.0)


@program(x="float batch=3 6")
class TryOfNumber(nn.Module):
    def forward(self, x):
        n = int(x.max() > 5)
        try:
            return x * n.shape[0]
        except AttributeError:
            return x * 3


@program(x="float batch=3 6")
class NoneOrFlag(nn.Module):
    def scale(self, flag):
        return 1.0 if flag is None else (2.0 if flag is True else 3.0)

    def forward(self, x):
        return x * self.scale(bool(x.max() > 5) if x.shape[0] > 1 else None)


@program(x="float batch=3 6")
class NamesOfTypes(nn.Module):
    def scale(self, n):
        return {"int": 2.0, "bool": 3.0}.get(type(n).__name__, 1.0)

    def forward(self, x):
        return x * self.scale(int(x.max() > 5))


@program(x="float batch=3 6")
class IsSameFlag(nn.Module):
    def forward(self, x):
        wanted = True
        flag = bool(x.max() > 5)
        return x * 2 if flag is wanted else x


@program(x="float batch=3 6")
class IsOtherFlag(nn.Module):
    def forward(self, x):
        a, b = bool(x.max() > 5), bool(x.min() < -5)
        return x * 2 if a is b else x


@program(x="float batch=3 6")
class IsInstanceOfNumbers(nn.Module):
    def forward(self, x):
        import numbers

        n = float(x.max())
        return x * (2.0 if isinstance(n, numbers.Number) else 1.0)


@program(x="float batch=3 6")
class IsTensorOfNumber(nn.Module):
    def scale(self, n):
        return 3.0 if torch.is_tensor(n) else 1.0

    def forward(self, x):
        return x * self.scale(int(x.max() > 5))


@program(x="float batch=3 6")
class DivisionOfIntegers(nn.Module):
    def share(self, n):
        return 7 // n + 7 % n + 7 / n + (-7) // n

    def forward(self, x):
        return x * self.share(2 + int(x.max() > 5))


@program(x="float batch=3 6")
class PowerOfNegative(nn.Module):
    def power(self, n):
        return 2**n + 2.0**-n

    def forward(self, x):
        return x * self.power(2 + int(x.max() > 5))


@program(x="float batch=3 6")
class TruthOfStringOfNumber(nn.Module):
    def scale(self, n):
        return 2.0 if str(n) == "1" else 1.0

    def forward(self, x):
        return x * self.scale(int(x.max() > 5))


@program(x="float batch=3 6")
class BoolArithmetic(nn.Module):
    def add(self, a, b):
        return a + b

    def forward(self, x):
        return x * self.add(bool(x.max() > 0), bool(x.min() < 0))


@program(x="float batch=3 6")
class BoolMinus(nn.Module):
    def forward(self, x):
        return x * (bool(x.max() > 0) - bool(x.min() < -5))


@program(x="float batch=3 6")
class NotOfFlag(nn.Module):
    def invert(self, flag):
        return not flag

    def forward(self, x):
        return x * 2 if self.invert(bool(x.max() > 5)) else x


@program(x="float batch=3 6")
class InvertOfInt(nn.Module):
    def invert(self, flag):
        return ~flag

    def forward(self, x):
        return x * self.invert(int(x.max() > 5))


@program(x="float batch=3 6")
class XorOfFlags(nn.Module):
    def forward(self, x):
        return x * (1 + (bool(x.max() > 5) ^ bool(x.min() < -5)))


@program(x="float batch=3 6")
class SetOfFlags(nn.Module):
    def forward(self, x):
        return x * len({bool(x.max() > 5), bool(x.min() < -5)})


@program(x="float batch=3 6")
class SortedNumbers(nn.Module):
    def forward(self, x):
        a, b = sorted([float(x.max()), float(-x.min())])
        return x * a + b


@program(x="float batch=3 6")
class CountOfFlags(nn.Module):
    def forward(self, x):
        return x * [bool(row.max() > 1) for row in x].count(True)


@program(x="float batch=3 6")
class IndexOfFlag(nn.Module):
    def forward(self, x):
        flags = [bool(v > 0) for v in x.sum(0)]
        return x * (flags.index(True) if True in flags else -1)


@program(x="float batch=3 6")
class ThroughDecorator(nn.Module):
    """contextlib's wrapper, a function of Python's own, stands between the two."""

    def forward(self, x):
        return x * decorated(bool(x.max() > 5))


@program(x="float batch=3 6")
class ThroughCachedProperty(nn.Module):
    def forward(self, x):
        return x * Scaled(bool(x.max() > 5)).scale


@program(x="float batch=3 6")
class ThroughVmap(nn.Module):
    def forward(self, x):
        flag = bool(x.max() > 5)
        return torch.vmap(lambda row: row * double_if(flag))(x)
