import torch
from suites.medians import MedianTests


class TestNanmedian(MedianTests):
    name = "nanmedian_to_topk"
    median = staticmethod(torch.nanmedian)
