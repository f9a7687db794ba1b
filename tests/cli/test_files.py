"""The commands about files that are there, and what the command line says of time, interrupts and narrow terminals."""

import json
import re
import signal

import onnx
import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from torch_onnx_compat import export_compat
from torch_onnx_compat.cli import app, arguments, console
from torch_onnx_compat.cli.options import Model
from torch_onnx_compat.zoo.sample import Sample

NET = """
import torch
from torch import nn

def make(scale=1.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    model[2].weight.data *= scale
    return model, torch.rand(2, 3, 8, 8)

def other():
    return make(1.5)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)).eval()
    export_compat(model, torch.rand(2, 3, 8, 8), tmp_path / "net.onnx", exporter="torchscript")
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, [str(arg) for arg in args])


def test_localise_finds_no_difference(folder):
    done = run("localise", "net.py:make", "net.onnx")
    assert (done.exit_code, done.stdout) == (0, "no layer differs by more than rounding.\n")


def test_localise_names_the_layer_and_exits_with_3(folder):
    done = run("localise", "net.py:other", "net.onnx")
    assert done.exit_code == 3
    assert "first difference at 2 (Conv2d)" in done.stdout
    table = done.stdout.splitlines()[-2:]
    assert table[0].split() == ["module", "error", "rounding", "explains"]
    assert table[1].startswith("2 ")
    found = json.loads(run("localise", "net.py:other", "net.onnx", "--json").stdout)
    assert (found["found"], found["module"]) == (True, "2")


def test_localise_on_an_example_that_the_file_refuses(folder):
    done = run("localise", "net.py:make", "net.onnx", "--size", "16")
    assert done.exit_code == 1
    assert "net.onnx: onnxruntime does not run it on the model's example" in done.stderr
    assert "Give --size or --shape" in done.stderr


def test_a_report_of_a_file(folder):
    done = run("report", "net.onnx", "-o", "net.md", "--target", "ort")
    assert (done.exit_code, done.stdout) == (0, "net.md\n")
    text = (folder / "net.md").read_text()
    assert text.startswith("# net.onnx: Not compared with a model")
    assert "| Conv | 2 | works |" in text
    assert 'InferenceSession("net.onnx"' in text


@pytest.mark.parametrize(
    ("factory", "verdict"), [("make", "No layer differs from the model"), ("other", "Differs from the model")]
)
def test_a_report_of_a_file_beside_its_model(folder, factory, verdict):
    assert run("report", "net.onnx", "-o", "net.json", "--model", f"net.py:{factory}").exit_code == 0
    facts = json.loads((folder / "net.json").read_text())
    assert facts["verdict"] == verdict
    assert facts["ok"] == (factory == "make")
    assert len(facts["layers"]) >= 2


def test_a_report_of_what_is_no_file_of_onnx(folder):
    done = run("report", "net.py", "-o", "net.md")
    assert done.exit_code == 2
    assert "'net.py' cannot be read as an ONNX file" in done.stderr


def test_targets_are_listed_with_how_they_are_known():
    rows = {row["name"]: row for row in json.loads(run("targets", "--json").stdout)}
    assert rows["onnxruntime"]["known from"].startswith("running it 20")
    assert rows["qnn"]["known from"].startswith("documents 20")
    assert "trt" in rows["tensorrt-11"]["also called"].split(", ")
    done = run("targets", "trt")
    assert done.stdout.startswith("name           tensorrt-11\n")
    assert "refused" in done.stdout


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["batch"], "batch"),
        (["auto"], "auto"),
        (["ids:0=batch,1=tokens:1..512"], {"ids": {0: "batch", 1: ("tokens", 1, 512)}}),
        (["image:2=height:32.."], {"image": {2: ("height", 32, None)}}),
        (None, None),
    ],
)
def test_axes(texts, wanted):
    assert arguments.dynamic(texts) == wanted


def test_one_size_is_a_square():
    assert (arguments.size("224"), arguments.size("480x640")) == ((224, 224), (480, 640))


@pytest.fixture
def heeds_interrupts():
    """A process that was started in the background ignores SIGINT, and Python leaves it at that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_says_what_is_left(folder, monkeypatch):
    old = (folder / "net.onnx").read_bytes()

    def interrupt(*_, progress, **__):
        progress("export")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("torch_onnx_compat.export.export_compat", interrupt)
    done = run("export", "net.py:make", "-o", "net.onnx", "--report", "net.html")
    assert done.exit_code == 130
    last = done.stderr.splitlines()[-1]
    assert last.startswith("interrupted during 'export' after ")
    assert last.endswith(" s. net.onnx is the old file, as it was. net.html was not written.")
    assert (folder / "net.onnx").read_bytes() == old


