import torch
from suites.quantiles import QuantileTests


class TestNanquantile(QuantileTests):
    name = "nanquantile_to_topk"
    quantile = staticmethod(torch.nanquantile)
