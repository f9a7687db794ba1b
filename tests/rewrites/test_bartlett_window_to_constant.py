import torch
from suites.windows import WindowTests


class TestBartlettWindow(WindowTests):
    name = "bartlett_window_to_constant"
    window = staticmethod(torch.bartlett_window)
