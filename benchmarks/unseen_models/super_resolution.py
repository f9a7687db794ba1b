"""Networks that enlarge pictures, of any size."""

from __future__ import annotations

from typing import Any

from torch import nn

from unseen_models.table import NHW, Part, add, image, load

SIDES = {"h": (16, 24, 20), "w": (20, 16, 28)}

SUPER_IMAGE: dict[str, dict[str, Any]] = {
    "A2n": {"nf": 12, "unf": 8, "nb": 2},
    "Awsrn": {"n_resblocks": 1, "block_feats": 32, "n_feats": 16},
    "Carn": {},
    "Drn": {"scale": 4, "n_blocks": 1, "n_feats": 8},
    "Edsr": {"n_resblocks": 2, "n_feats": 8},
    "Msrn": {"n_blocks": 2, "n_feats": 8},
    "Pan": {"nf": 12, "unf": 8, "nb": 2},
    "Rcan": {"n_resgroups": 1, "n_resblocks": 2, "n_feats": 8, "reduction": 4},
}


def _of_super_image(name: str, options: dict[str, Any]) -> nn.Module:
    package = load("super_image")
    made: nn.Module = getattr(package, f"{name}Model")(getattr(package, f"{name}Config")(**{"scale": 2} | options))
    return made


for _name, _options in SUPER_IMAGE.items():
    add(
        "super-image",
        _name,
        lambda name=_name, options=_options: _of_super_image(name, options),
        image(16),
        NHW,
        **SIDES,
    )
for _name in ("carn_m", "ninasr_b0", "rdn_a"):
    add("torchsr", _name, lambda name=_name: getattr(load("torchsr.models"), name)(scale=2), image(16), NHW, **SIDES)
add(
    "torchsr",
    "edsr_r16f64, in windows",
    lambda: load("torchsr.models").utils.ChoppedModel(load("torchsr.models").ninasr_b0(scale=2), 2, 16, 4),
    image(16),
    NHW,
    h=(24, 40, 16),
    w=(28, 20, 44),
)
add(
    "facexlib",
    "BiSeNet",
    lambda: load("facexlib.parsing.bisenet").BiSeNet(5),
    image(64),
    NHW,
    h=(64, 96, 128),
    w=(64, 128, 96),
)
add(
    "facexlib",
    "MODNet",
    lambda: Part(load("facexlib.matting.modnet").MODNet(backbone_pretrained=False), lambda m, x: m(x, True)),
    image(64),
    NHW,
    h=(64, 96, 128),
    w=(64, 128, 96),
)
add(
    "facexlib",
    "RetinaFace",
    lambda: load("facexlib.detection.retinaface").RetinaFace("mobile0.25"),
    image(64),
    NHW,
    h=(64, 96, 128),
    w=(64, 128, 96),
)
