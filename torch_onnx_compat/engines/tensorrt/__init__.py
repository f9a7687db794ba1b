"""TensorRT's parsed networks: read, run in torch, compared with the model that the file was made from."""

from torch_onnx_compat.engines.tensorrt.layers import NetworkFault, NotKnown
from torch_onnx_compat.engines.tensorrt.network import Layer, Network, Value, read_network
from torch_onnx_compat.engines.tensorrt.twin import run_network, unknown_kinds

__all__ = ["Layer", "Network", "NetworkFault", "NotKnown", "Value", "read_network", "run_network", "unknown_kinds"]
