import torch
from suites.packed import PackedTests
from torch import nn


class TestOfRelu(PackedTests):
    name = "rnn_relu_of_packed"
    kind = "Relu"
    function = torch.rnn_relu
    node = "RNN"

    @staticmethod
    def layer(**options):
        return nn.RNN(3, 4, batch_first=True, nonlinearity="relu", **options)
