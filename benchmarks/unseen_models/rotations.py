"""Rotations and rigid motions, and atoms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unseen_models.table import NT, T12, N, Part, add, load

# roma


def _rotations(n: int) -> Tensor:
    matrices, _ = torch.linalg.qr(torch.randn(n, 3, 3))
    return matrices * matrices.det()[:, None, None]


def _quaternions(n: int) -> Tensor:
    return nn.functional.normalize(torch.randn(n, 4), dim=-1)


def _roma(name: str, takes: Any, *more: Any) -> None:
    count = 2 if name.endswith(("slerp", "product", "action", "distance")) else 1

    def call(_: nn.Module, *args: Tensor) -> Any:
        return getattr(load("roma"), name)(*args, *more)

    def inputs(n: int) -> Any:
        return tuple(takes(n) for _ in range(count))

    add("roma", f"roma {name}", lambda: Part(nn.Identity(), call), inputs, *(N,) * count)


for each in ("rotmat_to_unitquat", "rotmat_to_rotvec"):
    _roma(each, _rotations)
for each in ("unitquat_to_rotvec", "unitquat_to_rotmat"):
    _roma(each, _quaternions)
for each in ("rotvec_to_unitquat", "rotvec_to_rotmat"):
    _roma(each, lambda n: torch.randn(n, 3))
_roma("unitquat_slerp", _quaternions, torch.linspace(0, 1, 5))
_roma("rotmat_geodesic_distance", _rotations)
_roma("special_procrustes", lambda n: torch.randn(n, 3, 3))
_roma("special_gramschmidt", lambda n: torch.randn(n, 3, 2))
_roma("symmatrixvec_to_unitquat", lambda n: torch.randn(n, 10))
add(
    "roma",
    "roma rigid_points_registration",
    lambda: Part(nn.Identity(), lambda _, x, y: load("roma").rigid_points_registration(x, y)),
    lambda n, t=12: (torch.randn(n, t, 3), torch.randn(n, t, 3)),
    NT,
    NT,
    t=T12,
)


# pypose


def _pypose(call: Callable[[Any, Tensor], Any]) -> Callable[[], nn.Module]:
    return lambda: Part(nn.Identity(), lambda _, x: call(load("pypose"), x))


def _rotvec(n: int) -> Tensor:
    x = torch.randn(n, 3)
    return x * torch.tensor([1.0, 0, 1e-3]).repeat(n)[:n, None]


def _quaternion(n: int) -> Tensor:
    return nn.functional.normalize(torch.randn(n, 4), dim=-1)


POSE: dict[str, tuple[Any, Any]] = {
    "so3 Exp": (lambda p, x: p.so3(x).Exp().tensor(), _rotvec),
    "so3 matrix": (lambda p, x: p.so3(x).Exp().matrix(), _rotvec),
    "SO3 Log": (lambda p, x: p.SO3(x).Log().tensor(), _quaternion),
    "SO3 euler": (lambda p, x: p.SO3(x).euler(), _quaternion),
    "se3 Exp and Log": (lambda p, x: p.se3(x).Exp().Log().tensor(), lambda n: torch.randn(n, 6)),
    "sim3 Exp": (lambda p, x: p.sim3(x).Exp().tensor(), lambda n: torch.randn(n, 7)),
    "so3 Jr": (lambda p, x: p.so3(x).Jr(), _rotvec),
    "mat2SO3": (lambda p, x: p.mat2SO3(p.so3(x).Exp().matrix()).tensor(), _rotvec),
    "vec2skew": (lambda p, x: p.vec2skew(x), _rotvec),
}
for each, (call, inputs) in POSE.items():
    add("pypose", f"pypose {each}", _pypose(call), inputs)
add(
    "pypose",
    "pypose cumulative product",
    _pypose(lambda p, x: p.cumprod(p.so3(x).Exp(), dim=1).tensor()),
    lambda n, t=8: torch.randn(n, t, 3) * 0.3,
    NT,
    t=(8, 4, 16),
)
add(
    "pypose",
    "pypose svdtf",
    lambda: Part(nn.Identity(), lambda _, x, y: load("pypose").svdtf(x, y).tensor()),
    lambda n, t=8: (torch.randn(n, t, 3), torch.randn(n, t, 3)),
    NT,
    NT,
    t=(8, 5, 12),
)
add(
    "pypose",
    "pypose IMUPreintegrator",
    lambda: Part(
        load("pypose").module.IMUPreintegrator(reset=True, prop_cov=False),
        lambda m, *args: [v.tensor() if hasattr(v, "ltype") else v for v in m(*args).values() if v is not None],
    ),
    lambda n, t=7: (torch.full((n, t, 1), 0.1), torch.randn(n, t, 3), torch.randn(n, t, 3)),
    NT,
    NT,
    NT,
    t=(7, 3, 15),
)


# mace


def _mace() -> nn.Module:
    package, o3 = load("mace.modules"), load("e3nn.o3")
    gate = nn.functional.silu
    options = {"num_bessel": 4, "num_polynomial_cutoff": 3, "max_ell": 2, "num_interactions": 2, "num_elements": 2}
    block = package.interaction_classes["RealAgnosticResidualInteractionBlock"]
    model = package.ScaleShiftMACE(
        r_max=4.0,
        **options,
        interaction_cls=block,
        interaction_cls_first=block,
        hidden_irreps=o3.Irreps("4x0e + 4x1o"),
        MLP_irreps=o3.Irreps("4x0e"),
        gate=gate,
        atomic_energies=torch.tensor([[1.0, 2.0]]).numpy(),
        avg_num_neighbors=4.0,
        atomic_numbers=[1, 8],
        correlation=2,
        radial_type="bessel",
        atomic_inter_scale=1.0,
        atomic_inter_shift=0.0,
    ).float()

    def call(model: Any, positions: Tensor, kinds: Tensor, edges: Tensor) -> Any:
        data = {
            "positions": positions,
            "node_attrs": nn.functional.one_hot(kinds, 2).float(),
            "edge_index": edges,
            "shifts": torch.zeros(edges.shape[1], 3),
            "unit_shifts": torch.zeros(edges.shape[1], 3),
            "cell": torch.zeros(3, 3),
            "batch": torch.zeros_like(kinds),
            "ptr": torch.stack([torch.zeros_like(kinds[0]), torch.ones_like(kinds).sum()]),
            "head": torch.zeros(1, dtype=torch.long),
        }
        found = model(data, compute_force=False)
        return found["energy"], found["node_energy"]

    return Part(model, call)


def _molecule(n: int, t: int = 5) -> tuple[Tensor, Tensor, Tensor]:
    pairs = (1 - torch.eye(t)).nonzero().T.contiguous()
    return torch.rand(t, 3) * 2, torch.randint(2, (t,)), pairs


add("mace-torch", "ScaleShiftMACE", _mace, _molecule, {0: "t"}, {0: "t"}, {1: "e"}, t=(5, 4, 7))
