"""Draft."""

from __future__ import annotations

import types
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models import table
from unseen_models.table import MODELS, NHW, NT, N, Part, features, image, load, tokens


def add(package, name, *rest, **sizes):
    if any(m.name == name for m in MODELS):
        if any(m.name == name and m.package == package for m in MODELS):
            return
        name = f"{package} {name}"
    table.add(package, name, *rest, **sizes)


def add_class(package, cls, options, inputs, *axes, module="", name="", **sizes):
    where = module or package.replace("-", "_")
    add(package, name or cls, lambda: getattr(load(where), cls)(**options), inputs, *axes, **sizes)


SQ = {"h": (64, 128, 96), "w": (64, 96, 128)}
H32 = {"h": (32, 48, 40), "w": (32, 40, 56)}
T = {"t": (12, 7, 19)}

# compression
for cls, args in (("FactorizedPrior", (8, 12)), ("ScaleHyperprior", (8, 12)), ("MeanScaleHyperprior", (8, 12)), ("JointAutoregressiveHierarchicalPriors", (8, 12)), ("Cheng2020Anchor", (8,)), ("Cheng2020Attention", (8,))):
    add("compressai", cls, lambda cls=cls, args=args: getattr(load("compressai.models"), cls)(*args), image(64), NHW, h=(64, 128), w=(64, 192))

# text recognition
add("easyocr", "VGG-BiLSTM", lambda: load("easyocr.model.vgg_model").Model(1, 32, 16, 20), lambda n, w=64: (torch.randn(n, 1, 32, w), torch.zeros(n, 5)), {0: "n", 3: "w"}, {0: "n"}, w=(64, 100, 48))
add("easyocr", "ResNet-BiLSTM", lambda: load("easyocr.model.model").Model(1, 32, 16, 20), lambda n, w=64: (torch.randn(n, 1, 32, w), torch.zeros(n, 5)), {0: "n", 3: "w"}, {0: "n"}, w=(64, 100, 48))
add("easyocr", "easyocr CRAFT", lambda: load("easyocr.craft").CRAFT(), image(64), NHW, h=(64, 96), w=(64, 128))


def _doctr(name: str, inputs: Any, *axes: Any, label: str = "", **sizes: Any) -> None:
    add("python-doctr", label or name, lambda: getattr(load("doctr.models"), name)(pretrained=False, exportable=True, **({} if name in ("parseq", "vitstr_small") else {"pretrained_backbone": False})), inputs, *axes, **sizes)


wide = lambda n, w=128: torch.rand(n, 3, 32, w)
for name in ("crnn_vgg16_bn", "crnn_mobilenet_v3_small", "vitstr_small", "parseq", "viptr_tiny", "sar_resnet31", "master"):
    _doctr(name, wide, {0: "n"})
_doctr("crnn_vgg16_bn", wide, {0: "n", 3: "w"}, label="crnn_vgg16_bn, any width", w=(128, 96, 200))
for name in ("db_mobilenet_v3_large", "linknet_resnet18", "fast_tiny"):
    _doctr(name, image(64), NHW, **{"h": (64, 128), "w": (64, 96)})


# language models
def _gpt(**options: Any) -> nn.Module:
    return load("litgpt.model").GPT(load("litgpt.config").Config(block_size=32, n_layer=2, n_embd=16, vocab_size=40, padded_vocab_size=40, n_head=4, **options))


