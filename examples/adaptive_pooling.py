"""A pool whose windows depend on the image's size, exported for every size at once."""

import torch
from torch import nn

from torch_onnx_compat import export_compat


class Grid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.pool = nn.AdaptiveAvgPool2d((3, 5))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.pool(self.conv(image).relu())


def main() -> None:
    torch.manual_seed(0)
    image = torch.rand(1, 3, 32, 40)
    dynamic = {"image": {0: "batch", 2: "height", 3: "width"}}
    print(export_compat(Grid().eval(), (image,), "grid.onnx", dynamic=dynamic))


if __name__ == "__main__":
    main()
