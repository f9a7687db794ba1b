import torch
from suites.windows import WindowTests


class TestHammingWindow(WindowTests):
    name = "hamming_window_to_constant"
    window = staticmethod(torch.hamming_window)
    parameters = ((0.5,), (0.6, 0.3))
