"""Python's // of sizes, as torch.export records it -> Div, and a step down where that rounded up.

Math:   q = a / b is truncated, so one too much where a - q * b and b differ in sign: -(-n // 4), n / 4 rounded up, is
        n // 4 in a stock file.
Schema: floordiv(int a, int b) -> int
Source: https://onnx.ai/onnx/operators/onnx__Div.html
"""

import torch

from torch_onnx_compat import Exactness, Ops, Value, symbolic


@symbolic("_operator::floordiv", needed_on=("dynamo",), exactness=Exactness.BITWISE)
def floordiv(op: Ops, a: Value, b: Value) -> Value:
    """Quotient of two int64, rounded down; where neither is negative the single Div stays."""
    if op.is_size(a) and op.is_size(b):
        return NotImplemented
    dividend, divisor = op.cast(a, torch.int64), op.cast(b, torch.int64)
    quotient = op.Div(dividend, divisor)
    rest = op.Sub(dividend, op.Mul(quotient, divisor))
    differ = op.Less(op.Mul(rest, op.Sign(divisor)), op.constant(0, torch.int64))
    return op.Sub(quotient, op.Cast(differ, to=7))
