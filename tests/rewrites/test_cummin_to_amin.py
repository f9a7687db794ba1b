import torch
from suites.cumulative_extremes import CumulativeExtremeTests


class TestCummin(CumulativeExtremeTests):
    name = "cummin_to_amin"
    extreme = staticmethod(torch.cummin)
