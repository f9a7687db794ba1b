"""The function of C++ behind torch.nn.utils.rnn.pad_sequence, of which a function mode hears."""

from __future__ import annotations

from typing import Any

import torch


def pad_sequence() -> Any:
    """What torch.nn.utils.rnn.pad_sequence calls with its sequences, batch_first, padding_value and padding_side."""
    return torch._C._nn.pad_sequence
