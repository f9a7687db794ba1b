import torch
from suites.quantiles import QuantileTests


class TestQuantile(QuantileTests):
    name = "quantile_to_topk"
    quantile = staticmethod(torch.quantile)
