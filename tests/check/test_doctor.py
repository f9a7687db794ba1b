"""Models with a known problem are found before the export; healthy ones are left in peace."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from torch_onnx_compat import CompatError, zoo
from torch_onnx_compat.doctor.doctor import doctor

IMAGE = torch.linspace(-1, 1, 2 * 3 * 8 * 8).reshape(2, 3, 8, 8)


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        self.seen += 1
        return x * self.seen


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.one = nn.Linear(8, 8)
        self.other = nn.Linear(8, 8)
        self.other.weight = self.one.weight

    def forward(self, x):
        return self.other(self.one(x))


class Large(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1).expand(600_000_000), requires_grad=False)

    def forward(self, x):
        return x * self.weight[:1]


def loop(x):
    while x.norm() < 10:
        x = x * 2
    return x


def poisoned():
    model = nn.Linear(8, 8)
    with torch.no_grad():
        model.weight[0, 0] = float("nan")
    return model


def mixed():
    return nn.Sequential(nn.Linear(8, 8), nn.Sequential(nn.Identity(), nn.Identity()), Buffered())


class Buffered(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(8, dtype=torch.float64))

    def forward(self, x):
        return x * self.table.float()


torch.library.define("torch_onnx_compat_doctor::twice", "(Tensor x) -> Tensor")
torch.library.impl("torch_onnx_compat_doctor::twice", "CPU", lambda x: x * 2)


@torch.library.custom_op("torch_onnx_compat_doctor::thrice", mutates_args=())
def thrice(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@thrice.register_fake
def _(x):
    return torch.empty_like(x)


PROBLEMS = {
    "train mode": (nn.Dropout(), {}, "warning", "train mode"),
    "meta device": (nn.Linear(8, 8, device="meta"), {}, "error", "meta device"),
    "lazy": (nn.LazyLinear(8), {}, "error", "lazy module"),
    "nan": (poisoned(), {}, "error", "NaN"),
    "mixed types": (mixed(), {}, "warning", "several types"),
    "double": (nn.Linear(8, 8).double(), {"args": IMAGE.double()}, "warning", "double precision"),
    "too large": (Large(), {}, "info", "GB of weights"),
    "tied": (Tied(), {}, "info", "same parameter"),
    "if": (Call(lambda x: x if x.sum() > 0 else -x), {}, "warning", "bool()"),
    "while": (Call(loop), {}, "warning", "bool()"),
    "item": (Call(lambda x: x * x[0, 0, 0, 0].item()), {}, "warning", "item()"),
    "int": (Call(lambda x: x * int(x.sum())), {}, "warning", "int()"),
    "float": (Call(lambda x: x * float(x.sum())), {}, "warning", "float()"),
    "tolist": (Call(lambda x: x * x[0, 0, 0].tolist()[0]), {}, "error", "tolist()"),
    "numpy": (Call(lambda x: x + torch.from_numpy(x.numpy())), {}, "error", "numpy()"),
    "numpy, remedy": (
        Call(lambda x: x * torch.from_numpy(x.numpy())),
        {},
        "error",
        "compute with torch what is made of them",
    ),
    "airy": (Call(torch.special.airy_ai), {}, "error", "airy_ai"),
    "bessel": (Call(torch.special.bessel_j0), {}, "error", "bessel_j0"),
    "modified bessel": (Call(torch.special.modified_bessel_k1), {}, "error", "modified_bessel_k1"),
    "zeta": (Call(lambda x: torch.special.zeta(x.abs() + 2, x.abs() + 1)), {}, "error", "zeta"),
    "gamma": (Call(lambda x: torch.igamma(x.abs() + 1, x.abs())), {}, "error", "igamma"),
    "polygamma": (Call(lambda x: torch.polygamma(2, x.abs() + 1)), {}, "error", "polygamma"),
    "schur": (Call(lambda x: torch.linalg.eigvals(x).abs()), {}, "error", "eigvals"),
    "custom operator": (
        Call(lambda x: torch.ops.torch_onnx_compat_doctor.twice(x)),
        {},
        "error",
        "torch_onnx_compat_doctor::twice",
    ),
    "counter": (Counter(), {}, "warning", "its next call depends on that"),
    "random": (Call(lambda x: x + torch.randn_like(x)), {}, "error", "two results"),
    "text output": (Call(lambda x: {"x": x, "kind": "cat"}), {}, "warning", "not a tensor"),
    "no output": (Call(lambda x: None), {}, "error", "no tensor"),
    "fails": (Call(lambda x: x @ torch.ones(5, 5)), {}, "error", "fails on the example"),
    "nan output": (Call(lambda x: x.sqrt()), {}, "warning", "NaN on the example"),
    "complex output": (Call(lambda x: torch.fft.rfft(x)), {}, "warning", "complex"),
    "fixed size": (
        Call(lambda x: x.reshape(2, -1) + torch.ones(192)),
        {"dynamic": {"x": {2: "height"}}},
        "error",
        "takes no size but",
    ),
    "baked size": (
        Call(lambda x: x.view(int(x.shape[0]), -1)),
        {"dynamic": "batch"},
        "warning",
        "a size that is to vary",
    ),
    "decision on a size": (
        Call(lambda x: x * 2 if x.shape[0] > 5 else x),
        {"dynamic": "batch"},
        "warning",
        "a size that is to vary",
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_found(name):
    model, options, severity, text = PROBLEMS[name]
    if name != "train mode":
        model.eval()
    args = options.pop("args", IMAGE) if "args" in options else IMAGE
    found = doctor(model, args, **options)
    assert any(f.severity == severity and text in str(f) for f in found.findings), str(found)
    assert found.ok == all(f.severity != "error" for f in found.findings)


HEALTHY = [
    "torchvision:resnet18",
    "torchvision:mobilenet_v3_small",
    "torchvision:shufflenet_v2_x0_5",
    "torchvision:squeezenet1_1",
    "torchvision:efficientnet_b0",
    "torchvision:regnet_y_400mf",
    "torchvision:lraspp_mobilenet_v3_large",
    "torchvision:swin_t",
]


@pytest.mark.parametrize("spec", HEALTHY)
def test_a_healthy_model_is_left_in_peace(spec):
    sample = zoo.load(spec, (64, 64))
    found = doctor(sample.model, sample.args, kwargs=sample.kwargs)
    assert found.healthy, str(found)


def test_an_operator_of_python_is_no_problem():
    found = doctor(Call(lambda x: torch.ops.torch_onnx_compat_doctor.thrice(x)).eval(), IMAGE)
    assert found.healthy, str(found)


TORCHVISION = """
    alexnet vgg11 densenet121 googlenet inception_v3 mnasnet0_5 mobilenet_v2 regnet_x_400mf resnext50_32x4d
    wide_resnet50_2 convnext_tiny efficientnet_v2_s vit_b_32 resnet34 resnet50 shufflenet_v2_x1_0 squeezenet1_0
    deeplabv3_mobilenet_v3_large fcn_resnet50 r3d_18 mc3_18 r2plus1d_18 swin_v2_t
