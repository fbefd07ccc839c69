"""The locally optimal block preconditioned conjugate gradient method for a few extreme eigenpairs
of a large symmetric matrix: each step solves the small eigenproblem on the span of the current
vectors, their (preconditioned) residuals and the previous search directions."""

from __future__ import annotations

import torch
from torch._tensor import _override

__all__ = ["LOBPCG", "lobpcg"]

_overridden = torch._C._has_torch_function


class LOBPCG:
    """The state of one iteration, as a tracker sees it: inputs A, B, iK, the vectors X, the values
    E, the residuals R and the basis S, with parameters and counters in dictionaries."""

    def __init__(self, A, B, X, iK, iparams, fparams, bparams, method, tracker) -> None:
        self.A, self.B, self.X, self.iK = A, B, X, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.ivars = {"istep": 0, "converged_count": 0}
        self.fvars, self.bvars, self.tvars = {}, {"force_stop": False}, {}
        self.E = X.new_zeros(X.shape[-1])
        self.R = X.new_zeros(X.shape)
        self.S = X
        self.P = None
        self.scale = (
            max(1.0, float(torch.linalg.matrix_norm(A, float("inf")))) if A.numel() else 1.0
        )

    def _basis(self, vectors):
        """B-orthonormal columns with the span of `vectors`, nearly dependent ones dropped."""
        Q = torch.linalg.qr(vectors).Q
        if self.B is None:
            return Q
        gram = Q.mT @ (self.B @ Q)
        values, turns = torch.linalg.eigh((gram + gram.mT) / 2)
        keep = values > values[-1] * torch.finfo(Q.dtype).eps * Q.shape[-1]
        return Q @ (turns[:, keep] / values[keep].sqrt())

    def _rayleigh_ritz(self, Q) -> tuple[torch.Tensor, torch.Tensor]:
        """Approximate eigenpairs from the span of Q, wanted ones first."""
        small = Q.mT @ (self.A @ Q)
        values, turns = torch.linalg.eigh((small + small.mT) / 2)
        if self.bparams["largest"]:
            values, turns = values.flip(-1), turns.flip(-1)
        n = self.iparams["n"]
        return values[:n], turns[:, :n]

    def _update(self, Q) -> None:
        self.S = Q
        self.E, turns = self._rayleigh_ritz(Q)
        old = self.X
        self.X = Q @ turns
        along = old.mT @ (self.X if self.B is None else self.B @ self.X)
        self.P = self.X - old @ along
        image = self.X if self.B is None else self.B @ self.X
        self.R = self.A @ self.X - image * self.E
        size = torch.linalg.vector_norm(self.X, dim=-2) * (self.scale + self.E.abs())
        self.tvars["rerr"] = torch.linalg.vector_norm(self.R, dim=-2) / size
        k = self.iparams["k"]
        converged = self.tvars["rerr"][:k] < self.fparams["tol"]
        self.ivars["converged_count"] = int(converged.sum())

    def run(self) -> None:
        limit = self.iparams["niter"]
        self._update(self._basis(self.X))
        self.P = None
        while True:
            if self.tracker is not None:
                self.tracker(self)
            done = self.ivars["converged_count"] >= self.iparams["k"]
            if done or self.bvars["force_stop"]:
                return
            if limit >= 0 and self.ivars["istep"] >= limit:
                return
            self.ivars["istep"] += 1
            directions = self.R if self.iK is None else self.iK @ self.R
            parts = [self.X, directions] + ([] if self.P is None else [self.P])
            self._update(self._basis(torch.cat(parts, -1)))


def _check(A, B, k, X, n, method) -> tuple[int, int, int, str]:
    if A.dim() < 2 or A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"A and B must have the same shape, got {A.shape} and {B.shape}")
    if not (A.is_floating_point() or A.layout != torch.strided):
        raise TypeError(f"lobpcg: expected a real floating point matrix, got {A.dtype}")
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m})"
            f" is smaller than 3 x the number of requested eigenpairs (={n})"
        )
    if not 1 <= k <= n:
        raise ValueError(f"lobpcg: k must be between 1 and n={n}, got {k}")
    if method not in ("basic", "ortho"):
        method = "ortho"
    return m, k, n, method


