"""Where models come from: specs such as ``torchvision:raft_small``, and the zoos behind them."""

from torch_onnx_compat.zoo.sample import Sample
from torch_onnx_compat.zoo.spec import Zoo, family, find, load, zoos

__all__ = ["Sample", "Zoo", "family", "find", "load", "zoos"]