def test_an_interrupt_after_the_file_says_that_it_is_there(folder, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("torch_onnx_compat.result.ExportResult.report", interrupt)
    done = run("export", "net.py:make", "-o", "new.onnx", "--report", "net.html")
    assert done.exit_code == 130
    assert "new.onnx is written. net.html was not written." in done.stderr


def test_steps_tell_the_time(folder):
    lines = run("export", "net.py:make", "-o", "net.onnx", "--no-verify").stderr.splitlines()
    assert lines[0].endswith(" s  load net.py:make ...")
    times = [float(line.split(" s ")[0]) for line in lines]
    assert times == sorted(times)


def test_long_lines_go_on_between_words():
    text = "title\n  axis batch: proven for all sizes, 1 and more; tried at 1, 2\n\n  short"
    assert console.fit(text, 30) == (
        "title\n  axis batch: proven for all\n      sizes, 1 and more; tried\n      at 1, 2\n\n  short"
    )


ROWS = [{"name": "resize_to_gather", "where": "layers.0.blocks.1.attention", "why": "as it is"}]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            80,
            [
                "name              where                        why",
                "resize_to_gather  layers.0.blocks.1.attention  as it is",
            ],
        ),
        (45, ["resize_to_gather", "  where: layers.0.blocks.1.attention", "  why: as it is"]),
    ],
)
def test_a_table_breaks_no_words(width, lines, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    console.print_table(ROWS)
    said = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out)
    assert [line.rstrip() for line in said.splitlines()] == lines


def test_a_table_in_a_pipe_has_a_line_for_each_row(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    console.print_table(ROWS)
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_random_weights_are_told():
    model = Model("torchvision:alexnet", None, None, None, False)
    (note,) = model.notes(Sample(nn.ReLU(), random="all"))
    assert note.startswith("random weights: torchvision:alexnet was built without trained ones")
    (note,) = model.notes(Sample(nn.ReLU(), random="the decoder's"))
    assert note.startswith("random weights (the decoder's): ")
    assert model.notes(Sample(nn.ReLU(), note="Quantized.")) == ("Quantized.",)


def test_axes_that_a_zoo_knows(tmp_path):
    model = Model("torchvision:alexnet", None, None, None, False, ["auto"])
    assert model.axes(Sample(nn.ReLU(), dynamic={"input": {0: "batch"}})) == {"input": {0: "batch"}}
    with pytest.raises(console.UsageError, match="nothing is known of the axes of torchvision:alexnet"):
        model.axes(Sample(nn.ReLU()))


def test_a_named_model_says_that_its_weights_are_random(tmp_path):
    done = run("export", "torchvision:squeezenet1_1", "--size", "64", "-o", tmp_path / "m.onnx", "--no-verify")
    assert "note: random weights: torchvision:squeezenet1_1" in done.stdout
    metadata = {entry.key: entry.value for entry in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert metadata["weights"] == "random (all): built without trained ones"


def test_stock_needs_a_report(tmp_path):
    done = run("export", "torch.nn:ReLU", "-o", tmp_path / "m.onnx", "--stock")
    assert done.exit_code == 2
    assert "--stock is for a report; give --report FILE, too." in " ".join(done.stderr.split())


@pytest.mark.parametrize(("content", "message"), [(b"", "it holds no graph"), (b"\x0a\xff", "cannot be read")])
def test_what_is_no_file_of_onnx_is_told_in_one_line(folder, content, message):
    (folder / "other.onnx").write_bytes(content)
    for command in (("check", "other.onnx", "--target", "openvino"), ("localise", "net.py:make", "other.onnx")):
        done = run(*command)
        assert done.exit_code in (1, 2)
        assert (message if command[0] == "check" else "error: ") in done.stderr
        assert "traceback" not in done.stderr


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("export", "net.py:make", "-o", "m.onnx", "--dynamic", "imge:0=b"), "unknown input 'imge'"),
        (("export", "net.py:make", "-o", "m.onnx", "--dynamic", "input:0=b:5..2"), "no size is within 5..2"),
        (("run", "net.onnx", "--sizes", "btch=3"), "the file has no dynamic axis 'btch'"),
        (("bench", "net.onnx", "--rounds", "0"), "bench: --rounds 0"),
        (("convert", "net.onnx", "-o", "new.onnx", "--opset", "9"), "--opset 9: out of range"),
        (("convert", "net.onnx", "-o", "new.onnx", "--opset", "99"), "--opset 99: out of range"),
        (("convert", "net.onnx", "-o", "net.onnx"), "'net.onnx' is the original itself"),
        (("convert", "short.onnx", "-o", "new.onnx"), "short.onnx: no ONNX file, or one that was cut off"),
        (("report", "short.onnx", "-o", "new.md"), "'short.onnx' cannot be read as an ONNX file"),
    ],
)
def test_a_wrong_command_line_is_exit_code_2(folder, argv, message):
    (folder / "short.onnx").write_bytes((folder / "net.onnx").read_bytes()[:100])
    done = run(*argv)
    assert message in done.stderr
    assert done.exit_code == 2