def _solve(A, k, B, X, n, iK, niter, tol, largest, method, tracker, params):
    m, k, n, method = _check(A, B, k, X, n, method)
    dtype = A.dtype
    if X is None:
        X = torch.randn((*A.shape[:-2], m, n), dtype=dtype, device=A.device)
    elif X.shape[-2:] != (m, n):
        raise AssertionError(f"X must have shape {(m, n)}, got {tuple(X.shape)}")
    tol = torch.finfo(dtype).eps ** 0.5 if tol is None else tol
    iparams = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter, **params[0]}
    fparams = {"tol": tol, **params[1]}
    bparams = {"largest": True if largest is None else largest, **params[2]}

    def one(a, b, x, ik) -> tuple[torch.Tensor, torch.Tensor]:
        state = LOBPCG(a, b, x, ik, dict(iparams), fparams, bparams, method, tracker)
        state.run()
        return state.E[:k], state.X[:, :k]

    if A.dim() == 2:
        return one(A, B, X, iK)
    batch = A.shape[:-2]

    def flat(t):
        return [None] * batch.numel() if t is None else t.reshape(-1, *t.shape[-2:])

    pairs = [one(*args) for args in zip(flat(A), flat(B), flat(X), flat(iK), strict=True)]
    values = torch.stack([e for e, _ in pairs]).reshape(*batch, k)
    vectors = torch.stack([x for _, x in pairs]).reshape(*batch, m, k)
    return values, vectors


class _Differentiable(torch.autograd.Function):
    """Eigenpairs of a symmetric A with the gradient of A. The part of a vector's change outside the
    span of the known vectors comes from a shifted system on the complement of that span."""

    @staticmethod
    def forward(ctx, A, *args) -> tuple[torch.Tensor, ...]:
        values, vectors = _solve(A, *args)
        ctx.save_for_backward(A, values, vectors)
        return values, vectors

    @staticmethod
    def backward(ctx, grad_values, grad_vectors) -> tuple[torch.Tensor | None, ...]:
        A, E, X = ctx.saved_tensors
        grad = (X * grad_values.unsqueeze(-2)) @ X.mT if grad_values is not None else 0
        if grad_vectors is not None:
            inside = X.mT @ grad_vectors
            gaps = E.unsqueeze(-2) - E.unsqueeze(-1)
            gaps.diagonal(dim1=-2, dim2=-1).fill_(float("inf"))
            grad = grad + X @ (inside / gaps) @ X.mT
            outside = grad_vectors - X @ inside
            known = (X @ X.mT).unsqueeze(-3)
            eye = torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
            shifted = E.unsqueeze(-1).unsqueeze(-1) * eye - A.unsqueeze(-3)
            free = eye - known
            system = free @ shifted @ free + known
            steps = torch.linalg.solve(system, outside.mT.unsqueeze(-1)).squeeze(-1)
            grad = grad + steps.mT @ X.mT
        return (grad, *[None] * 11)


def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    ortho_iparams=None,
    ortho_fparams=None,
    ortho_bparams=None,
):
    """The k largest (or smallest) eigenvalues and eigenvectors of a symmetric matrix A, or of the
    pair A x = e B x with a positive definite B. iK preconditions the residuals; a tracker is called
    with the state at each step and may stop it (bvars["force_stop"])."""
    if _overridden((A, B, X, iK)):
        return _override(
            lobpcg,
            (A, B, X, iK),
            A,
            k=k,
            B=B,
            X=X,
            n=n,
            iK=iK,
            niter=niter,
            tol=tol,
            largest=largest,
            method=method,
            tracker=tracker,
            ortho_iparams=ortho_iparams,
            ortho_fparams=ortho_fparams,
            ortho_bparams=ortho_bparams,
        )
    params = (ortho_iparams or {}, ortho_fparams or {}, ortho_bparams or {})
    rest = (k, B, X, n, iK, niter, tol, largest, method, tracker, params)
    if not (A.requires_grad and torch.is_grad_enabled()):
        with torch.no_grad():
            return _solve(A, *rest)
    if B is not None:
        raise ValueError(
            "lobpcg.backward: the gradient is only supported when B is None: solve the generalised "
            "problem without gradients"
        )
    return _Differentiable.apply((A + A.mT) / 2, *rest)
