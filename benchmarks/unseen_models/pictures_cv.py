"""Pictures: the models of pytorchcv that others do not have, faces, and an early EfficientNet."""

from __future__ import annotations

import functools

from torch import nn

from unseen_models.table import NHW, add, add_class, image, load

NAMES = (
    *("shufflenetv2_wd2", "ghostnet", "danet_resnetd50b_cityscapes", "cgnet_cityscapes", "dabnet_cityscapes"),
    *("lwopenpose2d_mobilenet_cmupan_coco", "centernet_resnet18_voc", "hrnet_w18_small_v1", "octresnet10_ad2"),
    *("condensenet74_c4_g4", "darts", "isqrtcovresnet18", "alphapose_fastseresnet101b_coco", "sknet50", "diaresnet10"),
    *("bagnet9", "sparsenet121", "selecsls42", "airnet50_1x64d_r2", "dicenet_wd5", "proxylessnas_cpu", "fbnet_cb"),
    *("spnasnet", "efficientnet_edge_small_b"),
)


def _pytorchcv(name: str) -> nn.Module:
    model: nn.Module = load("pytorchcv.model_provider").get_model(name, pretrained=False)
    return model


for each in NAMES:
    add("pytorchcv", f"pytorchcv {each}", functools.partial(_pytorchcv, each), image(224))
add(
    "efficientnet-pytorch",
    "efficientnet-b0",
    lambda: load("efficientnet_pytorch").EfficientNet.from_name("efficientnet-b0", num_classes=5),
    image(64),
    NHW,
    h=(64, 96),
    w=(64, 80),
)
add_class("facenet-pytorch", "InceptionResnetV1", {}, image(96))


def _mtcnn(name: str) -> nn.Module:
    model: nn.Module = getattr(load("facenet_pytorch.models.mtcnn"), name)(pretrained=False)
    return model


SIZES = {"h": (32, 48, 40), "w": (32, 40, 56)}
add("facenet-pytorch", "PNet", functools.partial(_mtcnn, "PNet"), image(32), NHW, **SIZES)
add("facenet-pytorch", "RNet", functools.partial(_mtcnn, "RNet"), image(24))
add("facenet-pytorch", "ONet", functools.partial(_mtcnn, "ONet"), image(48))
