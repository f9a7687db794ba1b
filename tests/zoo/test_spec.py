"""Specs: every form, every way to misspell one, and zoos from other distributions."""

import re
import sys
import warnings
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from torch_onnx_compat import CompatError
from torch_onnx_compat.errors import ClashError
from torch_onnx_compat.zoo import Sample, Zoo, find, load, spec, zoos

FACTORIES = """
from pathlib import Path
import torch
from torch import nn
from neighbour import CHANNELS

model = nn.Conv2d(CHANNELS, 1, 1)
number = 3

class Net(nn.Module):
    def forward(self, image):
        return image

def alone(): return nn.ReLU()
def one(): return nn.ReLU(), torch.zeros(1, 2)
def pair(): return nn.Bilinear(2, 2, 1), (torch.zeros(1, 2), torch.ones(1, 2))
def images(): return nn.Identity(), [torch.zeros(3, 2, 2)]
def keywords(): return nn.ReLU(), (), {"input": torch.zeros(1, 2)}
def picture(): return Net(), torch.zeros(1, 3, 8, 8)
def broken(): raise ValueError("no weights")
def text(): return "model"
def empty(): return ()
def four(): return nn.ReLU(), (), {}, 4
def swapped(): return nn.ReLU(), {}, ()
def lazy():
    import neighbour
    return nn.ReLU()
"""


@pytest.fixture
def factories(tmp_path: Path) -> Path:
    (tmp_path / "neighbour.py").write_text("CHANNELS = 2\n")
    path = tmp_path / "factories.py"
    path.write_text(FACTORIES)
    return path


@pytest.fixture(autouse=True)
def _imports_as_before(tmp_path: Path) -> Iterator[None]:
    modules = set(sys.modules)
    yield
    assert str(tmp_path) not in sys.path
    for name in {"neighbour", "factories", "spec_factories"} & (set(sys.modules) - modules):
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("alone", (), {}),
        ("one", (torch.zeros(1, 2),), {}),
        ("pair", (torch.zeros(1, 2), torch.ones(1, 2)), {}),
        ("keywords", (), {"input": torch.zeros(1, 2)}),
        ("Net", (), {}),
        ("model", (), {}),
        ("lazy", (), {}),
    ],
)
def test_factories_of_a_file(factories: Path, name: str, args: tuple, kwargs: dict) -> None:
    sample = load(f"{factories}:{name}")
    assert isinstance(sample.model, nn.Module)
    torch.testing.assert_close((sample.args, sample.kwargs), (args, kwargs))


def test_a_list_is_one_argument(factories: Path) -> None:
    assert [len(a) for a in load(f"{factories}:images").args] == [1]