add("litgpt", "GPT-NeoX style", _gpt, tokens(40), NT, **T)
add("litgpt", "Llama style, grouped", lambda: _gpt(n_query_groups=2, norm_class_name="RMSNorm", mlp_class_name="LLaMAMLP", parallel_residual=False, bias=False, rotary_percentage=1.0, intermediate_size=32), tokens(40), NT, **T)
add("litgpt", "Mixtral style", lambda: _gpt(n_query_groups=2, norm_class_name="RMSNorm", mlp_class_name="LLaMAMoE", parallel_residual=False, bias=False, rotary_percentage=1.0, intermediate_size=32, n_expert=4, n_expert_per_token=2), tokens(40), NT, **T)
add("litgpt", "sliding window, softcap", lambda: _gpt(n_query_groups=2, norm_class_name="RMSNorm", mlp_class_name="GemmaMLP", parallel_residual=False, bias=False, rotary_percentage=1.0, intermediate_size=32, sliding_window_size=4, attention_logit_softcapping=30.0, final_logit_softcapping=20.0, sliding_window_indices=[1, 0]), tokens(40), NT, **T)
add_class("PaLM-rlhf-pytorch", "PaLM", {"dim": 16, "num_tokens": 40, "depth": 2, "dim_head": 8, "heads": 2}, tokens(40), NT, module="palm_rlhf_pytorch", **T)
add_class("performer-pytorch", "PerformerLM", {"num_tokens": 40, "max_seq_len": 32, "dim": 16, "depth": 2, "heads": 2, "dim_head": 8, "nb_features": 12}, tokens(40), NT, module="performer_pytorch", **T)
add_class("performer-pytorch", "Performer", {"dim": 16, "depth": 1, "heads": 2, "dim_head": 8, "nb_features": 12}, features(16), NT, module="performer_pytorch", **T)


def _torchscale(kind: str) -> nn.Module:
    embed = nn.Embedding(40, 16)
    if kind == "encoder":
        config = load("torchscale.architecture.config").EncoderConfig(vocab_size=40, encoder_embed_dim=16, encoder_attention_heads=2, encoder_ffn_embed_dim=32, encoder_layers=2, rel_pos_buckets=8, max_rel_pos=16, no_output_layer=True)
        return load("torchscale.architecture.encoder").Encoder(config, embed_tokens=embed)
    if kind == "decoder":
        config = load("torchscale.architecture.config").DecoderConfig(vocab_size=40, decoder_embed_dim=16, decoder_attention_heads=2, decoder_ffn_embed_dim=32, decoder_layers=2, xpos_rel_pos=True, xpos_scale_base=32)
        return load("torchscale.architecture.decoder").Decoder(config, embed_tokens=embed)
    config = load("torchscale.architecture.config").RetNetConfig(vocab_size=40, decoder_embed_dim=16, decoder_value_embed_dim=16, decoder_retention_heads=2, decoder_ffn_embed_dim=32, decoder_layers=2)
    return load("torchscale.architecture.retnet").RetNetDecoder(config, embed_tokens=embed)


for kind in ("encoder", "decoder", "retnet"):
    add("torchscale", kind, lambda kind=kind: Part(_torchscale(kind), lambda m, x: (m(x)["encoder_out"] if kind == "encoder" else m(x)[0])) if False else Part(_torchscale(kind), (lambda m, x: m(x)["encoder_out"]) if kind == "encoder" else (lambda m, x: m(x)[0])), tokens(40), NT, **T)

# tables
mixed = lambda n: (torch.stack([torch.randint(0, k, (n,)) for k in (4, 3)], 1), torch.randn(n, 5))
for cls in ("TabTransformer", "FTTransformer"):
    add_class("tab-transformer-pytorch", cls, {"categories": (4, 3), "num_continuous": 5, "dim": 8, "depth": 1, "heads": 2}, mixed, N, N, module="tab_transformer_pytorch", name=f"tab_transformer {cls}")
