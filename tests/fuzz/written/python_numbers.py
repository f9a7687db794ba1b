"""Numbers that values decide, in Python's own arithmetic: float64 and whole numbers of any size."""

import math

from torch import nn

from fuzz.written.program import collector

PROGRAMS, program = collector()


@program(x="tenth 4")
class DifferenceOfItems(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() - x.min().item() == 0.1 else x + 1


@program(x="tenth 4")
class RoundedItem(nn.Module):
    def forward(self, x):
        return x * 2 if round(x.max().item()) == 2 else x + 1


@program(x="tenth 4")
class RoundedToTenths(nn.Module):
    def forward(self, x):
        return x * 2 if round(x.max().item(), 1) == 0.3 else x + 1


@program(x="tenth 4")
class DivisorFromValues(nn.Module):
    def forward(self, x):
        return x / int(x.max().clamp(1, 50))


@program(x="tenth 4")
class FlooredItem(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() // 1 == 2 else x + 1


@program(x="tenth 4")
class ModuloOfAFraction(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() % 0.1 < 0.05 else x + 1


@program(x="tenth 4")
class IsClose(nn.Module):
    def forward(self, x):
        return x * 2 if math.isclose(x.max().item(), 0.1) else x + 1


@program(x="tenth 4")
class IsCloseWithTolerance(nn.Module):
    def forward(self, x):
        return x * 2 if math.isclose(x.max().item(), 0.1, rel_tol=1e-07) else x + 1


@program(x="tenth 4")
class TenTimesATenth(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() * 10 == 1 else x + 1


@program(x="tenth 4")
class DivmodOfValues(nn.Module):
    def forward(self, x):
        q, r = divmod(int(x.sum().clamp(-99, 99)), 3)
        return x * q + r


@program(x="tenth 4")
class IntOfSmallest(nn.Module):
    def forward(self, x):
        return x * 2 if int(x.min().item()) == 0 else x + 1


@program(x="tenth 4")
class TruncatedSmallest(nn.Module):
    def forward(self, x):
        return x * 2 if math.trunc(x.min().item()) < 0 else x + 1


@program(x="tenth 4")
class BoolOfItem(nn.Module):
    def forward(self, x):
        return x * 2 if bool(x.max().item()) else x + 1


@program(x="tenth 4")
class ItemOrDefault(nn.Module):
    def forward(self, x):
        return x + (x.max().item() or 5.0)


@program(x="tenth 4")
class ItemAndSeven(nn.Module):
    def forward(self, x):
        return x + (x.min().item() and 7)


@program(x="tenth 4")
class BetweenTenths(nn.Module):
    def forward(self, x):
        return x * 2 if -0.1 <= x.min().item() <= 0.1 else x + 1


@program(x="tenth 4")
class ItemInSet(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() in {0.1, 0.3, 7} else x + 1


@program(x="tenth 4")
class FirstOfList(nn.Module):
    def forward(self, x):
        return x * 2 if x.tolist()[0] > 0.1 else x + 1


@program(x="tenth 4")
class SortedList(nn.Module):
    def forward(self, x):
        return x * 2 if sorted(x.tolist())[0] == 0.1 else x + 1


@program(x="tenth 4")
class LargestOfList(nn.Module):
    def forward(self, x):
        return x * 2 if max(x.tolist()) == 0.1 else x + 1


@program(x="tenth 4")
class LargestIsABound(nn.Module):
    def forward(self, x):
        return x * 2 if max(x.max().item(), 0.1) == 0.1 else x + 1


@program(x="tenth 4")
class SmallestIsABound(nn.Module):
    def forward(self, x):
        return x * 2 if min(x.min().item(), 0.1) >= 0.1 else x + 1


@program(x="tenth 4")
class AbsoluteItem(nn.Module):
    def forward(self, x):
        return x * 2 if abs(x.min().item()) == 0.1 else x + 1


@program(x="tenth 4")
class SumOfList(nn.Module):
    def forward(self, x):
        return x * 2 if sum(x.tolist()) > 0.5 else x + 1


@program(x="tenth 4")
class ItemIsNotNone(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() is not None and x.max().item() > 0.7 else x + 1


@program(x="tenth 4")
class ThresholdInAName(nn.Module):
    def forward(self, x):
        t = 0.1
        return x * 2 if t < x.max().item() else x + 1


@program(x="tenth 4")
class CountsTenths(nn.Module):
    def forward(self, x):
        n = 0
        while n * 0.1 < x.max().clamp(0, 2).item():
            n += 1
        return x + n


@program(x="tenth 4")
class CountsAbove(nn.Module):
    def forward(self, x):
        for v in x.tolist():
            if v > 0.1:
                x = x + 1
        return x


@program(x="tenth 4")
class AnyEqual(nn.Module):
    def forward(self, x):
        return x * 2 if any(v == 0.1 for v in x.tolist()) else x + 1


@program(x="tenth 4")
class MatchOfInt(nn.Module):
    def forward(self, x):
        match int(x.max().clamp(-9, 9)):
            case 0:
                return x
            case 2 | 3:
                return x * 2
            case _:
                return x - 1


@program(x="uint8 4")
class ByteDifference(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() - x.min().item() * 2 < 0 else x.float() + 1


@program(x="uint8 4")
class ByteAboveMinusOne(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() > -1 else x.float() + 1


@program(x="uint8 4")
class BytePlusHundred(nn.Module):
    def forward(self, x):
        return x.float() + (x.max().item() + 100)


@program(x="uint8 4")
class ByteProduct(nn.Module):
    def forward(self, x):
        return x.float() + x.max().item() * x.min().item()


@program(x="uint8 4")
class ByteDivisor(nn.Module):
    def forward(self, x):
        return x.float() / (x.max().item() + 1)


@program(x="uint8 4")
class ByteSum(nn.Module):
    def forward(self, x):
        return x.float() - int(x.sum()) // 3


@program(x="uint8 4")
class ByteMean(nn.Module):
    def forward(self, x):
        return x + 1 if x.float().mean().item() > 100.1 else x


@program(x="uint8 4")
class NegatedByte(nn.Module):
    def forward(self, x):
        return x.float() * -x.min().item()


@program(x="uint8 4")
class InvertedByte(nn.Module):
    def forward(self, x):
        return x.float() + ~x.min().item()


@program(x="int32 4")
class IntTimesFour(nn.Module):
    def forward(self, x):
        return x.float() + x.max().item() * 4


@program(x="int32 4")
class IntPlusOne(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() + 1 > 0 else x.float()


@program(x="int32 4")
class FlooredInt(nn.Module):
    def forward(self, x):
        return x // 2 if x.min().item() // 2 == -3 else x


@program(x="int32 4")
class IntModulo(nn.Module):
    def forward(self, x):
        return x.float() + x.max().item() % 5 - (x.min().item() % -5 if x.min().item() else 0)


@program(x="int32 4")
class IntHalf(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() / 2 > 1.5 else x.float()


@program(x="int32 4")
class IntIsLargest(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() == 2**31 - 1 else x.float()


@program(x="int32 4")
class IntBelowFloat(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() < 10000000000.0 else x.float()


@program(x="int32 4")
class OddInt(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() & 1 == 1 else x.float()


@program(x="int32 4")
class IntSquared(nn.Module):
    def forward(self, x):
        return x.float() * 2 if x.max().item() ** 2 > 10**9 else x.float()


@program(x="tenth_half 4")
class HalfIsATenth(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() == 0.1 else x + 1


@program(x="tenth_half 4")
class HalfOverflows(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() * 1000 > 66000 else x + 1


@program(x="tenth_half 4")
class HalfByThree(nn.Module):
    def forward(self, x):
        return x + x.max().item() / 3


@program(x="tenth_half 4")
class HalfSquared(nn.Module):
    def forward(self, x):
        return x.float() + x.max().item() * x.max().item()


@program(x="tenth 4")
class ProductsOfTenths(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() * 0.1 >= 0.3 * 0.1 else x + 1


@program(x="tenth 4")
class SumsOfTenths(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() + 0.2 == 0.3 + 0.2 else x + 1


@program(x="tenth 4")
class InverseBelow(nn.Module):
    def forward(self, x):
        return x * 2 if 1 / (x.max().item() + 1e-09) < 10 else x + 1


@program(x="tenth 4")
class TenthsAsInt(nn.Module):
    def forward(self, x):
        return x * 2 if int(x.max().clamp(-100, 100).item() * 10) == 3 else x + 1


@program(x="tenth 4")
class FloorOfQuotient(nn.Module):
    def forward(self, x):
        return x * 2 if math.floor(x.max().clamp(-100, 100).item() / 0.1) == 1 else x + 1


@program(x="tenth 4")
class SquareAbove(nn.Module):
    def forward(self, x):
        return x * 2 if x.max().item() ** 2 > 0.1**2 else x + 1


@program(x="tenth 4")
class RangeAgainstHalf(nn.Module):
    def forward(self, x):
        a = x.max().item()
        b = x.min().item()
        return x * 2 if (a - b) * 0.1 <= abs(b) / 2 else x + 1


@program(x="tenth 4")
class RootAbove(nn.Module):
    def forward(self, x):
        return x * 2 if math.sqrt(abs(x.max().item())) > 0.7**0.5 else x + 1


@program(x="tenth 4")
class AugmentedItem(nn.Module):
    def forward(self, x):
        a = x.max().item()
        a *= 0.1
        a -= 0.01
        return x * 2 if a > 0 else x + 1
