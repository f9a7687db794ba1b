"""Models that stock torch exports right are left as they are: nothing is called baked, no node changes."""

import io
from collections import Counter

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import torch

from torch_onnx_compat import export_compat

pytestmark = pytest.mark.slow

TORCHVISION = (
    *("squeezenet1_0", "squeezenet1_1", "resnet18", "resnext50_32x4d", "wide_resnet50_2", "mobilenet_v2"),
    *("mobilenet_v3_small", "mnasnet0_5", "shufflenet_v2_x0_5", "densenet121", "googlenet", "efficientnet_b0"),
    *("regnet_x_400mf", "regnet_y_400mf", "convnext_tiny"),
)
TIMM = (
    *("resnet10t", "resnet26", "resnet26d", "seresnet18", "legacy_seresnet18", "skresnet18", "dla34", "dla46_c"),
    *("mobilenetv2_050", "mobilenetv3_small_050", "mobilenetv4_conv_small", "lcnet_050", "mnasnet_small"),
    *("semnasnet_075", "fbnetc_100", "spnasnet_100", "ghostnet_100", "hardcorenas_a", "tinynet_e", "mixnet_s"),
    *(
        "efficientnet_lite0",
        "rexnet_100",
        "regnetx_002",
        "regnety_002",
        "repvgg_a0",
        "resnet14t",
        "tinynet_d",
        "fastvit_t8",
    ),
    *(
        "convnext_atto",
        "convnextv2_atto",
        "edgenext_xx_small",
        "poolformer_s12",
        "cspresnet50",
        "darknet53",
        "hrnet_w18_small",
    ),
)


def made(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    if name.startswith("timm/"):
        model = pytest.importorskip("timm").create_model(name.removeprefix("timm/"), pretrained=False)
    else:
        models = pytest.importorskip("torchvision").models
        options = {"init_weights": False} if name == "googlenet" else {}
        model = models.get_model(name, weights=None, **options)
    return model.eval()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*TORCHVISION, *(f"timm/{name}" for name in TIMM)])
def test_left_as_it_is(name):
    model, image = made(name), torch.rand(2, 3, 64, 64)
    buffer = io.BytesIO()
    torch.onnx.export(model, (image,), buffer, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "batch"}})
    session = ort.InferenceSession(buffer.getvalue())
    other = torch.rand(3, 3, 64, 64)
    with torch.no_grad():
        wanted = model(other).numpy()
    np.testing.assert_allclose(session.run(None, {"x": other.numpy()})[0], wanted, rtol=1e-3, atol=1e-4)

    files = [
        export_compat(model, image, dynamic="batch", exporter="torchscript", control_flow=on) for on in (True, False)
    ]
    on, off = (Counter(n.op_type for n in onnx.load_from_string(f.model_bytes).graph.node) for f in files)
    assert on == off
    assert not [note for note in files[0].applied if note.entry == "control_flow"]