add("rtdl-revisiting-models", "FT-Transformer", lambda: load("rtdl_revisiting_models").FTTransformer(n_cont_features=5, cat_cardinalities=[4, 3], d_out=2, n_blocks=2, d_block=16, attention_n_heads=2, attention_dropout=0.1, ffn_d_hidden=None, ffn_d_hidden_multiplier=2.0, ffn_dropout=0.1, residual_dropout=0.0), lambda n: mixed(n)[::-1], N, N)
add_class("rtdl-revisiting-models", "ResNet", {"d_in": 5, "d_out": 2, "n_blocks": 2, "d_block": 8, "d_hidden": None, "d_hidden_multiplier": 2.0, "dropout1": 0.1, "dropout2": 0.0}, lambda n: torch.randn(n, 5), module="rtdl_revisiting_models", name="rtdl ResNet")
add_class("rtdl-num-embeddings", "PeriodicEmbeddings", {"n_features": 5, "d_embedding": 8, "lite": False}, lambda n: torch.randn(n, 5), module="rtdl_num_embeddings")
add("rtdl-num-embeddings", "PiecewiseLinearEmbeddings", lambda: load("rtdl_num_embeddings").PiecewiseLinearEmbeddings(load("rtdl_num_embeddings").compute_bins(torch.randn(100, 5), n_bins=6), 8, activation=False, version="B"), lambda n: torch.randn(n, 5))
for mask in ("sparsemax", "entmax"):
    add("pytorch-tabnet", f"TabNet {mask}", lambda mask=mask: load("pytorch_tabnet.tab_network").TabNet(6, 2, n_d=4, n_a=4, cat_idxs=[0, 1], cat_dims=[4, 3], cat_emb_dim=2, mask_type=mask, group_attention_matrix=torch.eye(6)) if False else load("pytorch_tabnet.tab_network").TabNet(6, 2, n_d=4, n_a=4, cat_idxs=[0, 1], cat_dims=[4, 3], cat_emb_dim=[2, 2], mask_type=mask, group_attention_matrix=torch.eye(6)), lambda n: torch.cat([mixed(n)[0].float(), torch.randn(n, 4)], 1))

# attention of pictures and sets
add_class("perceiver-pytorch", "Perceiver", {"num_freq_bands": 4, "depth": 2, "max_freq": 10.0, "num_latents": 8, "latent_dim": 16, "latent_heads": 2, "cross_dim_head": 8, "latent_dim_head": 8, "num_classes": 5}, lambda n, h=16, w=16: torch.randn(n, h, w, 3), {0: "n", 1: "h", 2: "w"}, module="perceiver_pytorch", h=(16, 20, 9), w=(16, 12, 24))
add("perceiver-pytorch", "PerceiverIO", lambda: Part(load("perceiver_pytorch").PerceiverIO(dim=8, depth=2, queries_dim=8, logits_dim=5, num_latents=6, latent_dim=16, latent_heads=2, cross_dim_head=8, latent_dim_head=8), lambda m, x, q: m(x, queries=q)), lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, 7, 8)), NT, N, **T)
add_class("axial-attention", "AxialAttention", {"dim": 8, "heads": 2, "dim_index": 1}, image(16, 8), NHW, module="axial_attention", h=(16, 20, 9), w=(16, 12, 24))
add_class("axial-attention", "AxialImageTransformer", {"dim": 8, "depth": 2, "heads": 2, "axial_pos_emb_shape": (16, 16)}, image(16, 8), N, module="axial_attention")
add_class("lambda-networks", "LambdaLayer", {"dim": 8, "dim_out": 8, "r": 5, "dim_k": 4, "heads": 2, "dim_u": 2}, image(16, 8), NHW, module="lambda_networks", h=(16, 20, 9), w=(16, 12, 24))
add_class("lambda-networks", "LambdaLayer", {"dim": 8, "dim_out": 8, "n": 256, "dim_k": 4, "heads": 2, "dim_u": 1}, image(16, 8), N, module="lambda_networks", name="LambdaLayer, global")
add("segment-anything", "SAM encoder", lambda: load("segment_anything.modeling").ImageEncoderViT(img_size=64, patch_size=8, embed_dim=16, depth=2, num_heads=2, out_chans=8, use_rel_pos=True, window_size=3, global_attn_indexes=(1,)), image(64), N)


