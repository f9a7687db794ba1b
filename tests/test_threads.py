"""What a model computes in threads of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import onnxruntime
import pytest
import torch
from torch import Tensor, nn

from torch_onnx_compat import export_compat
from torch_onnx_compat.threads import UnheardThread, hear_threads


class InPool(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with ThreadPoolExecutor(1) as pool:
            is_large = pool.submit(lambda: bool(x.mean() > 100)).result()
        return x * 2 if is_large else x * 3


class InThread(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        found: list[Tensor] = []
        thread = threading.Thread(target=lambda: found.append(x.mean()))
        thread.start()
        thread.join()
        return x * found[0]


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_decision_in_a_pool_of_threads_is_heard(exporter, tmp_path):
    x = torch.rand(3, 4)
    export_compat(InPool(), (x,), tmp_path / "m.onnx", exporter=exporter)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for values in (x, x + 200):
        (found,) = session.run(None, {"x": values.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), InPool()(values))


@pytest.mark.parametrize("exporter", ["torchscript", "dynamo"])
def test_a_thread_that_computes_is_refused(exporter, tmp_path):
    with pytest.raises(UnheardThread, match="in a thread that it starts"):
        export_compat(InThread(), (torch.rand(3, 4),), tmp_path / "m.onnx", exporter=exporter)


def test_threads_that_call_nothing_of_torch_are_left_alone():
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    with hear_threads():
        thread = threading.Thread(target=lambda: None)
        thread.start()
        thread.join()
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == (start, submit)


def test_the_result_of_a_pool_raises_the_error():
    with hear_threads(), ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            future.result()


def test_threads_are_as_before_after_an_interrupt():
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit
    with pytest.raises(KeyboardInterrupt), hear_threads():
        raise KeyboardInterrupt
    assert (threading.Thread.start, ThreadPoolExecutor.submit) == (start, submit)
