"""Trained weights by name, and models that are files. Nothing is downloaded: what would come is made here."""

import importlib.util
import json
import logging
import os
import re
import sys
from urllib.error import URLError

import pytest
import torch
import torchvision
from torch import nn

from torch_onnx_compat import CompatError
from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo import timm as timms_zoo


@pytest.fixture
def served(monkeypatch):
    """Serves torchvision's downloads out of a dict of state dicts by the name of the file; others fail as offline."""
    files = {}

    def fetch(url, **_):
        for name, state in files.items():
            if name in url:
                return state
        raise URLError("Name or service not known")

    monkeypatch.setattr("torchvision.models._api.load_state_dict_from_url", fetch)
    return files


@pytest.mark.parametrize("weights", ["DEFAULT", "IMAGENET1K_V1"])
def test_torchvisions_weights(served, weights):
    trained = torchvision.models.squeezenet1_1(weights=None)
    served["squeezenet1_1"] = trained.state_dict()
    sample = load("torchvision:squeezenet1_1", (64, 64), weights)
    assert torch.equal(sample.model.classifier[1].weight, trained.classifier[1].weight)
    assert not sample.model.training
    assert (sample.random, sample.args[0].shape) == ("", (1, 3, 64, 64))
    assert json.loads(sample.metadata["names"])["0"] == "tench"
    assert "crop_size=[224]" in sample.metadata["preprocessing"]
    assert load("torchvision:squeezenet1_1", (64, 64)).random == "all"


def test_torchvisions_weights_of_a_detector(served):
    trained = torchvision.models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    served["ssdlite320"] = trained.state_dict()
    sample = load("torchvision:ssdlite320_mobilenet_v3_large", (64, 64), "COCO_V1")
    assert (sample.random, sample.note) == ("", "")
    assert torch.equal(sample.model.state_dict()["backbone.features.0.0.0.weight"], next(trained.parameters()))


@pytest.mark.parametrize(
    ("spec", "weights", "message"),
    [
        ("torchvision:squeezenet1_1", "DEFALT", "unknown torchvision weights of squeezenet1_1 'DEFALT'; did you mean"),
        ("torchvision:squeezenet", "DEFAULT", "unknown torchvision model 'squeezenet'; did you mean 'squeezenet1_0'?"),
        (
            "torchvision:squeezenet1_1",
            "DEFAULT",
            "torchvision:squeezenet1_1: its trained weights cannot be had: <urlopen error Name or service not known> "
            "(URLError). Libraries download them once; without a network, give the file of a checkpoint.",
        ),
        ("timm:resnet10t", "c3_in2k", "unknown timm weights 'c3_in2k'; did you mean 'c3_in1k'?"),
        (
            "torch.nn:ReLU",
            "DEFAULT",
            "torch.nn:ReLU: no trained weights are known;",
        ),
        ("torchvision:squeezenet1_1", "absent.pt", "absent.pt: cannot be read"),
        ("model.pt2", "DEFAULT", "model.pt2: the file holds its own weights; leave out 'DEFAULT'."),
        ("absent.pt", None, "absent.pt: no such file."),
    ],
)
def test_one_line_says_why_there_are_none(served, spec, weights, message):
    with pytest.raises(CompatError, match=re.escape(message)) as error:
        load(spec, None, weights)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("weights", "name"), [("DEFAULT", "resnet10t"), ("c3_in1k", "resnet10t.c3_in1k")])
def test_timms_weights(monkeypatch, weights, name):
    create = timms_zoo.timm.create_model
    asked = []

    def made(name, pretrained=False, **options):
        asked.append((name, pretrained))
        assert logging.getLogger("huggingface_hub").level == logging.ERROR
        return create(name, **options)

    monkeypatch.setattr(timms_zoo.timm, "create_model", made)
    before = logging.getLogger("huggingface_hub").level
    sample = load("timm:resnet10t", None, weights)
    assert asked == [(name, True)]
    assert (sample.random, sample.dynamic) == ("", {"x": {0: "batch"}})
    assert not sample.model.training
    assert logging.getLogger("huggingface_hub").level == before


