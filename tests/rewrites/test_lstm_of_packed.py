import torch
from suites.packed import PackedTests
from torch import nn


class TestOfLSTM(PackedTests):
    name = "lstm_of_packed"
    kind = "LSTM"
    function = torch.lstm
    node = "LSTM"

    @staticmethod
    def layer(**options):
        return nn.LSTM(3, 4, batch_first=True, **options)
