"""Where an engine wants QuantizeLinear and DequantizeLinear, and of which types: part of its profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

N_BITS, DEQUANTIZE = "MatMulNBits", "DequantizeLinear"

KERNELS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

BETWEEN = """
Add AveragePool Clip Concat Flatten GlobalAveragePool LeakyRelu MaxPool Mul Relu Reshape Resize Sigmoid Slice Split
Squeeze Transpose Unsqueeze
"""


@dataclass(frozen=True)
class Placement:
    """The quantized form that an engine runs in eight bits.

    Args:
        kernels: Operators that are worth eight bits by themselves.
        between: Operators that are quantized only where all that they read is in eight bits anyway.
        float_results: Operators whose results stay in float32: what reads them quantizes them, where it wants to.
        activations: ``uint8`` or ``int8``.
        symmetric: Whether the zero points of activations are in the middle.
        per_channel: Whether each channel of a weight has a scale of its own.
        weight_bits: 8, or 7 for processors that add products up in sixteen bits.
        int32_bias: Whether biases are in int32; else they stay in float32.
        pair_per_reader: Whether each reader of a tensor has a pair of its own.
        dynamic: Operators that it has in eight bits with ranges found at run time.
        weight_only: The form of matrix products whose weights alone have few bits: ``MatMulNBits`` of com.microsoft, or
            ``DequantizeLinear`` in blocks before MatMul.
        weight_only_bits: How few bits these may have.
        source: Where it was measured or can be read.
    """

    kernels: tuple[str, ...] = KERNELS
    between: tuple[str, ...] = tuple(BETWEEN.split())
    float_results: tuple[str, ...] = ()
    activations: str = "uint8"
    symmetric: bool = False
    per_channel: bool = True
    weight_bits: int = 8
    int32_bias: bool = True
    pair_per_reader: bool = False
    dynamic: tuple[str, ...] = ()
    weight_only: str = N_BITS
    weight_only_bits: tuple[int, ...] = ()
    source: str = ""

    @classmethod
    def from_toml(cls, data: Mapping[str, Any]) -> Placement:
        """The table ``[quantization]`` of a profile.

        Raises:
            TypeError: A key is unknown, or its value of another kind.
        """
        defaults = {field.name: getattr(cls(), field.name) for field in fields(cls)}
        for key, value in data.items():
            kind = list if isinstance(defaults.get(key), tuple) else type(defaults.get(key))
            if key not in defaults or type(value) is not kind:
                raise TypeError(f"'quantization.{key}'")
        if data.get("activations", "uint8") not in ("uint8", "int8") or data.get("weight_bits", 8) not in (7, 8):
            raise TypeError("'quantization.activations' or 'quantization.weight_bits'")
        if data.get("weight_only", N_BITS) not in (N_BITS, DEQUANTIZE):
            raise TypeError("'quantization.weight_only'")
        told: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items()}
        return cls(**told)

    def to_toml(self) -> dict[str, Any]:
        """What differs from the defaults."""
        default = Placement()
        told = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: list(v) if isinstance(v, tuple) else v for k, v in told.items() if v != getattr(default, k)}