class _Sam(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        m = load("segment_anything.modeling")
        self.prompts = m.PromptEncoder(16, (8, 8), (64, 64), 4)
        self.masks = m.MaskDecoder(transformer_dim=16, transformer=m.TwoWayTransformer(depth=2, embedding_dim=16, mlp_dim=32, num_heads=2))

    def forward(self, features: Tensor, points: Tensor, labels: Tensor, boxes: Tensor) -> Any:
        sparse, dense = self.prompts((points, labels), boxes, None)
        return self.masks(features, self.prompts.get_dense_pe(), sparse, dense, True)


add("segment-anything", "SAM prompts and masks", _Sam, lambda p=3: (torch.randn(1, 16, 8, 8), torch.rand(1, p, 2) * 64, torch.randint(-1, 2, (1, p)), torch.rand(1, 4) * 64), {}, {1: "p"}, {1: "p"}, {}, p=(3, 1, 6)) if False else None
add("segment-anything", "SAM prompts and masks", _Sam, lambda n, p=3: (torch.randn(1, 16, 8, 8), torch.rand(n, p, 2) * 64, torch.randint(0, 2, (n, p)), torch.rand(n, 4) * 64), {}, {0: "n", 1: "p"}, {0: "n", 1: "p"}, {0: "n"}, p=(3, 1, 6))
add("efficientnet-pytorch", "efficientnet-b0", lambda: load("efficientnet_pytorch").EfficientNet.from_name("efficientnet-b0", num_classes=5), image(64), NHW, h=(64, 96), w=(64, 80))
add_class("facenet-pytorch", "InceptionResnetV1", {}, image(96), N, module="facenet_pytorch")
for cls in ("PNet", "RNet", "ONet"):
    add("facenet-pytorch", cls, lambda cls=cls: getattr(load("facenet_pytorch.models.mtcnn"), cls)(pretrained=False), image({"PNet": 32, "RNet": 24, "ONet": 48}[cls]), NHW if cls == "PNet" else N, **(H32 if cls == "PNet" else {}))
for name in ("shufflenetv2_wd2", "ghostnet", "danet_resnetd50b_cityscapes", "cgnet_cityscapes", "dabnet_cityscapes", "lwopenpose2d_mobilenet_cmupan_coco", "centernet_resnet18_voc", "hrnet_w18_small_v1", "octresnet10_ad2", "condensenet74_c4_g4", "darts", "isqrtcovresnet18", "alphapose_fastseresnet101b_coco", "sknet50", "diaresnet10", "bagnet9", "sparsenet121", "selecsls42", "airnet50_1x64d_r2", "dicenet_wd5", "proxylessnas_cpu", "fbnet_cb", "spnasnet", "efficientnet_edge_small_b"):
    add("pytorchcv", f"pytorchcv {name}", lambda name=name: load("pytorchcv.model_provider").get_model(name, pretrained=False), image(224) if True else image(64), N)

# points and molecules
add_class("point-transformer-pytorch", "PointTransformerLayer", {"dim": 8, "pos_mlp_hidden_dim": 8, "attn_mlp_hidden_mult": 2}, lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, t, 3)), NT, NT, module="point_transformer_pytorch", **T)
add_class("point-transformer-pytorch", "PointTransformerLayer", {"dim": 8, "pos_mlp_hidden_dim": 8, "attn_mlp_hidden_mult": 2, "num_neighbors": 4}, lambda n, t=12: (torch.randn(n, t, 8), torch.randn(n, t, 3), torch.ones(n, t).bool()), NT, NT, NT, module="point_transformer_pytorch", name="PointTransformerLayer, neighbours", **T)
add("se3-transformer-pytorch", "SE3Transformer", lambda: Part(load("se3_transformer_pytorch").SE3Transformer(dim=8, heads=2, dim_head=4, depth=1, num_degrees=2, num_neighbors=4, valid_radius=10), lambda m, f, c, k: m(f, c, k, return_type=0)), lambda n, t=10: (torch.randn(n, t, 8), torch.randn(n, t, 3), torch.ones(n, t).bool()), N, N, N)
add_class("en-transformer", "EnTransformer", {"dim": 8, "depth": 1, "dim_head": 32, "heads": 2, "neighbors": 4}, lambda n, t=10: (torch.randn(n, t, 8), torch.randn(n, t, 3)), NT, NT, module="en_transformer", t=(10, 7, 19))
add("equiformer-pytorch", "Equiformer", lambda: Part(load("equiformer_pytorch").Equiformer(dim=(8, 4), dim_in=8, heads=(2, 2), dim_head=(4, 4), depth=1, num_degrees=2, num_neighbors=4, l2_dist_attention=False), lambda m, f, c, k: m(f, c, k).type0), lambda n, t=10: (torch.randn(n, t, 8), torch.randn(n, t, 3), torch.ones(n, t).bool()), N, N, N)


