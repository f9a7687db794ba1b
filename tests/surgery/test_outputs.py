"""export_compat(outputs=...): modules' results as the file's outputs."""

import numpy as np
import pytest
import timm
import torch
import torchvision
from torch import nn
from torch.nn import functional as F

from torch_onnx_compat import CompatError, export_compat
from torch_onnx_compat.surgery.around_model.attention import attention_weights

BOTH = ["torchscript", pytest.param("dynamo", marks=pytest.mark.slow)]
PICTURE = torch.rand(1, 3, 32, 32)


def resnet():
    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1]).eval()


def hooked(model, path, *args):
    """What a module returns, taken by a hook of this test's own."""
    found = []
    handle = model.get_submodule(path).register_forward_hook(lambda m, a, result: found.append(result.clone()))
    with torch.no_grad():
        model(*args)
    handle.remove()
    return found[0].numpy()


def test_layers_of_a_resnet(exporter):
    model = resnet()
    result = export_compat(model, PICTURE, outputs=["layer3", "bn1", "fc"], exporter=exporter, dynamic="batch")
    session = result.session()
    assert [o.name for o in session.get_outputs()] == ["layer3", "bn1", "fc"]
    found = session.run(None, {"x": PICTURE.numpy()})
    for path, array in zip(("layer3", "bn1", "fc"), found, strict=True):
        wanted = hooked(model, path, PICTURE)  # bn1 before the ReLU that is written over it in place
        np.testing.assert_allclose(array, wanted, rtol=1e-3, atol=1e-5)


def test_the_rest_is_left_out(exporter):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem, self.head = nn.Conv2d(3, 4, 3), nn.Linear(7, 2)

        def forward(self, x, mask):
            mask = self.head(mask)
            return self.stem(x).mean() + mask

    result = export_compat(Model().eval(), (PICTURE, torch.rand(2, 7)), outputs=["stem"], exporter=exporter)
    assert [i.name for i in result.session().get_inputs()] == ["x"]
    assert result.nodes == {"Conv": 1}
    assert any("input 'mask' is not in the file" in note for note in result.notes)


def test_stops_where_all_is_found(exporter):
    class Refused(nn.Module):
        def forward(self, x):
            return x * x.flatten()[0].item() if x.flatten()[0] > 0 else x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.Sequential(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True)), Refused())

        def forward(self, x):
            return self.blocks(x)

    result = export_compat(Model().eval(), PICTURE, outputs=["blocks.0.0"], exporter=exporter, control_flow=False)
    assert result.nodes == {"Conv": 1}
    assert (result(PICTURE)[0] < 0).any(), "the ReLU in place wrote over the output"


def test_calls_are_numbered(exporter):
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(4, 4)

        def forward(self, x):
            return self.head(self.head(x))

    model, x = Shared().eval(), torch.rand(2, 4)
    with pytest.raises(CompatError, match=r"'head' is called 2 times; say which call, 'head:0' to 'head:1'"):
        export_compat(model, x, outputs=["head"])
    with pytest.raises(CompatError, match="the last call is number 1"):
        export_compat(model, x, outputs=["head:2"])
    first, second, own, given = export_compat(
        model, x, outputs=["head:0", "head:1", "", "head:1:input"], exporter=exporter
    )(x)
    torch.testing.assert_close(first, model.head(x), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(second, model(x), rtol=1e-4, atol=1e-5)
    assert torch.equal(second, own)
    assert torch.equal(first, given)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        (["layer9"], r"no module 'layer9'; near it: layer4, layer3, layer2\. The model holds: conv1"),
        (["layer1.0.conv9"], r"near it: .*layer1\.0\.conv2.* layer1\.0 holds: conv1, bn1, relu"),
        (["layer1.0.relu"], "is called 2 times"),
        (["fc:x"], "ends in 'x'; wanted the number of a call from 0, 'input' or 'attention'"),
        (["fc", "fc"], "holds 'fc' twice"),
        ([], "outputs is empty"),
        ([3], "3 is a int; wanted the path of a module"),
        (["fc:attention"], "computes no attention that is a softmax"),
    ],
)
def test_wrong_places(outputs, message):
    with pytest.raises(CompatError, match=message):
        export_compat(resnet(), PICTURE, outputs=outputs)


def test_modules_that_are_not_called():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(4, 4)])
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x)[0] + self.blocks[0](x)

    model, x = Model().eval(), torch.rand(1, 3, 4)
    with pytest.raises(CompatError, match="only holds modules; name one of these"):
        export_compat(model, x, outputs=["blocks"])
    with pytest.raises(CompatError, match="'attention' reads its weights only; name 'attention'"):
        export_compat(model, x, outputs=["attention.out_proj"])


