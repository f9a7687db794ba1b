"""Linear algebra: solvers and decompositions of small matrices, norms, products."""

import torch
from torch import nn

from operator_cases.case import Case

APPROXIMATE = {"allow_approximate": True}


def normal(*sizes: int, dtype: torch.dtype = torch.float32):
    return lambda n: (torch.randn(n, *sizes).to(dtype),)


def pair(first: tuple[int, ...], second: tuple[int, ...]):
    return lambda n: (torch.randn(n, *first), torch.randn(n, *second))


def matrices(size: int, *more: tuple[int, ...], dtype: torch.dtype = torch.float32):
    """Batches of matrices with a zero first pivot: without an exchange of rows they cannot be eliminated."""

    def inputs(n: int):
        m = torch.eye(size).flip(0) * 3 + torch.rand(n, size, size)
        m[:, 0, 0] = 0
        return (m.to(dtype), *(torch.randn(n, *sizes).to(dtype) for sizes in more))

    return inputs


def positive(size: int, *more: tuple[int, ...]):
    """Batches of positive definite matrices, then further tensors."""

    def inputs(n: int):
        m = torch.randn(n, size, size)
        return (m @ m.mT + torch.eye(size), *(torch.randn(n, *sizes) for sizes in more))

    return inputs


def triangles(size: int, *more: tuple[int, ...]):
    """Batches of full matrices with a diagonal away from zero: the other triangle must be left out of account."""

    def inputs(n: int):
        m = torch.randn(n, size, size) + 3 * torch.eye(size)
        return (m, *(torch.randn(n, *sizes) for sizes in more))

    return inputs


def symmetric(size: int):
    def inputs(n: int):
        m = torch.randn(n, size, size)
        return (m + m.mT,)

    return inputs


class Whitening(nn.Module):
    """Decorrelates channels by the inverse Cholesky factor of their covariance."""

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        covariance = centred @ centred.mT / x.shape[-1] + 1e-3 * torch.eye(x.shape[1])
        factor = torch.linalg.cholesky(covariance)
        return torch.linalg.solve_triangular(factor, centred, upper=False)


class Kabsch(nn.Module):
    """The rotation that maps one set of points best to another."""

    def forward(self, p, q):
        u, _, vh = torch.linalg.svd((p - p.mean(1, keepdim=True)).mT @ (q - q.mean(1, keepdim=True)))
        sign = torch.sign(torch.det(u) * torch.det(vh))
        last = torch.tensor([0.0, 0.0, 1.0])
        scale = (1 - last) + last * sign[:, None]
        return (u * scale[:, None]) @ vh


