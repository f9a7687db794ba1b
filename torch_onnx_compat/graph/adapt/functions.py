"""Alternatives of functions that have no closed formula.

Math:   erf(x) = sign(x) * (1 - (a1 t + ... + a5 t^5) exp(-x^2)), t = 1 / (1 + p |x|), with an absolute error of 1.5e-7
        at most.
Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
"""

from __future__ import annotations

import onnx_ir as ir

from torch_onnx_compat.graph.adapt.alternatives import alternative
from torch_onnx_compat.graph.builder import Builder
from torch_onnx_compat.graph.opset.lowering import first_input

_P = 0.3275911
_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""The coefficients from a5 to a1."""


@alternative("Erf")
def error_function(op: Builder, node: ir.Node) -> ir.Value:
    """Writes an exponential times a polynomial."""
    x = first_input(node)
    magnitude = op.Abs(x)
    t = op.Reciprocal(op.Add(op.Mul(magnitude, _P), 1))
    polynomial = op.Mul(t, _COEFFICIENTS[0])
    for coefficient in _COEFFICIENTS[1:]:
        polynomial = op.Mul(op.Add(polynomial, coefficient), t)
    tail = op.Mul(polynomial, op.Exp(op.Neg(op.Mul(magnitude, magnitude))))
    return op.Mul(op.Sign(x), op.Add(op.Neg(tail), 1))