class _Ani(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        t = load("torchani")
        self.aev = t.AEVComputer.like_1x(num_species=4) if hasattr(t.AEVComputer, "like_1x") else t.aev.AEVComputer.like_1x(num_species=4)

    def forward(self, species: Tensor, coordinates: Tensor) -> Any:
        return self.aev(species, coordinates)


add("torchani", "AEVComputer", _Ani, lambda n: (torch.randint(0, 4, (n, 6)), torch.randn(n, 6, 3) * 2), N, N)

# science
add("enformer-pytorch", "Enformer", lambda: Part(load("enformer_pytorch").Enformer.from_hparams(dim=384, depth=1, heads=2, output_heads={"human": 5}, target_length=-1, num_downsamples=3), lambda m, x: m(x)), lambda n, t=128: torch.randn(n, t, 4).softmax(2), NT, t=(128, 256, 192))
add_class("torch-harmonics", "RealSHT", {"nlat": 12, "nlon": 24}, lambda n: torch.randn(n, 3, 12, 24), module="torch_harmonics")
add("torch-harmonics", "SHT and back", lambda: nn.Sequential(load("torch_harmonics").RealSHT(12, 24), load("torch_harmonics").InverseRealSHT(12, 24)), lambda n: torch.randn(n, 3, 12, 24))
for cls in ("MAF", "NSF", "NICE", "SOSPF"):
    add("zuko", f"zuko {cls}", lambda cls=cls: Part(getattr(load("zuko.flows"), cls)(3, 2, transforms=2, hidden_features=(8, 8)), lambda m, x, c: m(c).log_prob(x)), lambda n: (torch.randn(n, 3), torch.randn(n, 2)), N, N)
add("tensorly-torch", "FactorizedLinear", lambda: load("tltorch").FactorizedLinear((4, 4), (3, 2), rank=0.5, factorization="tucker"), lambda n: torch.randn(n, 16)) if False else None
add("tensorly-torch", "TRL", lambda: load("tltorch").TRL((4, 5), (3,), bias=True, rank=0.5, factorization="tucker"), lambda n: torch.randn(n, 4, 5))
add("tensorly-torch", "FactorizedConv", lambda: load("tltorch").FactorizedConv(4, 6, 3, order=2, padding=1, bias=True, has_bias=True, rank=0.5), image(16, 4), NHW, h=(16, 20, 9), w=(16, 12, 24))


def _equivariant() -> nn.Module:
    e = load("escnn")
    space = e.gspaces.rot2dOnR2(N=4)
    into, out = e.nn.FieldType(space, 3 * [space.trivial_repr]), e.nn.FieldType(space, 4 * [space.regular_repr])
    net = e.nn.SequentialModule(e.nn.R2Conv(into, out, 5, padding=2, bias=False), e.nn.InnerBatchNorm(out), e.nn.ReLU(out), e.nn.PointwiseAvgPoolAntialiased(out, sigma=0.66, stride=2), e.nn.GroupPooling(out))
    return Part(net, lambda m, x: m(e.nn.GeometricTensor(x, into)).tensor)


add("escnn", "C4 steerable network", _equivariant, image(17), NHW, h=(17, 25, 21), w=(17, 21, 29))
add("gpytorch", "RBF kernel", lambda: Part(load("gpytorch").kernels.ScaleKernel(load("gpytorch").kernels.RBFKernel(ard_num_dims=3)), lambda m, x, y: m(x, y).to_dense()), lambda n, t=6: (torch.randn(n, 3), torch.randn(t, 3)), N, {0: "t"}, t=(6, 4, 9))
add("torchcde", "Hermite coefficients", lambda: Part(nn.Identity(), lambda m, x: load("torchcde").hermite_cubic_coefficients_with_backward_differences(x)), lambda n: torch.randn(n, 10, 3))
add("torchcde", "natural cubic spline", lambda: Part(nn.Identity(), lambda m, x: load("torchcde").CubicSpline(load("torchcde").natural_cubic_coeffs(x)).evaluate(torch.tensor(2.5))), lambda n: torch.randn(n, 10, 3))
add("torchdiffeq", "neural ODE, rk4", lambda: Part(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)), lambda m, x: load("torchdiffeq").odeint(lambda t, y: m(y), x, torch.linspace(0, 1, 5), method="rk4")), lambda n: torch.randn(n, 3))
add("torchdiffeq", "neural ODE, dopri5", lambda: Part(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3)), lambda m, x: load("torchdiffeq").odeint(lambda t, y: m(y), x, torch.linspace(0, 1, 5))), lambda n: torch.randn(n, 3))

