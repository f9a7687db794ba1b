"""Restoration of pictures: the architectures of spandrel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from unseen_models.table import NHW, add, image, load

SIZES = {"h": (32, 48, 40), "w": (32, 40, 64)}


def _architecture(
    name: str,
    cls: str = "",
    *,
    label: str = "",
    size: int = 32,
    image_channels: int = 3,
    sizes: Mapping[str, Sequence[int]] = SIZES,
    **options: Any,
) -> None:
    def make() -> nn.Module:
        kind: type[nn.Module] = getattr(load(f"spandrel.architectures.{name}"), cls or name)
        return kind(**options)

    add("spandrel", label or cls or name, make, image(size, image_channels), NHW, **sizes)


LARGE = {"h": (64, 128), "w": (64, 96)}
WINDOWS: dict[str, Any] = {"depths": (2,), "num_heads": (2,), "window_size": 8, "embed_dim": 24, "upscale": 2}

_architecture("ATD", num_tokens=16, category_size=16, upsampler="pixelshuffledirect", **WINDOWS)
_architecture("CRAFT", embed_dim=48, depths=(2,), num_heads=(6,), upscale=2, split_size_0=4, split_size_1=8)
_architecture("Compact", num_feat=8, num_conv=2, upscale=4)
_architecture("DAT", embed_dim=64, depth=[2], num_heads=[2], split_size=[4, 8], upscale=2)
_architecture("DCTLSA")
_architecture("DITN", dim=12, ITL_blocks=1, SAL_blocks=1, UFONE_blocks=1, patch_size=8, upscale=2)
_architecture("DRCT", gc=8, **WINDOWS)
_architecture("DRUNet", image_channels=4, nc=[8, 16, 16, 16], nb=1, in_nc=4)
_architecture("DnCNN", nc=8, nb=4, in_nc=3, out_nc=3)
_architecture("ESRGAN", num_filters=8, num_blocks=1, scale=2)
_architecture("FBCNN")
_architecture("FDAT", embed_dim=24, num_groups=1, depth_per_group=2, num_heads=2, window_size=8)
_architecture("FFTformer", dim=8, num_blocks=[1, 1, 1], num_refinement_blocks=1)
_architecture(
    "GRL",
    embed_dim=24,
    depths=(2,),
    num_heads_window=(2,),
    num_heads_stripe=(2,),
    window_size=8,
    stripe_size=[8, 8],
    upscale=2,
    img_size=32,
)
_architecture("HAT", upsampler="pixelshuffle", **{**WINDOWS, "embed_dim": 60})
_architecture("HVICIDNet", channels=(8, 8, 16, 16), heads=(1, 2, 2, 2))
_architecture("KBNet", "KBNet_s", width=8, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1])
_architecture("MoESR")
_architecture("MoSR", n_block=2, dim=8)
_architecture("NAFNet", width=8, middle_blk_num=1, enc_blk_nums=[1, 1], dec_blk_nums=[1, 1])
_architecture("OmniSR", num_feat=16, res_num=1, block_num=1, window_size=8, up_scale=2)
_architecture("PLKSR", dim=8, n_blocks=2)
_architecture("PLKSR", "RealPLKSR", dim=8, n_blocks=2)
_architecture("RCAN", n_resgroups=1, n_resblocks=2, n_feats=16)
_architecture("RGT", embed_dim=64, depth=[2], num_heads=[2], split_size=[8, 8], upscale=2)
_architecture("RealCUGAN", "UpCunet2x", size=64, sizes=LARGE)
_architecture("RetinexFormer", n_feat=8, stage=1, num_blocks=[1, 1, 1])
_architecture("SAFMN", dim=8, n_blocks=2)
_architecture("SAFMNBCIE", dim=16)
_architecture("SCUNet", size=64, sizes=LARGE, config=[1] * 7, dim=64)
_architecture("SPAN", num_in_ch=3, num_out_ch=3, feature_channels=8)
_architecture("SwiftSRGAN", num_channels=8, num_blocks=1)
_architecture("Swin2SR", upsampler="pixelshuffledirect", **WINDOWS)
_architecture("SwinIR", upsampler="nearest+conv", **WINDOWS)
_architecture(
    "Uformer",
    label="Uformer, restoration",
    size=128,
    sizes={"h": (128, 256), "w": (128,)},
    embed_dim=8,
    depths=[1] * 9,
    win_size=8,
)
