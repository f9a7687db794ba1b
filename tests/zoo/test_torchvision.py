"""torchvision's models: every task has its inputs, and no output is degenerate."""

import pytest
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from torch_onnx_compat.zoo import load
from torch_onnx_compat.zoo import torchvision as zoo

ONE_OF_EACH_TASK = [
    pytest.param("mobilenet_v3_small", (64, 64), id="classification"),
    pytest.param("vit_b_32", None, id="vision transformer"),
    pytest.param("googlenet", (64, 64), id="own initialisation"),
    pytest.param("lraspp_mobilenet_v3_large", (64, 96), id="segmentation"),
    pytest.param("r3d_18", (32, 32), id="video"),
    pytest.param("raft_small", None, id="optical flow"),
    pytest.param("ssdlite320_mobilenet_v3_large", (96, 64), id="detection"),
    pytest.param("quantized_resnet18", (64, 64), id="quantization"),
]


def _tensors(value: object) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize(("name", "size"), ONE_OF_EACH_TASK)
def test_every_task(name: str, size: tuple[int, int] | None) -> None:
    sample = load(f"torchvision:{name}", size)
    with torch.no_grad():
        outputs = _tensors(sample.model(*sample.args))
    assert not sample.model.training
    for output in outputs:
        assert output.numel() > 0
        assert output.isfinite().all()
        if output.is_floating_point() and output.numel() > 1:
            assert float(output.std()) > 1e-2 * float(output.abs().max())
    if size:
        assert all(image.shape[-2:] == size for image in _tensors(sample.args))
    assert set(sample.dynamic) <= set(sample.input_names)


def test_every_name_has_a_task_and_a_size() -> None:
    for name in zoo.names():
        task = zoo.models.get_model_builder(name).__module__.split(".")[2:-1]
        assert not task or task[0] in zoo._TASKS, name
        if not task or task[0] in ("segmentation", "video", "quantization"):
            height, width = zoo._trained_size(name)
            assert height == width >= 112


def test_quantization_leaves_torchs_engine_alone() -> None:
    before = torch.backends.quantized.engine
    load("torchvision:quantized_shufflenet_v2_x0_5", (64, 64))
    assert torch.backends.quantized.engine == before


def test_loading_twice_gives_the_same_numbers() -> None:
    first, second = (load("torchvision:squeezenet1_1", (64, 64)) for _ in range(2))
    with torch.no_grad():
        assert torch.equal(first.model(*first.args), second.model(*second.args))


def test_detectors_resize_small_pictures_to_twice_their_size() -> None:
    detector = load("torchvision:fasterrcnn_mobilenet_v3_large_320_fpn", (64, 96)).model
    assert detector.transform.min_size == (128,)
    assert detector.transform.max_size == 384