"""
TIMM = """
    resnet10t.c3_in1k resnet18 mobilenetv3_small_050 mobilenetv4_conv_small efficientnet_lite0 ghostnet_050
    vit_tiny_patch16_224 deit_tiny_patch16_224 convnext_atto convnextv2_atto repvgg_a0 regnetx_002 rexnet_100
    mixer_s32_224 gmixer_12_224 resmlp_12_224 poolformer_s12 edgenext_xx_small levit_128s fastvit_t8
    repghostnet_050 lcnet_050 hardcorenas_a semnasnet_075 spnasnet_100 fbnetc_100 dla34 selecsls42 cspdarknet53
    darknet17 tinynet_e mnasnet_small
"""
MORE = [*(f"torchvision:{name}" for name in TORCHVISION.split()), *(f"timm:{name}" for name in TIMM.split())]


@pytest.mark.slow
@pytest.mark.parametrize("spec", MORE)
def test_more_healthy_models_are_left_in_peace(spec):
    sample = zoo.load(spec)
    found = doctor(sample.model, sample.args, kwargs=sample.kwargs)
    assert found.healthy, str(found)


def test_a_statement_and_what_to_do_are_told():
    (found,) = doctor(Call(lambda x: F.relu(x) if x.mean() > 0 else x).eval(), IMAGE).findings
    assert found.place.startswith("check/test_doctor.py:")
    assert f"allow_baked=[{found.place!r}]" in found.action


def test_wrong_names_are_refused():
    with pytest.raises(CompatError, match="unknown exporter 'dynam'"):
        doctor(nn.ReLU(), IMAGE, exporter="dynam")


class Holder:
    pass


def written_attribute(x):
    holder = Holder()
    holder.value = x
    while holder.value.sum() < 100:
        holder.value = holder.value * 2 + 1
    return holder.value


def written_name(x):
    while x.sum() < 100:
        x = x * 2 + 1
    return -x if x.mean() > 30 else x


def test_a_decision_that_the_export_refuses_is_an_error():
    found = doctor(Call(written_attribute).eval(), IMAGE)
    assert not found.ok
    assert "writes the attribute holder.value" in str(found)
    assert doctor(Call(written_name).eval(), IMAGE).ok
