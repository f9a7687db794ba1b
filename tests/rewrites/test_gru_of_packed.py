import torch
from suites.packed import PackedTests
from torch import nn


class TestOfGRU(PackedTests):
    name = "gru_of_packed"
    kind = "GRU"
    function = torch.gru
    node = "GRU"

    @staticmethod
    def layer(**options):
        return nn.GRU(3, 4, batch_first=True, **options)