def test_the_models_own_source_is_not_replaced(folder):
    done = run("export", "net.py:make", "-o", "net.py")
    assert done.exit_code != 0
    assert "there is a .py file, which would be lost; give another name, such as net.onnx" in done.stderr
    assert (folder / "net.py").read_text() == NET


STATEFUL = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 4)
        self.register_buffer("h", torch.zeros(1, 4))

    def forward(self, x):
        self.h = torch.tanh(self.layer(x) + self.h)
        return self.h * 2

def make():
    return Net().eval(), torch.rand(1, 4)
"""


def test_a_file_with_state_and_other_outputs_is_compared_with_its_model(folder):
    (folder / "state.py").write_text(STATEFUL)
    as_exported = ("--state", "h", "--outputs", "layer,")
    assert run("export", "state.py:make", "-o", "state.onnx", *as_exported).exit_code == 0
    done = run("localise", "state.py:make", "state.onnx")
    assert done.exit_code == 2
    assert "name it here, too: --state h." in done.stderr
    assert run("localise", "state.py:make", "state.onnx", *as_exported).exit_code == 0
    done = run("compare", "state.onnx", "state.py:make", "--state", "h")
    assert done.exit_code == 2
    assert "the file has 3 outputs, and the model 2." in done.stderr
    done = run("compare", "state.onnx", "state.py:make", *as_exported, "--json")
    assert done.exit_code == 0
    assert [row["output"] for row in json.loads(done.stdout)["table"]] == ["layer", "output", "h_next"]
    assert run("report", "state.onnx", "-o", "state.md", "--model", "state.py:make", *as_exported).exit_code == 0


def test_the_example_of_an_export_gives_the_sizes_of_run_and_bench(folder):
    axes = "input:0=batch,2=height,3=width"
    assert run("export", "net.py:make", "-o", "free.onnx", "--dynamic", axes).exit_code == 0
    assert json.loads(run("run", "free.onnx", "--json").stdout)[0]["shape"] == "2x3x8x8"
    assert json.loads(run("run", "free.onnx", "--json", "--sizes", "height=9").stdout)[0]["shape"] == "2x3x9x8"
    few = ("--rounds", "1", "--runs", "1")
    done = run("bench", "free.onnx", *few)
    assert "batch=2, height=8, width=8" in done.stdout
    assert "nobody said" not in done.stderr
    foreign = onnx.load("free.onnx")
    del foreign.metadata_props[:]
    onnx.save(foreign, "foreign.onnx")
    done = run("bench", "foreign.onnx", *few, "--sizes", "batch=2")
    assert "note: foreign.onnx: nobody said the size of height, width; give --sizes height=..." in done.stderr


def test_a_file_of_fixed_sizes_is_compared_at_these(folder):
    axes = "input:0=batch,2=height,3=width"
    assert run("export", "net.py:make", "-o", "free.onnx", "--dynamic", axes).exit_code == 0
    done = run("compare", "free.onnx", "net.onnx")
    assert done.exit_code == 0, done.stdout
    assert "note: net.onnx takes batch=2, height=8, width=8 only, so nothing else was tried." in done.stdout


def test_names_that_match_no_model(folder):
    done = run("zoo", "torchvision", "--filter", "zzz*")
    assert done.exit_code == 2
    assert "no model of torchvision matches 'zzz*'" in done.stderr