def test_a_checkpoint_takes_the_random_weights_place(tmp_path):
    state = torchvision.models.squeezenet1_1(weights=None).state_dict()
    torch.save(state, tmp_path / "mine.pth")
    sample = load("torchvision:squeezenet1_1", (64, 64), str(tmp_path / "mine.pth"))
    assert sample.random == ""
    assert all(torch.equal(value, state[name]) for name, value in sample.model.state_dict().items())


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning", "ignore:.*torch.jit:DeprecationWarning")
def test_a_scripted_file(tmp_path):
    model = nn.Conv2d(3, 2, 1).eval()
    torch.jit.save(torch.jit.script(model), tmp_path / "scripted.pt")
    sample = load(str(tmp_path / "scripted.pt")).with_shapes({"input": (1, 3, 4, 4)})
    torch.testing.assert_close(sample.model(*sample.args), model(*sample.args))


needs_ultralytics = pytest.mark.skipif(
    importlib.util.find_spec("ultralytics") is None, reason="ultralytics is not installed"
)


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@needs_ultralytics
def test_a_checkpoint_of_ultralytics(tmp_path):
    model = load("ultralytics:yolo11n", (64, 64)).model
    torch.save({"ema": None, "model": model, "train_args": {"imgsz": 96}, "date": "today"}, tmp_path / "best.pt")
    sample = load(str(tmp_path / "best.pt"))
    assert (sample.args[0].shape, sample.dynamic, sample.random) == ((1, 3, 96, 96), {"x": {0: "batch"}}, "")
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(sample.model(image)[0], model(image)[0])
    assert load(str(tmp_path / "best.pt"), (32, 64)).args[0].shape == (1, 3, 32, 64)


@needs_ultralytics
def test_nothing_runs_that_a_checkpoint_brings_along(tmp_path):
    torch.save({"model": Evil(str(tmp_path / "made"))}, tmp_path / "evil.pt")
    with pytest.raises(CompatError, match=r"evil\.pt: refers to posix\.mkdir, which is no module of ultralytics"):
        load(str(tmp_path / "evil.pt"))
    assert not (tmp_path / "made").exists()


@needs_ultralytics
def test_a_state_dict_alone_is_no_model(tmp_path):
    torch.save({"state_dict": {"weight": torch.ones(2)}}, tmp_path / "state.pt")
    with pytest.raises(CompatError, match=r"holds no model of ultralytics; .* timm:NAME --weights"):
        load(str(tmp_path / "state.pt"))


@needs_ultralytics
def test_ultralytics_own_names(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def offline(name):
        raise ConnectionError(f"no network for {name}")

    monkeypatch.setattr("torch_onnx_compat.zoo.ultralytics.attempt_download_asset", offline)
    with pytest.raises(CompatError, match=r"yolo11n\.pt: no such file; .*cannot be had: no network for yolo11n\.pt"):
        load("yolo11n.pt")
    with pytest.raises(CompatError, match=r"unknown ultralytics model 'yolo11q'; did you mean"):
        load("yolo11q.pt")


@pytest.mark.skipif(importlib.util.find_spec("segmentation_models_pytorch") is None, reason="smp is not installed")
def test_smps_decoders_stay_random(monkeypatch):
    from torch_onnx_compat.zoo import smp

    asked = []
    unet = smp._DECODERS["unet"]

    def made(encoder, encoder_weights, **options):
        asked.append(encoder_weights)
        return unet(encoder, encoder_weights=None, **options)

    monkeypatch.setitem(smp._DECODERS, "unet", made)
    assert load("smp:unet-resnet18", (64, 64), "DEFAULT").random == "the decoder's"
    assert set(asked) == {"imagenet"}


def test_a_file_that_is_no_archive_is_told_without_ultralytics(tmp_path, monkeypatch):
    """Importing ultralytics writes its settings."""
    (tmp_path / "bad.pt").write_bytes(b"no archive")
    monkeypatch.setitem(sys.modules, "torch_onnx_compat.zoo.ultralytics", None)
    with pytest.raises(CompatError, match=r"bad\.pt: no archive of torch\.save or torch\.jit\.save"):
        load(str(tmp_path / "bad.pt"))
