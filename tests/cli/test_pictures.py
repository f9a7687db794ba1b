"""Pictures as inputs of a file: in its layout, at its size, in its type."""

import json

import numpy as np
import pytest
from files.file_models import net, write
from PIL import Image
from typer.testing import CliRunner

from torch_onnx_compat import Normalize
from torch_onnx_compat.cli import app
from torch_onnx_compat.cli.console import UsageError
from torch_onnx_compat.cli.pictures import picture_input

PASS = """<ir_version: 8, opset_import: ["": 17]> g ({kind}[{shape}] x) => ({kind}[{shape}] y) {{ y = Identity(x) }}"""


@pytest.fixture
def picture(tmp_path):
    """A picture of 6 x 8, and its numbers (3, 6, 8)."""
    image = np.random.default_rng(0).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    Image.fromarray(image).save(tmp_path / "p.png")
    return tmp_path / "p.png", image.transpose(2, 0, 1)


@pytest.mark.parametrize("kind", ["float", "uint8", "float16"])
def test_layout_and_type(tmp_path, picture, kind):
    path, image = picture
    scale = 1 if kind == "uint8" else 255
    for shape, wanted in (("n, 3, h, w", image[None]), ("1, h, w, 3", image.transpose(1, 2, 0)[None])):
        file = write(tmp_path / "a.onnx", PASS.format(kind=kind, shape=shape))
        (found,) = picture_input(path, file).values()
        assert found.dtype == {"float": np.float32}.get(kind, kind)
        np.testing.assert_allclose(found.astype(np.float64), wanted / scale, atol=1e-3 if scale > 1 else 0)


def test_it_is_stretched_and_repeated_where_the_file_has_sizes(tmp_path, picture):
    path, image = picture
    file = write(tmp_path / "a.onnx", PASS.format(kind="uint8", shape="2, 3, 12, 8"))
    (found,) = picture_input(path, file).values()
    assert found.shape == (2, 3, 12, 8)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0][:, 0], image[:, 0])
    assert np.abs(found[0].mean((1, 2)) - image.mean((1, 2))).max() < 3


def test_a_normalize_gets_it_as_it_is(tmp_path, picture):
    path, image = picture
    found = picture_input(path, net(tmp_path / "a.onnx"), Normalize(layout="HWC"))
    np.testing.assert_array_equal(found["image"], image.transpose(1, 2, 0))


def test_what_is_no_picture_and_what_takes_none(tmp_path, picture):
    path, _ = picture
    (tmp_path / "q.png").write_bytes(b"no picture")
    with pytest.raises(UsageError, match=r"q\.png: cannot be read as a picture"):
        picture_input(tmp_path / "q.png", net(tmp_path / "a.onnx"))
    file = write(tmp_path / "b.onnx", PASS.format(kind="float", shape="4, 5"))
    with pytest.raises(UsageError, match=r"input 'x' is of shape \['4', '5'\]; wanted one of pictures"):
        picture_input(path, file)


def test_the_commands_take_it(tmp_path, picture):
    path, image = picture
    file = write(tmp_path / "a.onnx", PASS.format(kind="float", shape="n, 3, h, w"))
    done = CliRunner().invoke(app, ["run", str(file), "--input", str(path), "-o", str(tmp_path / "o.npz")])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"][0], image / 255, atol=1e-6)
    words = ["convert", str(net(tmp_path / "n.onnx")), "-o", str(tmp_path / "b.onnx"), "--json", "--input", str(path)]
    words += ["--preprocess", "mean=0.5 scale=1/255 layout=HWC size=8x8 fit=letterbox"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert any(row["case"].startswith("given") for row in json.loads(done.stdout)["table"])