def near(x):
    """Points, and the same points turned and disturbed, so that the best rotation is well determined."""
    p = torch.randn(x, 12, 3)
    turn = torch.tensor([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return p, p @ turn + 0.1 * torch.randn(x, 12, 3)


L = torch.linalg

CASES = [
    # Inverse and determinant
    Case("linalg.inv", "2x2", lambda m: L.inv(m), matrices(2)),
    Case("linalg.inv", "3x3", lambda m: L.inv(m), matrices(3)),
    Case("inverse", "4x4, method", lambda m: m.inverse(), matrices(4)),
    Case("inverse", "8x8, float64", lambda m: torch.inverse(m), matrices(8, dtype=torch.float64)),
    Case("linalg.inv", "1x1", lambda m: L.inv(m), lambda n: (torch.rand(n, 1, 1) + 1,)),
    Case("linalg.inv", "3x3, of several batch axes", lambda m: L.inv(m[:, None] * torch.ones(1, 2, 1, 1)), matrices(3)),
    Case("linalg.inv", "no batch", lambda m: L.inv(m), lambda n: matrices(3)(1)[0].unbind(0)),
    Case("linalg.inv", "12x12", lambda m: L.inv(m), matrices(12), declined="must have 1 to 8 rows, got 12"),
    Case("linalg.inv_ex", "3x3", lambda m: L.inv_ex(m).inverse, matrices(3)),
    Case("det", "2x2, 3x3 and 4x4", lambda m: (m[:, :2, :2].det(), torch.det(m[:, 1:, 1:]), L.det(m)), matrices(4)),
    Case("det", "8x8", lambda m: torch.det(m), matrices(8)),
    Case("det", "4x4, float64", lambda m: torch.det(m), matrices(4, dtype=torch.float64)),
    Case("slogdet", "3x3", lambda m: tuple(torch.slogdet(m)), matrices(3)),
    Case("linalg.slogdet", "5x5", lambda m: tuple(L.slogdet(m)), matrices(5)),
    Case("logdet", "3x3", lambda m: (torch.logdet(m), (m @ m.mT).logdet()), matrices(3)),
    # Systems
    Case("linalg.solve", "3x3, several right-hand sides", lambda a, b: L.solve(a, b), matrices(3, (3, 2))),
    Case("linalg.solve", "4x4, vectors", lambda a, b: L.solve(a, b), matrices(4, (4,))),
    Case("linalg.solve", "3x3, from the right", lambda a, b: L.solve(a, b, left=False), matrices(3, (2, 3))),
    Case("linalg.solve", "6x6", lambda a, b: L.solve(a, b), matrices(6, (6, 1))),
    Case("cholesky", "3x3", lambda m: (L.cholesky(m), L.cholesky_ex(m).L, L.cholesky(m, upper=True)), positive(3)),
    Case("linalg.cholesky", "8x8, upper", lambda m: L.cholesky(m, upper=True), positive(8)),
    Case("cholesky_solve", "4x4", lambda m, b: torch.cholesky_solve(b, L.cholesky(m)), positive(4, (4, 2))),
    Case("cholesky_inverse", "3x3", lambda m: torch.cholesky_inverse(L.cholesky(m)), positive(3)),
    Case(
        "linalg.solve_triangular",
        "lower, upper, unit, from the right",
        lambda a, b: (
            *(L.solve_triangular(a.tril(), b, upper=False), L.solve_triangular(a.triu(), b, upper=True)),
            *(L.solve_triangular(a, b, upper=False, unitriangular=True),),
            *(L.solve_triangular(a.triu(), b.mT, upper=True, left=False),),
        ),
        triangles(4, (4, 2)),
    ),
    Case(
        "triangular_solve",
        "upper, transposed",
        lambda a, b: (
            torch.triangular_solve(b, a).solution,
            torch.triangular_solve(b, a, upper=False, transpose=True).solution,
        ),
        triangles(3, (3, 2)),
    ),
    Case("linalg.lstsq", "5x3", lambda a, b: L.lstsq(a, b).solution, pair((5, 3), (5, 2))),
    Case("linalg.lstsq", "gels", lambda a, b: L.lstsq(a, b, driver="gels").solution, pair((5, 3), (5, 2))),
    Case("linalg.pinv", "3x2", lambda a: (L.pinv(a), L.pinv(a.mT)), normal(3, 2), options=APPROXIMATE),
    Case("linalg.pinv", "without leave", lambda a: L.pinv(a), normal(3, 2), declined="allow_approximate"),
    Case("linalg.lu", "4x4", lambda m: tuple(L.lu(m)), matrices(4), declined="no operator for this factorisation"),
    Case(
        "linalg.lu_factor",
        "and lu_solve",
        lambda a, b: L.lu_solve(*L.lu_factor(a), b),
        matrices(3, (3, 2)),
        declined="no operator for this factorisation",
    ),
    Case("whitening", "3 channels", Whitening(), normal(3, 16)),
    # Powers
    Case("matrix_power", "0 to 5", lambda m: tuple(torch.matrix_power(m, k) for k in (0, 1, 2, 3, 5)), normal(3, 3)),
    Case("matrix_power", "-2", lambda m: L.matrix_power(m, -2), matrices(3)),
    Case("matrix_exp", "3x3", lambda m: torch.matrix_exp(m), normal(3, 3), options=APPROXIMATE),
    Case("matrix_exp", "exact wanted", lambda m: torch.matrix_exp(m), normal(3, 3), declined="allow_approximate"),
    # Decompositions
    Case("linalg.qr", "4x3", lambda m: tuple(L.qr(m)), normal(4, 3)),
    Case("linalg.qr", "3x3", lambda m: tuple(L.qr(m)), normal(3, 3)),
    Case("linalg.qr", "complete, 3x5, r", lambda m: (*L.qr(m[:, :2]), *L.qr(m, mode="r")[1:]), normal(3, 5)),
    Case("linalg.svdvals", "3x3", lambda m: L.svdvals(m), normal(3, 3), options=APPROXIMATE),
    Case("linalg.eigvalsh", "3x3", lambda m: L.eigvalsh(m), symmetric(3), options=APPROXIMATE),
    Case(
        "linalg.eigh",
        "3x3, up to signs",
        lambda m: (L.eigh(m).eigenvalues, L.eigh(m)[1].abs()),
        symmetric(3),
        options=APPROXIMATE,
    ),
    Case(
        "linalg.svd",
        "3x3, put together again",
        lambda m: (lambda u, s, vh: (s, u.abs(), vh.abs(), (u * s[:, None]) @ vh))(*L.svd(m)),
        normal(3, 3),
        options=APPROXIMATE,
    ),
    Case("svd", "Kabsch's rotation", Kabsch(), near, options=APPROXIMATE),
    Case(
        "linalg.eig",
        "3x3",
        lambda m: torch.view_as_real(L.eigvals(m)),
        normal(3, 3),
        declined="no operator for this factorisation",
    ),
    # Norms
    Case(
        "norm",
        "all elements",
        lambda x: (torch.norm(x), x.norm(p=1), torch.norm(x, p=3), x.norm(p=float("inf")), x.norm(p=0)),
        normal(3, 4),
    ),
    Case(
        "norm",
        "axes",
        lambda x: (
            *(torch.norm(x, dim=1), x.norm(dim=(1, 2)), x.norm(p=1, dim=-1), x.norm(2, 1, True), x.norm(3, -1)),
            *(x.norm(p=float("inf"), dim=1), x.norm(p=float("-inf"), dim=2), x.norm(p=0, dim=1, keepdim=True)),
            *(x.norm(p="fro", dim=(1, 2)), torch.norm(x, p=0.5, dim=1)),
        ),
        lambda n: (torch.randn(n, 3, 4).round(decimals=0) + torch.tensor([0.0, 0.5, 0.0, -1.5]),),
    ),
    Case(
        "linalg.vector_norm",
        "orders",
        lambda x: tuple(L.vector_norm(x, p, dim=(1,)) for p in (0, 1, 2, 3, 2.5, float("inf"), -float("inf"), -1)),
        normal(3, 4),
    ),
    Case(
        "linalg.vector_norm",
        "several axes, all",
        lambda x: (
            *(L.vector_norm(x), L.vector_norm(x, 1, dim=(-1, 1)), L.vector_norm(x, 3, dim=(1, 2), keepdim=True)),
            *(L.vector_norm(x, float("inf"), dim=(1, 2)), L.vector_norm(x, dim=2, dtype=torch.float64)),
        ),
        normal(3, 4),
    ),
    Case(
        "linalg.matrix_norm",
        "fro, 1, inf",
        lambda x: tuple(L.matrix_norm(x, p) for p in ("fro", 1, -1, float("inf"), -float("inf"))),
        normal(3, 4),
    ),
    Case(
        "linalg.matrix_norm",
        "nuc, 2",
        lambda x: (L.matrix_norm(x, "nuc"), L.matrix_norm(x, 2)),
        normal(3, 3),
        options=APPROXIMATE,
    ),
    Case(
        "linalg.norm",
        "vectors and matrices",
        lambda x: (
            *(L.norm(x), L.norm(x, dim=-1), L.norm(x, 1, dim=1, keepdim=True), L.norm(x, "fro", dim=(1, 2))),
            *(L.norm(x, 1, dim=(1, 2)), L.norm(x, float("inf"), dim=-1), L.norm(x, 0, dim=-1)),
        ),
        normal(3, 4),
    ),
    Case(
        "normalize",
        "p = 1, 2, inf",
        lambda x: tuple(nn.functional.normalize(x, p, 1) for p in (1, 2, torch.inf)),
        normal(3, 4),
    ),
    # Products
    Case(
        "trace",
        "",
        lambda x: (torch.trace(x), x.mT.trace(), x.to(torch.int64).trace()),
        lambda n: (torch.randn(4, 3) * n,),
    ),
    Case("outer", "ger", lambda x, y: (torch.outer(x, y), x.ger(y)), lambda n: (torch.randn(n), torch.randn(3))),
    Case(
        "inner", "", lambda x, y: (torch.inner(x, y), x.inner(y[0])), lambda n: (torch.randn(n, 4), torch.randn(3, 4))
    ),
    Case(
        "dot", "vdot, mv", lambda x: (x[0].dot(x[1]), torch.vdot(x[0], x[1]), x.mv(x[0]), torch.mv(x, x[1])), normal(4)
    ),
    Case(
        "bmm",
        "baddbmm, addmm, addmv, addr, addbmm",
        lambda a, b: (
            *(torch.bmm(a, b), torch.baddbmm(a[:, :, :2], a, b, beta=0.5, alpha=2), a[:, :, :2].baddbmm(a, b)),
            *(torch.addmm(a[0, :, :2], a[0], b[0], beta=3), torch.addbmm(a[0, :, :2], a, b, alpha=0.5)),
            *(torch.addmv(a[0, :, 0], a[0], b[0, :, 0], alpha=2), torch.addr(a[0, :, :2], a[0, :, 1], b[0, 1], beta=2)),
        ),
        pair((3, 4), (4, 2)),
    ),
    Case(
        "matmul",
        "every combination of ranks",
        lambda a, b: (
            *(a @ b, a[0, 0] @ b[0, :, 0], a[0, 0] @ b, a @ b[0, :, 0], a[0] @ b[0], a[:, None] @ b, a @ b[0]),
            *(a.unsqueeze(1) @ b.unsqueeze(0), torch.matmul(a[0], b), (a[0, 0] @ b[0]), a.long() @ b.long()),
        ),
        pair((3, 4), (4, 2)),
    ),
    Case(
        "tensordot",
        "dims as number and pairs",
        lambda x, y: (
            *(torch.tensordot(x, y, 1), torch.tensordot(x, y.mT, ([2], [0])), torch.tensordot(x, x, ([1, 2], [1, 2]))),
            *(torch.tensordot(x, y, dims=0), torch.tensordot(x, y, ([-1], [-2]))),
        ),
        lambda n: (torch.randn(n, 3, 4), torch.randn(4, 4)),
    ),
    Case(
        "einsum",
        "products",
        lambda a, b: (
            *(torch.einsum("bij,bjk->bik", a, b), torch.einsum("bij,bjk", a, b), torch.einsum("bij,cjk->bcik", a, b)),
            *(
                torch.einsum("bij,bjk->k", a, b),
                torch.einsum("...ij,...jk->...ik", a, b),
                torch.einsum("i,j->ij", a[0, 0], b[0, 0]),
            ),
            *(
                torch.einsum("bij, bjk -> kb", a, b),
                torch.einsum("bij,bij->b", a, a),
                torch.einsum("bhd,bkd->bhk", a, a),
            ),
        ),
        pair((3, 4), (4, 2)),
    ),
    Case(
        "einsum",
        "one operand: transpose, sum, diagonal",
        lambda x: (
            *(
                torch.einsum("bij->bji", x),
                torch.einsum("bij->", x),
                torch.einsum("bij->j", x),
                torch.einsum("...i->...", x),
            ),
            *(torch.einsum("b...->...b", x), torch.einsum("bij->bi", x), torch.einsum("ij->ji", x[0])),
        ),
        normal(3, 4),
    ),
    Case("einsum", "diagonal", lambda x: (torch.einsum("bii->bi", x), torch.einsum("bii->b", x)), normal(3, 3)),
    Case(
        "einsum",
        "three operands, outputs in another order",
        lambda a, b: (torch.einsum("bij,bjk,bk->ib", a, b, b[:, 0]), torch.einsum("bij,jk,k->bi", a, b[0], b[0, 0])),
        pair((3, 4), (4, 2)),
    ),
    Case("einsum", "sublists", lambda a, b: torch.einsum(a, [0, 1, 2], b, [0, 2, 3], [0, 3, 1]), pair((3, 4), (4, 2))),
    Case("einsum", "integers", lambda a, b: torch.einsum("bij,bjk->bik", a.long(), b.long()), pair((3, 4), (4, 2))),
    Case(
        "multi_dot",
        "three, vectors",
        lambda x, y: (L.multi_dot([x, y, y.mT]), L.multi_dot([x[0], y, y[0]])),
        lambda n: (torch.randn(n, 4), torch.randn(4, 4)),
    ),
    Case(
        "chain_matmul", "", lambda x, y: torch.chain_matmul(x, y, y), lambda n: (torch.randn(n, 4), torch.randn(4, 4))
    ),
    Case(
        "vander",
        "",
        lambda x: (torch.vander(x), torch.vander(x, 3), torch.vander(x, N=4, increasing=True), L.vander(x, N=3)),
        lambda n: (torch.randn(n) * 2,),
    ),
    Case("linalg.vecdot", "", lambda x, y: (L.vecdot(x, y), L.vecdot(x, y, dim=1)), pair((3, 4), (3, 4))),
    Case(
        "diagonal", "offsets", lambda x: (L.diagonal(x), x.diagonal(1, 1, 2), torch.diagonal(x, -1, 2, 1)), normal(3, 4)
    ),
]