# metrics
pair = lambda n, h=32, w=32: (torch.rand(n, 3, h, w), torch.rand(n, 3, h, w))
add_class("pytorch-msssim", "SSIM", {"data_range": 1.0, "size_average": False}, pair, NHW, NHW, module="pytorch_msssim", name="pytorch-msssim SSIM", **H32)
add_class("pytorch-msssim", "MS_SSIM", {"data_range": 1.0, "size_average": False, "win_size": 3}, pair, NHW, NHW, module="pytorch_msssim", h=(64, 96, 80), w=(64, 80, 96))
for fn in ("structural_similarity_index_measure", "peak_signal_noise_ratio", "spectral_angle_mapper", "universal_image_quality_index", "total_variation"):
    add("torchmetrics", fn, lambda fn=fn: Part(nn.Identity(), (lambda m, a, b: getattr(load("torchmetrics.functional.image"), fn)(a)) if fn == "total_variation" else (lambda m, a, b: getattr(load("torchmetrics.functional.image"), fn)(a, b, **({"data_range": 1.0} if "peak" in fn else {})))), pair, NHW, NHW, **H32)
for fn in ("signal_noise_ratio", "scale_invariant_signal_distortion_ratio", "scale_invariant_signal_noise_ratio"):
    add("torchmetrics", fn, lambda fn=fn: Part(nn.Identity(), lambda m, a, b: getattr(load("torchmetrics.functional.audio"), fn)(a, b)), lambda n, t=64: (torch.randn(n, t), torch.randn(n, t)), NT, NT, t=(64, 48, 100))
for fn in ("pearson_corrcoef", "spearman_corrcoef", "r2_score", "cosine_similarity", "explained_variance", "concordance_corrcoef", "kendall_rank_corrcoef"):
    add("torchmetrics", fn, lambda fn=fn: Part(nn.Identity(), lambda m, a, b: getattr(load("torchmetrics.functional"), fn)(a, b)), (lambda n, t=12: (torch.randn(t, 3), torch.randn(t, 3))), {0: "t"}, {0: "t"}, **T)

# generation
add("dalle2-pytorch", "Unet", lambda: Part(load("dalle2_pytorch").Unet(dim=8, image_embed_dim=16, cond_dim=8, channels=3, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, resnet_groups=4), lambda m, x, t, e: m(x, t, image_embed=e)), lambda n, h=16, w=16: (torch.randn(n, 3, h, w), torch.randint(0, 100, (n,)), torch.randn(n, 16)), NHW, N, N, name="dalle2 Unet", h=(16, 32), w=(16, 24)) if False else add("dalle2-pytorch", "dalle2 Unet", lambda: Part(load("dalle2_pytorch").Unet(dim=8, image_embed_dim=16, cond_dim=8, channels=3, dim_mults=(1, 2), attn_heads=2, attn_dim_head=8, resnet_groups=4), lambda m, x, t, e: m(x, t, image_embed=e)), lambda n, h=16, w=16: (torch.randn(n, 3, h, w), torch.randint(0, 100, (n,)), torch.randn(n, 16)), NHW, N, N, h=(16, 32), w=(16, 24))
add("dalle2-pytorch", "DiffusionPriorNetwork", lambda: Part(load("dalle2_pytorch").DiffusionPriorNetwork(dim=16, num_timesteps=100, depth=1, dim_head=8, heads=2), lambda m, x, t, e: m(x, t, text_embed=e)), lambda n: (torch.randn(n, 16), torch.randint(0, 100, (n,)), torch.randn(n, 16)), N, N, N)
add_class("BS-RoFormer", "BSRoformer", {"dim": 16, "depth": 1, "time_transformer_depth": 1, "freq_transformer_depth": 1, "dim_head": 8, "heads": 2, "flash_attn": False, "freqs_per_bands": (8, 9, 16), "stft_n_fft": 64, "stft_hop_length": 16, "stft_win_length": 64}, lambda n: torch.randn(n, 256), module="bs_roformer")
for cls, options in (("VectorQuantize", {"dim": 8, "codebook_size": 16}), ("FSQ", {"levels": [4, 5, 6], "dim": 8}), ("LFQ", {"codebook_size": 16, "dim": 4}), ("ResidualFSQ", {"levels": [4, 5], "num_quantizers": 2, "dim": 8}), ("RandomProjectionQuantizer", {"dim": 8, "codebook_size": 16, "codebook_dim": 4})):
    add_class("vector-quantize-pytorch", cls, options, features(4 if cls == "LFQ" else 8), NT, module="vector_quantize_pytorch", name=f"vector-quantize {cls}", **T)