def test_a_file_may_be_relative(factories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(factories.parent)
    assert isinstance(load("factories.py:alone").model, nn.ReLU)


def test_a_module_may_lie_in_the_working_directory(factories: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(factories.parent)
    assert isinstance(load("factories:alone").model, nn.ReLU)
    assert isinstance(load("torch.nn:ReLU").model, nn.ReLU)


def test_size_resamples_a_factorys_picture(factories: Path) -> None:
    assert load(f"{factories}:picture", size=(4, 6)).args[0].shape == (1, 3, 4, 6)


@pytest.mark.filterwarnings("ignore:The given buffer is not writable")
def test_an_exported_program(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    model, image = nn.Conv2d(3, 2, 1).eval(), torch.rand(1, 3, 4, 4)
    torch.export.save(torch.export.export(model, (image,)), path)
    sample = load(str(path))
    torch.testing.assert_close(sample.args, (image,))
    torch.testing.assert_close(sample.model(*sample.args), model(image))
    assert load(str(path), size=(2, 2)).args[0].shape == (1, 3, 2, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("resnet18", "spec 'resnet18': wanted 'zoo:model'"),
        (":resnet18", "spec ':resnet18': wanted 'zoo:model'"),
        ("torchvison:resnet18", "unknown zoo or module 'torchvison'; did you mean 'torchvision'?"),
        ("./torchvision:resnet18", "unknown zoo or module './torchvision'; did you mean 'torchvision'?"),
        ("torchvision:resnet81", "unknown torchvision model 'resnet81'; did you mean 'resnet18'?"),
        ("timm:resnet81", "unknown timm model 'resnet81'; did you mean 'resnet18'?"),
        ("absent.py:make", "absent.py: no such file."),
        ("absent.pt2", "absent.pt2: no such file."),
        ("absent.onnx", "absent.onnx: is an ONNX file already; `torch-onnx-compat convert absent.onnx` takes"),
        ("{file}", "{file}: name what makes the model, as {file}:NAME; it has "),
        ("{file}:pear", "unknown name in {file} 'pear'; did you mean 'pair'?"),
        ("{file}:zzz", "unknown name in {file} 'zzz'; known: Net, alone, broken, "),
        ("{folder}/state.pth", "state.pth: a model is a file .pt2 or .pt. If this one holds a state_dict,"),
        ("{file}:number", "{file}:number: is of type int; wanted a callable without arguments, or a model."),
        ("{file}:broken", "{file}:broken: calling it failed with ValueError: no weights"),
        (
            "{file}:text",
            "{file}:text: returned a value of type str; wanted a model, (model, args) or (model, args, kwargs).",
        ),
        ("{file}:empty", "{file}:empty: returned a value of type tuple; wanted a model"),
        ("{file}:four", "{file}:four: returned a value of type tuple; wanted a model"),
        ("{file}:swapped", "{file}:swapped: returned a value of type tuple; wanted a model"),
        ("torch.nn.absent:make", "torch.nn.absent: importing it failed with ModuleNotFoundError"),
    ],
)
def test_messages(factories: Path, text: str, message: str) -> None:
    (factories.parent / "state.pth").touch()
    with pytest.raises(CompatError, match=re.escape(message.replace("{file}", str(factories)))):
        load(text.replace("{file}", str(factories)).replace("{folder}", str(factories.parent)))


def test_a_file_that_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("import absent_package\n")
    with pytest.raises(CompatError, match=r"wrong\.py: importing it failed with ModuleNotFoundError: .*absent_package"):
        load(f"{tmp_path}/wrong.py:make")


def test_a_file_that_is_no_exported_program(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "model.pt2").write_bytes(b"nothing")
    with pytest.raises(CompatError, match=r"model\.pt2: torch\.export\.load failed with"):
        load(f"{tmp_path}/model.pt2")
    assert not caplog.records  # torch.export logs a traceback


def test_a_scripted_file_lacks_an_example(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(nn.ReLU()), tmp_path / "model.pt")
    with pytest.raises(CompatError, match=r"missing a required argument: 'input'; give --shape NAME="):
        load(f"{tmp_path}/model.pt").validate(f"{tmp_path}/model.pt")
    assert not [w for w in recwarn if "deprecated" in str(w.message)]


def test_built_in_zoos_need_no_installation() -> None:
    assert {"timm", "torchvision"} <= zoos().keys()
    assert isinstance(find("torchvision"), Zoo)


def _offer(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    point = EntryPoint(name=name, value=value, group=spec.ENTRY_POINT_GROUP)
    vars(point)["dist"] = SimpleNamespace(name="acme-models")
    monkeypatch.setattr(spec, "entry_points", lambda group: [point])


class AcmeZoo:
    def names(self) -> list[str]:
        return ["tiny"]

    def build(self, name: str, size: tuple[int, int] | None = None) -> Sample:
        return Sample(nn.ReLU(), (torch.zeros(1, 3, *(size or (8, 8))),))


def test_a_zoo_of_another_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "acme_models", SimpleNamespace(ZOO=AcmeZoo()))
    _offer(monkeypatch, "acme", "acme_models:ZOO")
    assert find("acme").names() == ["tiny"]
    assert load("acme:tiny", size=(2, 4)).args[0].shape == (1, 3, 2, 4)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("acme_absent:ZOO", "zoo 'acme' needs 'acme_absent', which is not installed; install it."),
        ("acme_models:ZO", "zoo 'acme' of acme-models: importing 'acme_models:ZO' failed with AttributeError"),
        (
            "acme_models:number",
            "zoo 'acme' of acme-models: 'acme_models:number' has no names() and build(); repair it.",
        ),
    ],
)
def test_a_broken_zoo_names_its_distribution(monkeypatch: pytest.MonkeyPatch, value: str, message: str) -> None:
    monkeypatch.setitem(sys.modules, "acme_models", SimpleNamespace(number=3))
    _offer(monkeypatch, "acme", value)
    with pytest.raises(CompatError, match=re.escape(message)):
        find("acme")


def test_a_clash_names_both_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    _offer(monkeypatch, "timm", "acme_models:ZOO")
    with pytest.raises(ClashError, match="zoo 'timm' is offered by both torch_onnx_compat and acme-models"):
        zoos()
