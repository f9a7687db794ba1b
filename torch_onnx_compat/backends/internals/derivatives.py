"""Programs that differentiate as they run, captured below autograd.

torch.export keeps autograd out of its programs, and fails where a model calls torch.autograd.grad or torch.func.grad.
make_fx records the operators that autograd calls, those of the backward pass among them, on the same symbolic sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from torch_onnx_compat.backends.internals.symbolic import python_kernels
from torch_onnx_compat.errors import UnsupportedError

aten = torch.ops.aten


@dataclass(frozen=True)
class Captured:
    """A module of plain operators, and what was taken for granted about sizes."""

    module: nn.Module
    conditions: tuple[Any, ...]
    """Sympy expressions over the symbols of `sizes`."""
    sizes: dict[Any, tuple[int, int]]
    """The input and the dimension that each symbol is the size of."""


@contextmanager
def watch_backward(ran: Callable[[], None]) -> Iterator[None]:
    """While active, `ran` is told of every backward pass, whichever function asks for it."""
    engine: Any = torch.autograd
    before = engine._engine_run_backward

    def run(*args: Any, **kwargs: Any) -> Any:
        ran()
        return before(*args, **kwargs)

    engine._engine_run_backward = run
    try:
        yield
    finally:
        engine._engine_run_backward = before


def capture(model: nn.Module, tensors: Sequence[Tensor], dynamic: Sequence[Collection[int]]) -> Captured:
    """Records what a model and autograd compute.

    Args:
        model: Takes tensors, returns tensors. Its parameters and buffers stay its own.
        tensors: The example.
        dynamic: The dimensions of each tensor whose sizes vary.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

    environment = ShapeEnv(duck_shape=False)
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    fakes, sizes = [], {}
    for number, (tensor, dims) in enumerate(zip(tensors, dynamic, strict=True)):
        kinds = [DimDynamic.DYNAMIC if dim in dims else DimDynamic.STATIC for dim in range(tensor.dim())]
        context: Any = StatelessSymbolicContext(dynamic_sizes=kinds)
        fakes.append(mode.from_tensor(tensor, symbolic_context=context))
        shape: Any = fakes[-1].shape
        sizes.update({shape[dim].node.expr: (number, dim) for dim in dims})

    def record(function: Any) -> Any:
        # Fused attention has a backward pass of its own, which nobody writes in other operators.
        with mode, python_kernels(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            traced = make_fx(function, _backward_decompositions(), tracing_mode="real", _allow_non_fake_inputs=True)
            return traced(*fakes)

    # Writes in place are told apart from views afterwards: within a backward pass torch does not do both.
    module = record(torch.func.functionalize(record(model), remove="mutations"))
    _name_inputs(module)
    _name_weights(module, model)
    conditions = tuple(guard.expr for guard in environment.guards)
    return Captured(module, conditions, sizes)


def _backward_decompositions() -> dict[Any, Callable[..., Any]]:
    """Torch's own formulas for operators of the backward pass, and what torch has no formula for."""
    from torch._decomp import decomposition_table

    found = {operator: formula for operator, formula in decomposition_table.items() if "backward" in str(operator)}
    return {
        **found,
        aten.convolution_backward.default: _convolution_backward,
        aten.avg_pool2d_backward.default: _avg_pool2d_backward,
    }


def _convolution_backward(
    grad: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """Gradients of a convolution: its input's is the other kind of convolution, its bias's a sum."""
    if output_mask[1]:
        raise UnsupportedError("the gradient of a convolution's weights has no form in ONNX here.")
    made = None
    if output_mask[0] and transposed:
        made = aten.convolution(grad, weight, None, stride, padding, dilation, False, [0] * len(stride), groups)
    elif output_mask[0]:
        made = _spread(grad, weight, input.shape[2:], stride, padding, dilation, groups)
    axes = [dim for dim in range(grad.dim()) if dim != 1]
    return made, None, grad.sum(axes) if output_mask[2] else None


def _spread(
    grad: Tensor,
    weight: Tensor,
    sizes: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """The transposed convolution that yields these sizes.

    It is made with the largest padding of its output, and cut: which one would do varies with the sizes, and ONNX wants
    a number.
    """
    further = [step - 1 for step in stride]
    made: Tensor = aten.convolution(grad, weight, None, stride, padding, dilation, True, further, groups)
    for dim, size in enumerate(sizes, 2):
        made = made.narrow(dim, 0, size)
    return made


def _avg_pool2d_backward(
    grad: Tensor,
    input: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Each cell of a mean goes to the cells of its window, which a transposed convolution of ones does."""
    if ceil_mode:
        raise UnsupportedError("the gradient of avg_pool2d with ceil_mode=True has no form in ONNX here.")
    window, stride = _pair(kernel_size), _pair(stride or kernel_size)
    padding, ones = _pair(padding), grad.new_ones((1, 1, *window))
    count: Any = divisor_override or window[0] * window[1]
    if divisor_override is None and not count_include_pad:
        there = input.new_ones((1, 1, *input.shape[-2:]))
        count = aten.convolution(there, ones, None, stride, padding, (1, 1), False, (0, 0), 1)
    planes = (grad / count).reshape(-1, 1, *grad.shape[-2:])
    return _spread(planes, ones, input.shape[-2:], stride, padding, (1, 1), 1).reshape(input.shape)


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    return numbers[0], numbers[-1]


def _name_inputs(module: Any) -> None:
    """Calls the inputs ``tensor_0``, and so on."""
    placeholders = (node for node in module.graph.nodes if node.op == "placeholder")
    for number, node in enumerate(placeholders):
        node.name = node.target = f"tensor_{number}"
    module.recompile()


def _name_weights(module: Any, model: nn.Module) -> None:
    """Gives the weights their paths in the model back; other constants keep their names."""
    paths = {id(tensor): name for name, tensor in (*model.named_buffers(), *model.named_parameters())}
    for node in module.graph.nodes:
        path = paths.get(id(getattr(module, node.target, None))) if node.op == "get_attr" else None
        if path is None:
            continue
        tensor = getattr(module, node.target)
        *parents, name = path.split(".")
        owner = module
        for parent in parents:
            if parent not in owner._modules:
                owner.add_module(parent, nn.Module())
            owner = getattr(owner, parent)
        if isinstance(tensor, nn.Parameter):
            owner.register_parameter(name, tensor)
        else:
            owner.register_buffer(name, tensor)
        node.target = path
    module.recompile()
