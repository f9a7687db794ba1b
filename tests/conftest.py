"""Fixtures that every test may use."""

import pytest
import torch

from torch_onnx_compat.entry import EXPORTERS


@pytest.fixture(params=EXPORTERS)
def exporter(request):
    return request.param


@pytest.fixture(autouse=True)
def _fixed_seed():
    torch.manual_seed(0)


def pytest_make_collect_report(collector):
    torch.manual_seed(0)  # for what a test file draws when it is imported: the same in every process and selection


def pytest_configure(config):
    # Several workers share the cores, and a process that has torch's own threads hangs when it is forked.
    torch.set_num_threads(1)