add_class("conformer", "Conformer", {"dim": 16, "depth": 1, "dim_head": 8, "heads": 2, "conv_kernel_size": 7}, features(16), NT, module="conformer", **T)

# sound
add("torchcrepe", "Crepe tiny", lambda: load("torchcrepe").Crepe("tiny"), lambda n: torch.randn(n, 1024))
for name, cls in (("segmentation", "PyanNet"), ("embedding", "XVectorSincNet"), ("embedding", "WeSpeakerResNet34")):
    add("pyannote.audio", cls, lambda name=name, cls=cls: _pyannote(name, cls), lambda n, t=16000: torch.randn(n, 1, t), {0: "n", 2: "t"}, t=(16000, 24000, 12800))


def _pyannote(name: str, cls: str) -> nn.Module:
    module = load(f"pyannote.audio.models.{name}")
    model = getattr(module, cls)()
    core = load("pyannote.audio.core.task")
    if name == "segmentation":
        model.specifications = core.Specifications(problem=core.Problem.MULTI_LABEL_CLASSIFICATION, resolution=core.Resolution.FRAME, duration=1.0, classes=["a", "b", "c"])
        model.build()
    return model


# fine-tuning
def _lora(merged: bool) -> nn.Module:
    t, p = load("transformers"), load("peft")
    base = t.BertModel(t.BertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, vocab_size=40, max_position_embeddings=32))
    return p.get_peft_model(base, p.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False))


add("peft", "BERT with LoRA", lambda: Part(_lora(False), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).last_hidden_state), tokens(40), NT, **T)


def _peft(config: str, **options: Any) -> nn.Module:
    t, p = load("transformers"), load("peft")
    base = t.GPT2LMHeadModel(t.GPT2Config(n_embd=16, n_layer=2, n_head=2, vocab_size=40, n_positions=48))
    return p.get_peft_model(base, getattr(p, config)(**options))


add("peft", "GPT2 with prefix", lambda: Part(_peft("PrefixTuningConfig", num_virtual_tokens=4, task_type="CAUSAL_LM"), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).logits), tokens(40), NT, **T)
add("peft", "GPT2 with prompt", lambda: Part(_peft("PromptTuningConfig", num_virtual_tokens=4, task_type="CAUSAL_LM"), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).logits), tokens(40), NT, **T)
add("peft", "GPT2 with DoRA", lambda: Part(_peft("LoraConfig", r=2, use_dora=True, target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).logits), tokens(40), NT, **T)
add("peft", "GPT2 with IA3", lambda: Part(_peft("IA3Config", target_modules=["c_attn"], feedforward_modules=[], init_ia3_weights=False, fan_in_fan_out=True), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).logits), tokens(40), NT, **T)
add("peft", "GPT2 with OFT", lambda: Part(_peft("OFTConfig", r=0, oft_block_size=4, target_modules=["mlp.c_fc"], init_weights=False, fan_in_fan_out=True), lambda m, x: m(input_ids=x, attention_mask=torch.ones_like(x)).logits), tokens(40), NT, **T)

