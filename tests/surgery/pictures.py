"""Models that carry their own preprocessing, with traps; each with its example."""

import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F
from torchvision import transforms
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def network(channels=3, **options):
    first = nn.Conv2d(channels, 12, 3, padding=1, stride=2, **options)
    return nn.Sequential(first, nn.ReLU(), nn.Conv2d(12, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


class With(nn.Module):
    """A network behind preprocessing that is written in forward."""

    def __init__(self, prepare, body=None):
        super().__init__()
        self.prepare, self.body = prepare, body or network()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(STD).view(3, 1, 1))

    def forward(self, image):
        return self.body(self.prepare(self, image))


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.normalize, self.body = transforms.Normalize(MEAN, STD), network()

    def forward(self, left, right):
        return self.body(self.normalize(left)) - self.body(self.normalize(right))


class Joined(Pair):
    def forward(self, left, right):
        return self.body(self.normalize(torch.cat([left, right])))


class MeanAfterConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.body = nn.Conv2d(3, 3, 1), network()
        self.register_buffer("mean", torch.tensor(MEAN).view(3, 1, 1))

    def forward(self, image):
        return self.body(self.first(image) + self.mean)


class RawToo(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, image):
        return image + self.first(image * 2 - 1)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.rand(7))
        self.first = nn.Linear(7, 4)

    def forward(self, x):
        return self.first((x - self.mean) / 3)


def normalized(self, x):
    return (x - self.mean) / self.std


def in_place(self, x):
    x = x.clone()
    x.sub_(self.mean)
    return x.div_(self.std)


def in_place_by_channel(self, x):
    x = x.clone()
    for channel in range(3):
        x[:, channel] = (x[:, channel] - MEAN[channel]) / STD[channel]
    return x


def letterboxed(self, x):
    factor = min(32 / x.shape[-2], 32 / x.shape[-1])
    height, width = round(x.shape[-2] * factor), round(x.shape[-1] * factor)
    x = F.interpolate(x, (height, width), mode="bilinear", align_corners=False)
    return F.pad(x, (0, 32 - width, 0, 32 - height), value=114 / 255)


def grey(self, x):
    weights = torch.tensor([0.299, 0.587, 0.114]).view(3, 1, 1)
    return (x * weights).sum(1, keepdim=True).repeat(1, 3, 1, 1)


def focused(self, x):
    cells = [x[..., row::2, column::2] for column in (0, 1) for row in (0, 1)]
    return torch.cat(cells, 1) / 255


def floats(*shape):
    return torch.rand(*shape)


def bytes_(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def timm_model(name, **options):
    model = timm.create_model(name, **options)
    config = timm.data.resolve_data_config({}, model=model)
    return nn.Sequential(transforms.Normalize(config["mean"], config["std"]), model)


MOVED = {
    "torchvision normalize": (
        lambda: nn.Sequential(transforms.Normalize(MEAN, STD), torchvision.models.squeezenet1_1()),
        lambda: floats(1, 3, 64, 64),
        ["Sub", "Div"],
    ),
    "torchvision resize, crop, normalize": (
        lambda: nn.Sequential(
            transforms.Resize(36, antialias=False),
            transforms.CenterCrop(32),
            transforms.Normalize(MEAN, STD),
            network(),
        ),
        lambda: floats(1, 3, 40, 50),
        ["Resize", "Slice", "Sub", "Div"],
    ),
    "torchvision v2 of bytes": (
        lambda: nn.Sequential(v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD), network()),
        lambda: bytes_(1, 3, 32, 32),
        ["Cast", "Mul", "Sub", "Div"],
    ),
    "timm convolutions": (lambda: timm_model("test_resnet"), lambda: floats(1, 3, 64, 64), ["Sub", "Div"]),
    "timm vision transformer": (
        lambda: timm_model("test_vit", img_size=64),
        lambda: floats(1, 3, 64, 64),
        ["Sub", "Div"],
    ),
    "bytes, NHWC, BGR": (
        lambda: With(lambda self, x: normalized(self, x.permute(0, 3, 1, 2).float()[:, [2, 1, 0]] / 255)),
        lambda: bytes_(1, 32, 32, 3),
        ["Transpose", "Cast", "Div", "Sub"],
    ),
    "flipped": (
        lambda: With(lambda self, x: normalized(self, x.flip(1))),
        lambda: floats(1, 3, 32, 32),
        ["Slice", "Sub"],
    ),
    "one picture, HWC": (
        lambda: With(lambda self, x: normalized(self, x.permute(2, 0, 1)[None].float() / 255)),
        lambda: bytes_(32, 32, 3),
        ["Transpose", "Unsqueeze", "Cast", "Div"],
    ),
    "in place": (lambda: With(in_place), lambda: floats(1, 3, 32, 32), ["Sub", "Div"]),
    "in place by channel": (lambda: With(in_place_by_channel), lambda: floats(1, 3, 32, 32), ["Gather", "Sub", "Div"]),
    "stacked channels": (
        lambda: With(lambda self, x: torch.stack([x[:, 2], x[:, 1], x[:, 0]], 1) * 255 - 110),
        lambda: floats(1, 3, 32, 32),
        ["Gather", "Concat", "Mul", "Sub"],
    ),
    "one channel to three": (
        lambda: With(lambda self, x: normalized(self, x.expand(-1, 3, -1, -1))),
        lambda: floats(1, 1, 32, 32),
        ["Expand", "Sub", "Div"],
    ),
    "grey": (lambda: With(grey), lambda: floats(1, 3, 32, 32), ["Mul", "ReduceSum"]),
    "letterbox": (lambda: With(letterboxed), lambda: floats(1, 3, 40, 50), ["Resize", "Pad"]),
    "gamma": (
        lambda: With(lambda self, x: x.clamp(0, 1) ** 2.2 * 2 - 1),
        lambda: floats(1, 3, 32, 32),
        ["Clip", "Pow", "Mul", "Sub"],
    ),
    "numbers": (Table, lambda: floats(2, 7), ["Sub", "Div"]),
}
"""Model, example, and operators that must have been moved out of it."""

STAYS = {
    "mean after a convolution": (MeanAfterConvolution, lambda: floats(1, 3, 32, 32), "before Conv"),
    "the raw picture, too": (RawToo, lambda: floats(1, 3, 32, 32), "at several stages of preparation: Add at .* Conv"),
    "two pictures joined": (Joined, lambda: (floats(1, 3, 32, 32), floats(1, 3, 32, 32)), "before Concat"),
    "YOLO's focus": (
        lambda: With(focused, network(12)),
        lambda: floats(1, 3, 32, 32),
        "before Slice",
    ),
    "its own mean": (
        lambda: With(lambda self, x: x - x.mean((2, 3), keepdim=True)),
        lambda: floats(1, 3, 32, 32),
        "Sub",
    ),
    "a mean picture": (
        lambda: With(lambda self, x: x - torch.linspace(0, 1, 3 * 32 * 32).view(3, 32, 32)),
        lambda: floats(1, 3, 32, 32),
        "before Sub",
    ),
}
"""Model, example, and the reason why nothing was moved."""
