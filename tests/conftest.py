"""Fixtures that every test may use."""

import gc
import inspect
import re
import sys
import zlib

import pytest
import torch
from torch import nn
from torch.torch_version import TorchVersion

from torch_onnx_compat.catalogue.catalogue import catalogue
from torch_onnx_compat.catalogue.entry import EXPORTERS
from torch_onnx_compat.rewrite import owners_of

if "onednn" in torch.backends.quantized.supported_engines:
    # Without VNNI, fbgemm's transposed convolution gives other values at each run. Set before test files are imported,
    # as some build their models then.
    torch.backends.quantized.engine = "onednn"


def pytest_runtest_setup(item):
    """Skips what the installed torch cannot do through dynamo; TorchScript's side of the test runs everywhere."""
    exporter = item.callspec.params.get("exporter", "dynamo") if hasattr(item, "callspec") else "dynamo"
    for mark in item.iter_markers("dynamo_from"):
        version, reason = mark.args
        if exporter == "dynamo" and TorchVersion(torch.__version__) < version:
            pytest.skip(f"before torch {version}, {reason}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Leaves one exporter of each `one_exporter` case in the fast suite; its name chooses, so half are through each.

    What is slow through one exporter anyway stays in the suite through the other.
    """
    cases = {}
    for item in items:
        exporter = item.callspec.params.get("exporter") if hasattr(item, "callspec") else None
        if exporter is not None and item.get_closest_marker("one_exporter") and not item.get_closest_marker("slow"):
            cases.setdefault(re.sub("|".join(EXPORTERS), "", item.nodeid), []).append(item)
    for case, same in cases.items():
        for item in same:
            if item is not same[zlib.crc32(case.encode()) % len(same)]:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(params=EXPORTERS)
def exporter(request):
    return request.param


@pytest.fixture(autouse=True)
def _fixed_seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _distributions_check_arguments():
    """The first torch.compile of a process switches that off for good."""
    torch.distributions.Distribution.set_default_validate_args(True)


@pytest.fixture(autouse=True)
def _nothing_leaks(torchs_functions):
    """After every test, torch's functions, their code and its settings are as before, and nothing watches what runs."""
    before = settings()
    yield
    assert settings() == before
    changed = [place for place, known in torchs_functions.items() if state(*place) != known]
    assert [place for place in changed if not is_of_compiler(*place)] == []
    assert sys.getprofile() is None
    assert torch._C._get_tracing_state() is None
    assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0


@pytest.fixture(scope="session")
def torchs_functions():
    """The functions of torch's layers and those that entries stand in for, with their code."""
    layers = {layer for layer in vars(nn).values() if isinstance(layer, type)}
    owners = {base for layer in layers for base in layer.__mro__ if base.__module__.startswith("torch.nn")}
    places = [(owner, name) for owner in (*owners, nn.functional) for name in vars(owner)]
    exchanged = [name for entry in catalogue().rewrites() if entry.kind == "attribute" for name in entry.match]
    places += [place for name in exchanged for place in owners_of(name, ())]
    return {place: state(*place) for place in places if inspect.isfunction(getattr(*place))}


def settings():
    """What an export sets for the whole process while it runs."""
    return {
        "fast path of attention": torch.backends.mha.get_fastpath_enabled(),
        "gradients": torch.is_grad_enabled(),
        "depth of calls": sys.getrecursionlimit(),
        "collector": (gc.isenabled(), gc.get_threshold()),
        "hash of sizes": torch.SymInt.__hash__,
        "function for lines": sys.gettrace(),
        "dispatch keys": dispatch_keys(),
    }


def dispatch_keys():
    """The dispatch keys that this thread leaves out and adds."""
    return (
        torch._C._dispatch_tls_local_exclude_set().raw_repr(),
        torch._C._dispatch_tls_local_include_set().raw_repr(),
    )


def is_of_compiler(owner, name):
    """Whether torch.compile, which runs a while_loop in eager torch, has put its own function there for good."""
    return vars(owner)[name].__module__.startswith("torch._dynamo.")


def state(owner, name):
    function = vars(owner).get(name)
    return function, getattr(function, "__code__", None)


def pytest_make_collect_report(collector):
    torch.manual_seed(0)  # for what a test file draws when it is imported: the same in every process and selection


def pytest_configure(config):
    # Several workers share the cores, and a process that has torch's own threads hangs when it is forked.
    torch.set_num_threads(1)