# kornia
for fn, args in (("gaussian_blur2d", ((5, 5), (1.5, 1.5))), ("median_blur", ((3, 3),)), ("bilateral_blur", ((5, 5), 0.1, (1.5, 1.5))), ("unsharp_mask", ((5, 5), (1.5, 1.5))), ("canny", ()), ("sobel", ()), ("laplacian", (3,)), ("box_blur", ((3, 3),)), ("guided_blur", None)):
    if args is not None:
        add("kornia", f"filters {fn}", lambda fn=fn, args=args: Part(nn.Identity(), lambda m, x: getattr(load("kornia.filters"), fn)(x, *args)), lambda n, h=32, w=32: torch.rand(n, 3, h, w), NHW, **H32)
for fn in ("rgb_to_hsv", "rgb_to_lab", "rgb_to_luv", "rgb_to_hls", "rgb_to_xyz", "rgb_to_ycbcr", "hsv_to_rgb", "rgb_to_yuv420", "rgb_to_linear_rgb"):
    add("kornia", f"color {fn}", lambda fn=fn: Part(nn.Identity(), lambda m, x: getattr(load("kornia.color"), fn)(x)), lambda n, h=32, w=32: torch.rand(n, 3, h, w), NHW, **H32)
add("kornia", "warp_perspective", lambda: Part(nn.Identity(), lambda m, x, H: load("kornia.geometry").warp_perspective(x, H, (24, 20))), lambda n, h=32, w=32: (torch.rand(n, 3, h, w), torch.eye(3) + 0.01 * torch.randn(n, 3, 3)), NHW, N, **H32)
add("kornia", "rotate", lambda: Part(nn.Identity(), lambda m, x, a: load("kornia.geometry").rotate(x, a)), lambda n, h=32, w=32: (torch.rand(n, 3, h, w), torch.rand(n) * 90), NHW, N, **H32)
add("kornia", "homography from points", lambda: Part(nn.Identity(), lambda m, a, b: load("kornia.geometry").get_perspective_transform(a, b)), lambda n: ((q := torch.tensor([[0.0, 0], [1, 0], [1, 1], [0, 1]]) + 0.1 * torch.rand(n, 4, 2)), q + 0.1 * torch.rand(n, 4, 2)), N, N)
add("kornia", "SOLD2-like NMS", lambda: Part(load("kornia.geometry.subpix").NonMaximaSuppression2d((3, 3)), lambda m, x: m(x)), lambda n, h=32, w=32: torch.rand(n, 1, h, w), NHW, **H32)
add("kornia", "soft argmax", lambda: Part(nn.Identity(), lambda m, x: load("kornia.geometry").spatial_soft_argmax2d(x)), lambda n, h=32, w=32: torch.rand(n, 2, h, w), NHW, **H32)
add("kornia", "equalize_clahe", lambda: Part(nn.Identity(), lambda m, x: load("kornia.enhance").equalize_clahe(x, 2.0, (4, 4))), lambda n, h=32, w=32: torch.rand(n, 3, h, w), NHW, h=(32, 64), w=(32, 48))
add("kornia", "morphology", lambda: Part(nn.Identity(), lambda m, x: load("kornia.morphology").opening(x, torch.ones(3, 3))), lambda n, h=32, w=32: torch.rand(n, 3, h, w), NHW, **H32)
add("kornia", "distance_transform", lambda: Part(nn.Identity(), lambda m, x: load("kornia.contrib").distance_transform((x > 0.9).float())), lambda n: torch.rand(n, 1, 16, 16))
add("kornia", "HardNet", lambda: load("kornia.feature").HardNet(False), lambda n: torch.rand(n, 1, 32, 32))
add("kornia", "TFeat", lambda: load("kornia.feature").TFeat(False), lambda n: torch.rand(n, 1, 32, 32))
add("kornia", "SIFTDescriptor", lambda: load("kornia.feature").SIFTDescriptor(32), lambda n: torch.rand(n, 1, 32, 32))
add("kornia", "LoFTR-like coarse", lambda: load("kornia.feature.responses").BlobHessian() if hasattr(load("kornia.feature.responses"), "BlobHessian") else load("kornia.feature").BlobHessian(), lambda n, h=32, w=32: torch.rand(n, 1, h, w), NHW, **H32)
