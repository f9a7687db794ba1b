import torch
from suites.windows import WindowTests


class TestKaiserWindow(WindowTests):
    name = "kaiser_window_to_constant"
    window = staticmethod(torch.kaiser_window)
    parameters = ((3.5,), (0.0,), (30.0,))
