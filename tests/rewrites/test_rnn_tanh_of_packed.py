import torch
from suites.packed import PackedTests
from torch import nn


class TestOfTanh(PackedTests):
    name = "rnn_tanh_of_packed"
    kind = "Tanh"
    function = torch.rnn_tanh
    node = "RNN"

    @staticmethod
    def layer(**options):
        return nn.RNN(3, 4, batch_first=True, **options)
