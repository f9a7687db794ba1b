"""Calls of torch that fail for some values: where the model catches the error, values decide its way.

The file has no such errors. It goes on with the way that the example takes.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torch_onnx_compat.inputs import tree

_PLACES = """
gather take take_along_dim index_select index_add index_add_ index_copy index_copy_ index_fill index_fill_ index_put
index_put_ scatter scatter_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ embedding embedding_bag one_hot
bincount repeat_interleave nll_loss cross_entropy
"""
"""Functions that take places, or numbers, which may lie outside."""

_MATRICES = """
cholesky linalg_cholesky inverse linalg_inv linalg_solve linalg_eigh linalg_eigvalsh linalg_eig linalg_svd
linalg_lstsq linalg_lu_factor linalg_ldl_factor cholesky_solve
"""
"""Functions that fail for some matrices."""

_SIZES = """
max min amax amin aminmax argmax argmin median nanmedian mode view reshape unflatten topk kthvalue narrow select
stack cat concat view_as expand expand_as
"""
"""Functions that fail for some sizes of one tensor."""


_FAIL_FOR_VALUES = frozenset((_PLACES + _MATRICES).split())
_FAIL_FOR_SIZES = frozenset(_SIZES.split())


def may_fail_for_values(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether values of a call's arguments decide if it fails.

    Args:
        func: A function of torch.
        args: Its arguments.
    """
    name = getattr(func, "__name__", "")
    if name in ("__getitem__", "__setitem__"):
        places = args[1] if isinstance(args[1], (tuple, list)) else (args[1],)
        return any(isinstance(place, Tensor) and place.dtype not in (torch.bool, torch.uint8) for place in places)
    return name in _FAIL_FOR_VALUES


def may_fail_for_sizes(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether sizes of a call's arguments decide if it fails: of one tensor, or of several that have to fit.

    Args:
        func: A function of torch.
        args: Its arguments.
    """
    return getattr(func, "__name__", "") in _FAIL_FOR_SIZES or len(tree.tensors_in(args)) > 1
