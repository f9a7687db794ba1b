import torch
from suites.any_length import AnyLengthTests


class TestRelu(AnyLengthTests):
    name = "rnn_relu_of_any_length"
    nonlinearity = "relu"
    function = torch.rnn_relu
