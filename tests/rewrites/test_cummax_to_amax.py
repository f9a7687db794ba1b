import torch
from suites.cumulative_extremes import CumulativeExtremeTests


class TestCummax(CumulativeExtremeTests):
    name = "cummax_to_amax"
    extreme = staticmethod(torch.cummax)
