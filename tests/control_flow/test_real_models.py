"""Models of timm and transformers that stock torch refuses, or writes wrong at other sizes, through TorchScript."""

import importlib
import io

import numpy as np
import onnxruntime as ort
import pytest
import torch

from torch_onnx_compat import export_compat

pytestmark = pytest.mark.slow

BATCH = {0: "batch"}
ALL = {0: "batch", 2: "height", 3: "width"}

MODELS = {
    "crossvit_tiny_240": (240, ALL, [(1, 240, 240), (2, 272, 240)]),
    "mobilevit_xxs": (128, ALL, [(1, 128, 128), (2, 160, 160), (3, 135, 141)]),
    "csatv2": (256, BATCH, [(1, 256, 256), (3, 256, 256)]),
    "halonet_h1": (256, BATCH, [(1, 256, 256), (3, 256, 256)]),
    "eva02_tiny_patch14_224": (224, BATCH, [(1, 224, 224), (3, 224, 224)]),
    "FocalNetModel": (32, ALL, [(1, 32, 32), (3, 35, 34), (2, 40, 33)]),
    "SwinPatchEmbeddings": (32, ALL, [(1, 32, 32), (3, 35, 34), (2, 40, 33)]),
    "Swinv2PatchEmbeddings": (32, ALL, [(1, 32, 32), (3, 35, 34), (2, 40, 33)]),
    "DonutSwinPatchEmbeddings": (32, ALL, [(1, 32, 32), (3, 35, 34), (2, 40, 33)]),
}

PATCHES = {"image_size": 32, "patch_size": 4, "embed_dim": 8}


class FirstOutput(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)[0]


def made(name):
    torch.manual_seed(0)
    if name[0].islower():
        return pytest.importorskip("timm").create_model(name, pretrained=False).eval()
    hub = pytest.importorskip("transformers")
    if name == "FocalNetModel":
        levels = {"focal_levels": [2, 2], "focal_windows": [3, 3], "hidden_sizes": [8, 16]}
        return FirstOutput(hub.FocalNetModel(hub.FocalNetConfig(**PATCHES, depths=[1, 1], **levels))).eval()
    family = name.removesuffix("PatchEmbeddings")
    path = {"Swin": "swin", "Swinv2": "swinv2", "DonutSwin": "donut"}[family]
    file = {"DonutSwin": "donut_swin"}.get(family, path)
    module = importlib.import_module(f"transformers.models.{path}.modeling_{file}")
    return FirstOutput(getattr(module, name)(getattr(hub, f"{family}Config")(**PATCHES))).eval()


@pytest.fixture(params=MODELS)
def case(request):
    size, axes, others = MODELS[request.param]
    model = made(request.param)
    return model, torch.rand(2, 3, size, size), axes, [torch.rand(n, 3, h, w) for n, h, w in others]


def is_right(data, model, others):
    session = ort.InferenceSession(data)
    name = session.get_inputs()[0].name
    for other in others:
        with torch.no_grad():
            wanted = model(other.clone()).numpy()
        try:
            found = session.run(None, {name: other.numpy()})[0]
        except Exception:  # whatever onnxruntime raises
            return False
        if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-3, atol=1e-4 * abs(wanted).max()):
            return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_right_at_other_sizes(case):
    model, image, axes, others = case
    samples = [(other,) for other in others]
    result = export_compat(model, image, dynamic={"x": axes}, exporter="torchscript", samples=samples)
    assert is_right(result.model_bytes, model, others)


@pytest.mark.filterwarnings("ignore")
def test_stock_torch_does_not(case, capsys):
    model, image, axes, others = case
    buffer = io.BytesIO()
    try:
        torch.onnx.export(model, (image,), buffer, dynamo=False, input_names=["x"], dynamic_axes={"x": axes})
    except Exception:  # whatever torch raises
        return
    finally:
        capsys.readouterr()
    assert not is_right(buffer.getvalue(), model, others)
