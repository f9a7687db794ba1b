"""Prints a digest of each file that some zoo models export to: two checkouts that print the same write the same files.

What a restructuring must not change is the file. Run it in both checkouts and compare:

    PYTHONPATH=. python scripts/graph_digests.py > digests.txt
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable

import timm
import torch
import torchvision
from torch import nn

from torch_onnx_compat import export_compat

SMALL = (1, 3, 64, 64)
SLOW_THROUGH_DYNAMO = ("raft_small", "mvitv2_tiny")


def of_torchvision(name: str) -> Callable[[], nn.Module]:
    return lambda: torchvision.models.get_model(name, weights=None)


def of_timm(name: str, **options: int) -> Callable[[], nn.Module]:
    return lambda: timm.create_model(name, **options)


MODELS: dict[str, Callable[[], nn.Module]] = {
    **{
        name: of_torchvision(name)
        for name in ("resnet18", "mobilenet_v3_small", "swin_t", "efficientnet_b0", "shufflenet_v2_x0_5", "raft_small")
    },
    "lraspp": lambda: torchvision.models.get_model("lraspp_mobilenet_v3_large", weights=None, weights_backbone=None),
    **{name: of_timm(name) for name in ("convnext_atto", "ghostnet_050", "repvgg_a0")},
    **{name: of_timm(name, img_size=64) for name in ("vit_tiny_patch16_224", "mvitv2_tiny")},
}


def digest(model: nn.Module, args: tuple[torch.Tensor, ...], exporter: str) -> str:
    """The number of nodes, and a hash of the file without its metadata, which hold the version."""
    result = export_compat(model, args, exporter=exporter, dynamic="batch", verify=False)
    proto = result.model_proto
    del proto.metadata_props[:]
    for node in proto.graph.node:
        del node.metadata_props[:]
    return f"{result.nodes.total()} {hashlib.sha256(proto.SerializeToString(deterministic=True)).hexdigest()[:16]}"


def main() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for name, make in MODELS.items():
        torch.manual_seed(0)
        model = make().eval()
        args = (torch.rand(1, 3, 128, 128),) * 2 if name == "raft_small" else (torch.rand(SMALL),)
        for exporter in ("torchscript", "dynamo"):
            if exporter == "torchscript" or name not in SLOW_THROUGH_DYNAMO:
                print(name, exporter, digest(model, args, exporter), flush=True)


if __name__ == "__main__":
    main()
