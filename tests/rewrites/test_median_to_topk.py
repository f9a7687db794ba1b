import torch
from suites.medians import MedianTests


class TestMedian(MedianTests):
    name = "median_to_topk"
    median = staticmethod(torch.median)