def test_attention_of_a_vision_transformer(exporter):
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=2).eval()
    maps = export_compat(
        model, PICTURE, outputs=["blocks.0.attn:attention", "blocks.1.attn:attention"], exporter=exporter
    )(PICTURE)
    for block in model.blocks:
        block.attn.fused_attn = False  # timm's own unfused form is the reference
    for index, found in enumerate(maps):
        wanted = hooked(model, f"blocks.{index}.attn.attn_drop", PICTURE)
        assert wanted.shape == (1, 3, 5, 5)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-3, atol=1e-6)


def test_fused_attention_says_where_it_is():
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, depth=1).eval()
    with pytest.raises(CompatError, match=r"in one fused call; its weights are 'blocks\.0\.attn:attention'"):
        export_compat(model, PICTURE, outputs=["blocks.0.attn.attn_drop"])
    for block in model.blocks:
        block.attn.fused_attn = False
    unfused, same = export_compat(model, PICTURE, outputs=["blocks.0.attn.attn_drop", "blocks.0.attn:attention"])(
        PICTURE
    )
    assert torch.equal(unfused, same)


@pytest.mark.parametrize("exporter", BOTH)
def test_attention_of_torch(exporter):
    model = torchvision.models.VisionTransformer(32, 8, 1, 3, 48, 96).eval()
    path = "encoder.layers.encoder_layer_0.self_attention"
    weights, own = export_compat(model, PICTURE, outputs=[f"{path}:attention", ""], exporter=exporter)(PICTURE)
    given = hooked(model, "encoder.layers.encoder_layer_0.ln_1", PICTURE)
    attention = model.get_submodule(path)
    _, wanted = attention(*[torch.from_numpy(given)] * 3, average_attn_weights=False)
    torch.testing.assert_close(weights, wanted.detach(), rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(own, model(PICTURE).detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["none", "bool", "float", "causal", "scaled", "gqa"])
def test_weights_are_those_of_the_fused_call(kind):
    q, k, v = torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 8), torch.rand(2, 4, 5, 6)
    options = {
        "none": {},
        "bool": {"attn_mask": torch.rand(5, 5) > 0.3 - torch.eye(5)},
        "float": {"attn_mask": torch.rand(5, 5)},
        "causal": {"is_causal": True},
        "scaled": {"scale": 0.5},
        "gqa": {"enable_gqa": True},
    }[kind]
    if kind == "gqa":
        k, v = k[:, :2], v[:, :2]
    weights = attention_weights(q, k, v, **options)
    values = v.repeat_interleave(2, 1) if kind == "gqa" else v
    torch.testing.assert_close(weights @ values, F.scaled_dot_product_attention(q, k, v, **options))


@pytest.mark.parametrize("exporter", BOTH)
def test_nothing_stays_on_the_model(exporter):
    model = resnet()
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    export_compat(model, PICTURE, outputs=["layer1.0.conv1"], exporter=exporter)
    with pytest.raises(CompatError):
        export_compat(model, PICTURE, outputs=["layer9"], exporter=exporter)
    assert all(vars(module) == before[name] for name, module in model.named_modules())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


@pytest.mark.parametrize("outputs", [["0", "1:input"], ["1:input", "0"], ["2", ""], ["1", "", "2", "0"]])
def test_one_tensor_by_two_names_is_two_outputs(outputs, exporter):
    """ONNX wants a name for each output, and one value has one name."""
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    x = torch.rand(3, 4)
    session = export_compat(model, x[:2], outputs=outputs, exporter=exporter, dynamic="batch").session()
    names = [o.name for o in session.get_outputs()]
    assert len(set(names)) == len(outputs)
    with torch.no_grad():
        steps = {"0": model[0](x), "1": model[:2](x), "2": model(x), "": model(x), "1:input": model[0](x)}
    for text, name in zip(outputs, names, strict=True):
        (found,) = session.run([name], {session.get_inputs()[0].name: x.numpy()})
        np.testing.assert_allclose(found, steps[text].numpy(), rtol=1e-5, atol=1e-6)


def test_one_tensor_by_two_names_is_two_outputs_of_parts(exporter):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).eval()
    result = export_compat(model, torch.rand(2, 4), outputs=["0", "1:input", ""], split=["1"], exporter=exporter)
    assert len({o.name for o in result.session().get_outputs()}) == 3
