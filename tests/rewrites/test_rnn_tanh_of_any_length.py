import torch
from suites.any_length import AnyLengthTests


class TestTanh(AnyLengthTests):
    name = "rnn_tanh_of_any_length"
    nonlinearity = "tanh"
    function = torch.rnn_tanh
