"""The command line: what it passes on, what it prints, how it fails."""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from torch_onnx_compat import Detections, Normalize, Verify, cli
from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.check.compare import Comparison
from torch_onnx_compat.cli import arguments
from torch_onnx_compat.errors import CompatError, UnsupportedError, VerificationError
from torch_onnx_compat.surgery.around_model.detections import ALTERNATIVES
from torch_onnx_compat.surgery.on_graph import operation

MODEL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 2, 1)

    def forward(self, image, scale):
        return self.layer(image) * scale

def make():
    print("building")
    return Net(), (torch.rand(1, 3, 8, 8), torch.ones(1, 1, 1, 1))

def bare():
    return Net()
"""

DECIDES = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        y = x[:, torch.tensor([1, 0])]
        return x * 2 if x.sum() > 0 else x, y

def make():
    return Net().eval(), torch.rand(2, 3)
"""


class Result:
    obstacle = ""

    def __str__(self) -> str:
        return "all is well"

    def to_dict(self) -> dict[str, Any]:
        return {"exporter": "dynamo", "max": float("inf"), "nested": [{"nan": float("nan")}]}


@pytest.fixture
def spec(tmp_path: Path) -> str:
    (tmp_path / "net.py").write_text(MODEL)
    return f"{tmp_path}/net.py:make"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """What export_compat and plan were called with; they do nothing else."""
    made: list[SimpleNamespace] = []

    def record(model: nn.Module, args: Any, f: Any = None, **options: Any) -> Result:
        options.get("progress", print)("export")
        made.append(SimpleNamespace(model=model, args=args, f=f, **options))
        return Result()

    monkeypatch.setattr("torch_onnx_compat.export.export_compat", record)
    monkeypatch.setattr("torch_onnx_compat.export.plan", record)
    return made


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs a command line; returns its exit code, standard output and standard error with spaces squeezed."""

    def run(*argv: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main(list(argv))
        out, err = capsys.readouterr()
        code = exit_.value.code
        assert isinstance(code, int) or code is None
        return code or 0, out, re.sub(r"[\s│╭╮╰╯─]+", " ", err)

    return run


def test_export_passes_everything_on(run: Any, spec: str, calls: list[SimpleNamespace], tmp_path: Path) -> None:
    entry = next(iter(catalogue())).name
    code, out, err = run(
        *("export", spec, "-o", f"{tmp_path}/m.onnx", "--opset", "17", "--exporter", "dynamo", "--include", entry),
        *("--exclude", "remainder", "--dynamic", "image:0=batch,2=height", "--dynamic", "image:-1=width"),
        *("--size", "4x6", "--no-verify", "--allow-approximate", "--allow-custom-domains", "--allow-baked", "n.py:3"),
    )
    assert (code, out) == (0, "all is well\n")
    assert "load" in err
    assert "export ..." in err
    assert "building" in err
    (call,) = calls
    assert call.f == tmp_path / "m.onnx"
    assert [tuple(a.shape) for a in call.args] == [(1, 3, 4, 6), (1, 1, 4, 6)]
    assert call.dynamic == {"image": {0: "batch", 2: "height", -1: "width"}}
    assert call.target == "onnxruntime"
    assert (call.opset_version, call.exporter, call.verify, call.allow_approximate) == (17, "dynamo", False, True)
    assert (call.include, call.exclude, call.allow_custom_domains) == ((entry,), ("remainder",), True)
    assert call.allow_baked == ("n.py:3",)


def test_export_defaults(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    assert run("export", spec, "-o", "m.onnx")[0] == 0
    (call,) = calls
    assert (call.dynamic, call.opset_version, call.exporter, call.verify) == (None, None, "auto", Verify())
    assert (call.include, call.exclude, call.allow_baked, call.allow_approximate) == ((), (), (), False)
    assert call.optimize is True


@pytest.mark.parametrize(("word", "value"), [("size", "size"), ("latency", "latency"), ("none", False)])
def test_export_by_quality(run: Any, spec: str, calls: list[SimpleNamespace], word: str, value: Any) -> None:
    assert run("export", spec, "-o", "m.onnx", "--optimize", word)[0] == 0
    assert calls[0].optimize == value


def test_verify_on_target(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    assert run("export", spec, "-o", "m.onnx", "--verify-on-target")[0] == 0
    assert calls[0].verify == Verify(on_target=True)
    code, _, err = run("export", spec, "-o", "m.onnx", "--verify-on-target", "--no-verify")
    assert code
    assert "--no-verify and --verify-on-target exclude each other" in err
    assert len(calls) == 1


def test_dynamic_batch_is_passed_as_it_is(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    assert run("export", spec, "-o", "m.onnx", "--dynamic", "batch")[0] == 0
    assert calls[0].dynamic == "batch"


def test_plan(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    assert run("plan", spec, "--exporter", "dynamo", "--dynamic", "batch")[:2] == (0, "all is well\n")
    assert (calls[0].exporter, calls[0].dynamic, calls[0].f) == ("dynamo", "batch", None)
    assert run("plan", spec, "--show-source")[0] == 0
    assert calls[1].show_source


def test_options_without_effect_are_refused(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    for words, message in [
        (("--open",), "--open is for a report; give --report FILE, too."),
        (
            ("--size", "4", "--shape", "image=1x3x6x6", "--shape", "scale=1"),
            "--size 4x4: no input of {} is a picture of this size: (1, 3, 6, 6), (1,). The --shape given is of another "
            "size. Leave --size out.",
        ),
        (
            ("--verify-on-target", "--target", "tensorrt-10"),
            "--verify-on-target: tensorrt-10 cannot be run here:",
        ),
    ]:
        code, _, err = run("export", spec, "-o", "m.onnx", *words)
        assert code == 2, words
        assert message.format(spec) in err
    assert not calls


@pytest.mark.parametrize(
    "words",
    [
        *((option, "nope") for option in ("--outputs", "--submodule", "--split", "--state", "--keep-as-function")),
        ("--postprocess", "nms"),
        ("--precision", "int8", "--target", "ncnn"),
    ],
)
def test_a_wrong_name_is_the_command_lines_fault(run: Any, spec: str, words: tuple[str, ...]) -> None:
    assert run("export", spec, "-o", "m.onnx", *words)[0] == 2


def test_a_plan_is_what_an_export_does(run: Any, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(DECIDES)
    spec = f"{tmp_path}/net.py:make"
    code, out, _ = run("plan", spec, "--json", "--show-source")
    planned = json.loads(out)
    code, out, _ = run("export", spec, "-o", str(tmp_path / "m.onnx"), "--json")
    assert code == 0
    names = [(note["entry"], note["places"]) for note in planned["applied"]]
    assert names == [(note["entry"], note["places"]) for note in json.loads(out)["applied"]]
    assert "control_flow" in dict(names)
    assert "+    return (_rt.choose(" in planned["source"]


def test_a_plan_says_why_an_export_fails(run: Any, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(DECIDES.replace("x * 2 if x.sum() > 0 else x", "torch.from_numpy(x.numpy() * 2)"))
    code, out, _ = run("plan", f"{tmp_path}/net.py:make")
    assert code == 1
    assert "an export fails: TorchScript would freeze" in out
    assert "Compute with torch what is made of them; if they are always the same" in out


def test_shapes(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    bare = spec.replace(":make", ":bare")
    assert run("export", bare, "-o", "m.onnx", "--shape", "image=2x3x4x5", "--shape", "scale=1")[0] == 0
    assert [tuple(a.shape) for a in calls[0].args] == [(2, 3, 4, 5), (1,)]


def test_weights(run: Any, spec: str, calls: list[SimpleNamespace], tmp_path: Path) -> None:
    state = {"layer.weight": torch.full((2, 3, 1, 1), 5.0), "layer.bias": torch.zeros(2)}
    torch.save({"state_dict": state}, tmp_path / "c.pt")
    assert run("export", spec, "-o", "m.onnx", "--weights", f"{tmp_path}/c.pt")[0] == 0
    assert torch.equal(calls[0].model.layer.weight.detach(), state["layer.weight"])


@pytest.mark.parametrize("command", ["export", "plan"])
def test_json_is_all_there_is_on_standard_output(
    run: Any, spec: str, calls: list[SimpleNamespace], command: str
) -> None:
    output = ("-o", "m.onnx") if command == "export" else ()
    code, out, _ = run(command, spec, *output, "--json")
    assert code == 0
    assert json.loads(out) == {"exporter": "dynamo", "max": None, "nested": [{"nan": None}]}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("exprot",), "unknown command 'exprot'; did you mean 'export'?"),
        (("export", "x:y", "-o", "f", "--traget", "t"), "--target"),
        (("export", "x:y"), "Missing option '--output'"),
        (
            ("export", "torchvison:alexnet", "-o", "f"),
            "unknown zoo or module 'torchvison'; did you mean 'torchvision'?",
        ),
        (("export", "torchvision:alexnett", "-o", "f"), "did you mean 'alexnet'?"),
        (("export", "nothing", "-o", "f"), "spec 'nothing': wanted 'zoo:model'"),
        (("export", "{spec}", "-o", "f", "--target", "onnxruntim"), "did you mean 'onnxruntime'?"),
        (("export", "{spec}", "-o", "f", "--exporter", "dynmo"), "unknown exporter 'dynmo'; did you mean 'dynamo'?"),
        (("export", "{spec}", "-o", "f", "--optimize", "sise"), "unknown --optimize 'sise'; did you mean 'size'?"),
        (("export", "{spec}", "-o", "f", "--include", "remaindr"), "unknown entry 'remaindr'; did you mean 'remainder"),
        (("export", "{spec}", "-o", "f", "--exclude", "remaindr"), "unknown entry 'remaindr'; did you mean 'remainder"),
        (("export", "{spec}", "-o", "f", "--size", "6,4"), "--size '6,4': wanted height x width in pixels"),
        (("export", "{spec}", "-o", "f", "--size", "0x4"), "--size '0x4': wanted height x width in pixels"),
        (("export", "{spec}", "-o", "f", "--shape", "1x3"), "--shape '1x3': wanted the input's name and its sizes"),
        (("export", "{spec}", "-o", "f", "--shape", "imge=1x3"), "unknown input 'imge'; did you mean 'image'?"),
        (("export", "{spec}", "-o", "f", "--dynamic", "image:batch"), "--dynamic 'image:batch': wanted 'batch' alone"),
        (("export", "{spec}", "-o", "f", "--weights", "absent.pt"), "absent.pt: cannot be read"),
        (("export", "{bare}", "-o", "f"), "missing a required argument: 'image'; return (model, args)"),
        (("plan", "{spec}", "--exporter", "auto"), "unknown exporter 'auto'"),
        (("catalogue", "remaindr"), "unknown entry 'remaindr'; did you mean 'remainder"),
        (("zoo", "tim"), "unknown zoo 'tim'; did you mean 'timm'?"),
    ],
)
def test_usage_errors(run: Any, spec: str, calls: list[SimpleNamespace], argv: tuple[str, ...], message: str) -> None:
    names = {"{spec}": spec, "{bare}": spec.replace(":make", ":bare")}
    code, out, err = run(*(names.get(word, word) for word in argv))
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert calls == []


ROW = Comparison("example", "output", 0.5, 0.25, "0.001 rel", ok=False, detail="")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UnsupportedError("no Foo"), 1, "error: no Foo"),
        (CompatError("wrong"), 1, "error: wrong"),
        (VerificationError("differs", (ROW,)), 3, "error: differs"),
        (RuntimeError("boom"), 1, "error: RuntimeError: boom; --debug shows the traceback."),
    ],
)
def test_failures(
    run: Any, spec: str, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int, message: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("torch_onnx_compat.export.export_compat", fail)
    found, out, err = run("export", spec, "-o", "m.onnx")
    assert (found, out) == (code, "")
    assert message in err
    found, out, err = run("export", spec, "-o", "m.onnx", "--json")
    assert found == code
    report = json.loads(out)
    assert (report["exit_code"], report["kind"]) == (code, type(error).__name__)
    assert len(report["table"]) == (1 if code == 3 else 0)
    with pytest.raises(type(error)):
        cli.main(["export", spec, "-o", "m.onnx", "--debug"])


def test_help_tells_the_exit_codes(run: Any) -> None:
    for argv in (("--help",), ("export", "--help")):
        code, out, _ = run(*argv)
        assert code == 0
        assert "3 the exported file does not compute what the model computes" in re.sub(r"\s+", " ", out)


@pytest.mark.parametrize("argv", [("--help",), ("export", "--help"), ("explain", "-h")])
def test_help_shows_no_values_of_flags(run: Any, argv: tuple[str, ...]) -> None:
    code, out, _ = run(*argv)
    assert code == 0
    assert "Show this message and exit." in " ".join(out.split())
    assert "bool" not in out.lower()


def test_catalogue_lists_and_tells(run: Any) -> None:
    names = [entry.name for entry in catalogue()]
    code, out, _ = run("catalogue")
    assert code == 0
    assert len(out.splitlines()) == len(names) + 1
    assert {row["name"] for row in json.loads(run("catalogue", "--json")[1])} == set(names)
    code, out, _ = run("catalogue", names[0])
    assert code == 0
    assert out.startswith("name ")
    assert re.search("^source +[^ ]", out, re.MULTILINE)


def test_zoo_lists_and_filters(run: Any) -> None:
    assert {"timm", "torchvision"} <= set(run("zoo")[1].split())
    assert run("zoo", "torchvision", "--filter", "raft_*")[:2] == (0, "raft_large\nraft_small\n")
    assert json.loads(run("zoo", "torchvision", "--filter", "raft_*", "--json")[1]) == ["raft_large", "raft_small"]


def test_a_real_export(run: Any, spec: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    code, out, err = run("export", spec, "-o", str(path), "--dynamic", "image:0=batch", "--exporter", "torchscript")
    assert code == 0, err
    assert "verified" in out
    axis = onnx.load(path).graph.input[0].type.tensor_type.shape.dim[0]
    assert axis.dim_param == "batch"
    code, out, _ = run("export", spec, "-o", str(path), "--exporter", "torchscript", "--json")
    assert json.loads(out)["path"] == str(path)


def test_a_real_plan(run: Any, spec: str) -> None:
    code, out, _ = run("plan", spec)
    assert code == 0
    assert "onnxruntime" in out


def test_export_cuts_where_it_is_told(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    code, *_ = run(
        *("export", spec, "-o", "m.onnx", "--outputs", "layer, ", "--submodule", "a.b", "--split", "a,b"),
        *("--preprocess", "fold", "--postprocess", "strip"),
    )
    assert code == 0
    (call,) = calls
    assert (call.outputs, call.submodule, call.split) == (["layer", ""], "a.b", ["a", "b"])
    assert (call.preprocess, call.postprocess) == ("fold", "strip")


def test_what_stands_around_the_model_as_texts(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    before, behind = "mean=0.5 std=0.25 scale=1/255 layout=NHWC", "form=nms boxes=0 scores=1"
    assert run("export", spec, "-o", "m.onnx", "--preprocess", before, "--postprocess", behind)[0] == 0
    assert calls[0].preprocess == Normalize(mean=0.5, std=0.25, scale=1 / 255, layout="NHWC")
    assert calls[0].postprocess == Detections("nms", boxes=0, scores=1)


def test_the_words_of_the_options_are_those_of_export_compat() -> None:
    assert arguments.PREPROCESS == operation.PREPROCESS
    assert set(arguments.POSTPROCESS) == {*operation.POSTPROCESS, *ALTERNATIVES}


def test_export_cuts_nothing_by_itself(run: Any, spec: str, calls: list[SimpleNamespace]) -> None:
    assert run("export", spec, "-o", "m.onnx")[0] == 0
    (call,) = calls
    assert (call.outputs, call.submodule, call.split) == (None, None, ())
    assert (call.preprocess, call.postprocess) == ("keep", "keep")


def test_calibration_inputs_come_from_a_file(spec: str, calls: list[SimpleNamespace], run: Any, tmp_path: Path) -> None:
    """In batches of the example's size; what fills none is left out, float64 becomes the example's type."""
    pair, rows = spec.replace(":make", ":pair"), np.arange(5 * 192).reshape(5, 3, 8, 8) / 960
    with open(tmp_path / "net.py", "a", encoding="utf-8") as file:
        file.write("\ndef pair():\n    return Net(), (torch.rand(2, 3, 8, 8), torch.ones(2, 1, 1, 1))\n")
    np.savez(tmp_path / "data.npz", image=rows, scale=np.ones((5, 1, 1, 1)))
    options = (
        "--precision",
        "int8",
        "--calibration",
        str(tmp_path / "data.npz"),
        "--metric",
        "top1",
        "--limit",
        "0.02",
    )
    code, _, err = run("export", pair, "-o", str(tmp_path / "a.onnx"), *options)
    assert code == 0, err
    asked = calls[0].precision
    assert (asked.metric, asked.limit) == ("top1", 0.02)
    assert [item["image"].shape for item in asked.calibration] == [(2, 3, 8, 8)] * 2
    assert asked.calibration[1]["image"].dtype is torch.float32
    assert torch.equal(asked.calibration[1]["image"], torch.tensor(rows[2:4], dtype=torch.float32))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "float16", "--calibration", "data.npz"], "--calibration belongs to --precision int8"),
        (["--metric", "top1"], "--metric belongs to --precision int8"),
        (["--precision", "int8", "--narrow-io"], "--narrow-io belongs to --precision float16 or bfloat16"),
        (["--precision", "int8", "--metric", "top5"], "top5"),
        (["--precision", "int8", "--calibration", "missing.npz"], "missing.npz: no such file."),
        (["--precision", "int8", "--calibration", __file__], "wanted a file .npz or .npy"),
        (["--precision", "int8", "--limit", "-1"], "wanted a number above 0"),
        (["--precision", "int9"], "int8"),
        (["--precision", "int4-weights", "--calibration", "data.npz"], "--calibration belongs to --precision int8"),
    ],
)
def test_options_of_int8_that_do_not_fit(
    spec: str, calls: list[SimpleNamespace], run: Any, tmp_path: Path, options: list[str], message: str
) -> None:
    code, _, err = run("export", spec, "-o", str(tmp_path / "a.onnx"), *options)
    assert code == 2
    assert message in err
    assert not calls


@pytest.mark.parametrize(
    ("name", "kind", "bits"),
    [("int8-dynamic", "Dynamic", None), ("int8-weights", "WeightOnly", 8), ("int4-weights", "WeightOnly", 4)],
)
def test_forms_without_calibration(
    spec: str, calls: list[SimpleNamespace], run: Any, tmp_path: Path, name: str, kind: str, bits: int | None
) -> None:
    options = ("--precision", name, "--limit", "0.02", "--metric", "top1", "--keep-float32", "head,LSTM")
    code, _, err = run("export", spec, "-o", str(tmp_path / "a.onnx"), *options)
    assert code == 0, err
    asked = calls[0].precision
    assert (type(asked).__name__, asked.limit, asked.metric) == (kind, 0.02, "top1")
    assert asked.keep == ["head", "LSTM"]
    assert getattr(asked, "bits", None) == bits


@pytest.mark.parametrize("rows", [(5, 4), (1, 1), (0, 0)])
def test_calibration_arrays_that_do_not_fit(
    spec: str, calls: list[SimpleNamespace], run: Any, tmp_path: Path, rows: tuple[int, int]
) -> None:
    with open(tmp_path / "net.py", "a", encoding="utf-8") as file:
        file.write("\ndef pair():\n    return Net(), (torch.rand(2, 3, 8, 8), torch.ones(2, 1, 1, 1))\n")
    np.savez(tmp_path / "data.npz", image=np.ones((rows[0], 3, 8, 8)), scale=np.ones((rows[1], 1, 1, 1)))
    options = ("--precision", "int8", "--calibration", str(tmp_path / "data.npz"))
    code, _, err = run("export", spec.replace(":make", ":pair"), "-o", str(tmp_path / "a.onnx"), *options)
    assert code == 2
    assert "wanted the same number in each, 2 or more" in err
    assert not calls
