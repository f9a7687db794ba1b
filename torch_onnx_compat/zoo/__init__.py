"""Where models come from: specs such as ``torchvision:raft_small``, and the zoos behind them."""

from typing import TYPE_CHECKING

from torch_onnx_compat.lazy import import_on_demand as _import_on_demand
from torch_onnx_compat.zoo.spec import Zoo, family, find, load, zoos

if TYPE_CHECKING:
    from torch_onnx_compat.zoo.sample import Sample as Sample

_import_on_demand(__name__, {"Sample": "torch_onnx_compat.zoo.sample"})

__all__ = ["Sample", "Zoo", "family", "find", "load", "zoos"]
