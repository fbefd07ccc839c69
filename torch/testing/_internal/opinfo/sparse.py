"""Records of the sparse family. Every call takes and gives strided tensors: the operator tested
stands between a conversion to its layout and one back, so that the same mechanical tests (values,
layouts of the parts, derivatives, threads) hold for it. Of each strided input, only every other
element or so is kept (thin), which makes patterns with empty and full rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import torch

from .core import OpInfo, SampleInput, call, error

_META = "the number of elements depends on values, which a meta tensor has not"
_EXPAND = "an expanded operand has another pattern"
SKIPS = {"meta": _META}
TOL = {torch.float16: (2e-2, 2e-2), torch.bfloat16: (1e-1, 1e-1), torch.float32: (1e-4, 1e-5)}
_WORDS = "str|must be Tensor|invalid combination|attribute"


def _keep(shape) -> np.ndarray:
    return (np.arange(int(np.prod(shape))) * 7 % 5 < 3).reshape(shape)


def thin(x) -> np.ndarray:
    """The array with two of five elements replaced by 0."""
    return np.where(_keep(x.shape), x, np.zeros((), x.dtype))


def _thin(x) -> torch.Tensor:
    return x * torch.from_numpy(_keep(tuple(x.shape)))


def coo(x, *sparse_dim) -> torch.Tensor:
    return _thin(x).to_sparse(*sparse_dim)


def csr(x) -> torch.Tensor:
    return _thin(x).to_sparse_csr()


_LAYOUTS = {
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


def _gradients(layout) -> str:
    """The dtypes derivatives exist for: blocks have none, they raise NotImplementedError."""
    return "" if layout.startswith("b") else "dc"


def _dense(result) -> torch.Tensor:
    return result.to_dense() if result.layout is not torch.strided else result


def _op(name, function, samples, ref, codes="f", **options) -> OpInfo:
    """A record of function, with the result made strided."""
    options.setdefault("tolerances", TOL)
    options.setdefault("aten_name", name)
    options.setdefault("large_elements", 40_000)
    skips = {**SKIPS, **options.pop("skips", {})}
    return OpInfo(
        name,
        samples,
        ref,
        codes,
        op=lambda *a, **k: _dense(function(*a, **k)),
        inplace=None,
        generic_errors=False,
        skips=skips,
        **options,
    )


def _matrix(t) -> list[SampleInput]:
    return [call(t(4, 6)), call(t(2, 2)), call(t(0, 4))]


def _not_tensors(*more) -> Callable[..., object]:
    """Wrong calls every conversion refuses, and the given ones."""

    def calls(t):
        return [
            error((TypeError, AttributeError), _WORDS, "text"),
            error((TypeError, AttributeError), "list|int|Tensor", [1.0]),
            error((TypeError, AttributeError), "int|Tensor", 3),
            *(wrong(t) for wrong in more),
        ]

    return calls


# ---- construction and parts -----------------------------------------------------------------


def _coo_tensor(values, rows, columns, size) -> torch.Tensor:
    indices = torch.stack([rows, columns])
    return torch.sparse_coo_tensor(indices, values, size)


def _coo_reference(values, rows, columns, size) -> np.ndarray:
    out = np.zeros(size, values.dtype)
    np.add.at(out, (rows, columns), values)
    return out


_COO_ERRORS = [
    lambda: error(RuntimeError, "found index 5", torch.ones(1), _at(5), _at(0), (2, 2)),
    lambda: error(RuntimeError, "negative index", torch.ones(1), _at(-1), _at(0), (2, 2)),
    lambda: error(RuntimeError, "same nnz", torch.ones(3), _at(0), _at(0), (2, 2)),
]


def _at(*positions):
    return torch.tensor(positions)


def _compressed_tensor(layout) -> Callable[..., object]:
    """The tensor taken apart and put together again by the constructor of the layout."""
    rows = layout in ("csr", "bsr")

    def function(x) -> torch.Tensor:
        whole = _LAYOUTS[layout](_thin(x))
        compressed = whole.crow_indices() if rows else whole.ccol_indices()
        plain = whole.col_indices() if rows else whole.row_indices()
        make = getattr(torch, f"sparse_{layout}_tensor")
        return make(compressed, plain, whole.values(), tuple(x.shape))

    return function


def _compressed_record(layout) -> OpInfo:
    covers = (f"_sparse_{layout}_tensor_unsafe", f"_validate_sparse_{layout}_tensor_args")
    return _op(
        f"sparse_{layout}_tensor",
        _compressed_tensor(layout),
        lambda t: [call(t(4, 6)), call(t(2, 2))],
        thin,
        "fic",
        covers=covers,
        grad_codes=_gradients(layout),
        errors=_not_tensors(
            lambda t: error(RuntimeError, "two sparse dimensions|2|dimension", t()),
            lambda t: error(RuntimeError, "two sparse dimensions|2|dimension", t(3)),
        ),
    )


def _parts(name, function, ref, covers=()) -> OpInfo:
    """A part of a matrix in CSR or CSC."""
    return _op(
        name,
        function,
        lambda t: [call(t(4, 6)), call(t(3, 3))],
        ref,
        "fi",
        aten_name=name,
        covers=covers,
        grad_codes="",
        skips={"expanded": _EXPAND},
        errors=_not_tensors(),
    )


def _compressed_indices(x) -> np.ndarray:
    return np.concatenate([[0], np.cumsum((thin(x) != 0).sum(1))])


def _of_layout(layout, name) -> Callable[..., object]:
    return lambda x: getattr(_LAYOUTS[layout](_thin(x)), name)()


def _nonzero(x) -> np.ndarray:
    return np.stack(np.nonzero(thin(x)))


_PARTS = [
    _parts("indices", lambda x: coo(x).indices(), _nonzero, ("_indices", "coalesce", "_coalesce")),
    _parts("values", lambda x: coo(x).values(), lambda x: thin(x)[thin(x) != 0], ("_values",)),
    _parts("crow_indices", _of_layout("csr", "crow_indices"), _compressed_indices),
    _parts("col_indices", _of_layout("csr", "col_indices"), lambda x: _nonzero(x)[1]),
    _parts("ccol_indices", _of_layout("csc", "ccol_indices"), lambda x: _compressed_indices_t(x)),
    _parts("row_indices", _of_layout("csc", "row_indices"), lambda x: np.nonzero(thin(x).T)[1]),
    _parts(
        "sparse_dim",
        lambda x: torch.tensor(_numbers(coo(x, 1))),
        lambda x: np.array([1, x.ndim - 1, x.shape[0], 1]),
        ("dense_dim", "_nnz", "_dimI", "_dimV", "is_coalesced", "_coalesced_"),
    ),
]


def _compressed_indices_t(x) -> np.ndarray:
    return np.concatenate([[0], np.cumsum((thin(x) != 0).sum(0))])


def _numbers(s) -> list[int]:
    """Counts of the tensor, after a false and a true word about being coalesced."""
    again = torch.sparse_coo_tensor(s._indices(), s._values(), s.shape)._coalesced_(True)
    assert (again._dimI(), again._dimV()) == (s.sparse_dim(), s.dense_dim())
    return [s.sparse_dim(), s.dense_dim(), s._nnz(), int(again.is_coalesced())]


# ---- conversions ----------------------------------------------------------------------------


def _conversion(layout) -> OpInfo:
    name = f"to_sparse_{layout}"
    return _op(
        name,
        lambda x: _LAYOUTS[layout](_thin(x)),
        lambda t: [call(t(4, 6)), call(t(2, 2))],
        thin,
        "fic",
        covers=(f"_{name}",),
        grad_codes=_gradients(layout),
        errors=_not_tensors(lambda t: error((RuntimeError, IndexError), "", t(3))),
    )


def _row_pointers(rows, size) -> np.ndarray:
    return np.searchsorted(rows, np.arange(size + 1)).astype(np.int64)


_CONVERSIONS = [
    *[_conversion(layout) for layout in _LAYOUTS],
    _op(
        "to_sparse",
        coo,
        lambda t: [call(t(4, 6)), call(t(4, 6, 3), 1), call(t(3)), call(t(0, 2))],
        lambda x, *a: thin(x),
        "fibc",
        covers=("_to_sparse",),
        errors=_not_tensors(
            lambda t: error((RuntimeError, IndexError), "sparse_dim|Dimension|dim", t(2, 2), 5)
        ),
    ),
    _op(
        "to_dense",
        lambda x, **k: coo(x).to_dense(**k),
        lambda t: [call(t(4, 6)), call(t(2, 3, 2)), call(t(4, 6), masked_grad=False)],
        lambda x, **k: thin(x),
        "fibc",
        covers=("_to_dense",),
        errors=_not_tensors(lambda t: error(TypeError, "dtype", t(2, 2), dtype="text")),
    ),
    _op(
        "_sparse_broadcast_to",
        lambda x, n=1: torch._sparse_broadcast_to(coo(x), (n, *x.shape)),
        lambda t: [call(t(4, 6), 2), call(t(3), 1), call(t(0, 2), 3)],
        lambda x, n: np.broadcast_to(thin(x), (n, *x.shape)),
        "fibc",
        grad_codes="",
        errors=_not_tensors(lambda t: error(RuntimeError, "dimension", t(2, 2), -1)),
    ),
    _op(
        "_convert_indices_from_coo_to_csr",
        torch._convert_indices_from_coo_to_csr,
        lambda t: [call(torch.tensor([0, 0, 2, 2, 3]), 5)],
        _row_pointers,
        "l",
        skips={"expanded": "the indices would not describe the elements"},
        errors=lambda t: [
            error(TypeError, _WORDS, "text", 3),
            error(TypeError, "int|invalid", torch.tensor([0]), "text"),
            error(TypeError, "missing|invalid", torch.tensor([0])),
        ],
    ),
    _op(
        "_convert_indices_from_csr_to_coo",
        torch._convert_indices_from_csr_to_coo,
        lambda t: [call(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 2, 0]))],
        lambda rows, columns: np.stack(
            [np.repeat(np.arange(len(rows) - 1), np.diff(rows)), columns]
        ),
        "l",
        skips={"expanded": "the indices would not describe the elements"},
        errors=lambda t: [
            error(TypeError, _WORDS, "text", torch.tensor([0])),
            error(TypeError, "Tensor|invalid", torch.tensor([0]), 3),
            error(TypeError, "missing|invalid", torch.tensor([0])),
        ],
    ),
]


def _resized(clear) -> tuple[Callable[..., object], Callable[..., object]]:
    """An empty or kept tensor of another size; the grown part is zero."""

    def function(x) -> torch.Tensor:
        s = coo(x.detach()).coalesce()
        if clear:
            return s.sparse_resize_and_clear_((5, 7), 2, 0)
        return s.sparse_resize_((5, 7), 2, 0)

    def ref(x) -> np.ndarray:
        out = np.zeros((5, 7), x.dtype)
        if not clear:
            out[: x.shape[0], : x.shape[1]] = thin(x)
        return out

    return function, ref


def _resize_record(name, clear, covers=()) -> OpInfo:
    function, ref = _resized(clear)
    return _op(
        name,
        function,
        lambda t: [call(t(4, 6)), call(t(1, 1))],
        ref,
        "fi",
        covers=covers,
        grad_codes="",
        big=lambda t: call(torch.zeros(4, 6)),
        errors=_not_tensors(),
    )


# ---- arithmetic -----------------------------------------------------------------------------


def _unary(name, function, ref, **options) -> OpInfo:
    return _op(
        name,
        lambda x: function(coo(x)),
        _matrix,
        lambda x: ref(thin(x)),
        options.pop("codes", "fc"),
        variant_test_name="sparse",
        errors=_not_tensors(),
        **options,
    )


def _binary(name, function, ref) -> OpInfo:
    return _op(
        name,
        lambda a, b: function(coo(a), coo(b)),
        lambda t: [call(t(4, 6), t(4, 6)), call(t(0, 3), t(0, 3))],
        lambda a, b: ref(thin(a), thin(b)),
        "fic",
        variant_test_name="sparse",
        errors=lambda t: [
            error(RuntimeError, "size|match|shape", t(2, 3), t(3, 2)),
            error((TypeError, AttributeError), _WORDS, "text", t(2, 3)),
            error((TypeError, AttributeError), "attribute|Tensor", t(2, 3), "text"),
        ],
    )


def _softmax(x, dim, log=False):
    """Of the elements that are there; the others stay 0."""
    kept = thin(x)
    there = _keep(x.shape)
    shifted = np.where(there, kept, -np.inf)
    with np.errstate(all="ignore"):
        power = np.exp(shifted - shifted.max(dim, keepdims=True))
        share = power / power.sum(dim, keepdims=True)
        return np.where(there, np.log(share) if log else share, 0)


def _products(t) -> list[SampleInput]:
    return [call(t(4, 6), t(6, 3)), call(t(1, 1), t(1, 1)), call(t(2, 3), t(3, 0))]


_PRODUCT_ERRORS = [
    lambda t: error(RuntimeError, "mul|size|shape|match|mat1|mat2", t(2, 3), t(2, 3)),
    lambda t: error((TypeError, AttributeError), _WORDS, "text", t(2, 3)),
    lambda t: error((TypeError, AttributeError), _WORDS, t(2, 3), "text"),
]


def _product_errors(t):
    return [wrong(t) for wrong in _PRODUCT_ERRORS]


def _product(name, function, ref=None, **options) -> OpInfo:
    return _op(
        name,
        function,
        _products,
        ref or (lambda a, b: thin(a) @ b),
        options.pop("codes", "dc"),
        errors=options.pop("errors", _product_errors),
        **options,
    )


def _add_products(t) -> list[SampleInput]:
    return [call(t(4, 3), t(4, 6), t(6, 3)), call(t(4, 3), t(4, 6), t(6, 3), beta=2, alpha=3)]


def _add_product(name, function, ref, **options) -> OpInfo:
    return _op(
        name,
        function,
        _add_products,
        ref,
        "d",
        errors=lambda t: [
            error(RuntimeError, "", t(4, 3), t(4, 6), t(5, 3)),
            error((TypeError, AttributeError), _WORDS, "text", t(4, 6), t(6, 3)),
            error((TypeError, AttributeError), _WORDS, t(4, 3), t(4, 6), "text"),
        ],
        **options,
    )


def _sampled(c, a, b, beta=1, alpha=1) -> np.ndarray:
    return np.where(thin(c) != 0, alpha * (a @ b) + beta * thin(c), 0)


def _spdiags(diagonals, offsets, shape) -> np.ndarray:
    out = np.zeros(shape, diagonals.dtype)
    for diagonal, offset in zip(diagonals, offsets, strict=True):
        for column in range(min(shape[1], len(diagonal))):
            row = column - offset
            if 0 <= row < shape[0]:
                out[row, column] = diagonal[column]
    return out


_REDUCTIONS = [
    _op(
        "_sparse_sum",
        lambda x, *a, **k: torch.sparse.sum(coo(x), *a, **k),
        lambda t: [call(t(4, 6)), call(t(4, 6), 0), call(t(4, 6), dim=(0, 1))],
        lambda x, dim=None: thin(x).sum(dim),
        "dic",
        covers=("_sparse_sum_backward",),
        errors=lambda t: [
            error(IndexError, "Dimension out of range", t(2, 3), 4),
            error(RuntimeError, "appears multiple times|duplicate|dim", t(2, 3), (0, 0)),
            error((TypeError, AttributeError), _WORDS, "text"),
        ],
    ),
    *[
        _op(
            f"_sparse_{name}",
            lambda x, dim, name=name: getattr(torch.sparse, name)(coo(x), dim),
            lambda t: [call(t(4, 6), 1), call(t(4, 6), 0), call(t(3, 4, 2), -1)],
            lambda x, dim, name=name: _softmax(x, dim, log=name == "log_softmax"),
            "d",
            covers=(f"_sparse_{name}_backward_data",),
            skips={"expanded": _EXPAND},
            errors=lambda t: [
                error((IndexError, RuntimeError), "im", t(2, 3), 4),
                error((TypeError, AttributeError), _WORDS, "text", 1),
                error((TypeError, RuntimeError), "", t(2, 3), "text"),
            ],
        )
        for name in ("softmax", "log_softmax")
    ],
]


def _embedding_gradient(weight, indices, bag) -> torch.Tensor:
    """The gradient of a row sum, which comes as a sparse matrix."""
    table = weight.detach().clone().requires_grad_()
    functional = torch.nn.functional
    if bag:
        offsets = torch.zeros(1, dtype=torch.int64)
        rows = functional.embedding_bag(indices, table, offsets, mode="sum", sparse=True)
    else:
        rows = functional.embedding(indices, table, sparse=True)
    (rows * weight.detach()[:1]).sum().backward()
    return table.grad


def _gather_gradient(weight, indices, bag=False) -> torch.Tensor:
    table = weight.detach().clone().requires_grad_()
    wide = indices[:, None].expand(-1, weight.shape[1])
    (torch.gather(table, 0, wide, sparse_grad=True) * weight.detach()[:1]).sum().backward()
    return table.grad


def _counted(weight, indices, bag=False) -> np.ndarray:
    out = np.zeros_like(weight)
    np.add.at(out, indices, weight[0])
    return out


def _gradient_record(name, function, bag) -> OpInfo:
    return _op(
        name,
        function,
        lambda t: [call(t(5, 3), t.index(4, high=5), bag), call(t(5, 3), t.index(0, high=5), bag)],
        _counted,
        "d",
        grad_codes="",
        errors=lambda t: [
            error((IndexError, RuntimeError), "", t(5, 3), torch.tensor([7]), bag),
            error((TypeError, AttributeError), _WORDS, "text", torch.tensor([0]), bag),
            error((TypeError, AttributeError), "", t(5, 3), "text", bag),
        ],
    )


RECORDS = [
    _op(
        "sparse_coo_tensor",
        _coo_tensor,
        lambda t: [
            call(t(5), t.index(5, high=4), t.index(5, high=3), (t.n(4), t.n(3))),
            call(t(0), t.index(0, high=4), t.index(0, high=3), (t.n(4), t.n(3))),
        ],
        _coo_reference,
        "fic",
        covers=(
            *("_sparse_coo_tensor_unsafe", "_sparse_coo_tensor_with_dims"),
            *("_sparse_coo_tensor_with_dims_and_tensors", "_validate_sparse_coo_tensor_args"),
        ),
        big=lambda t: call(t(3000), t.index(3000, high=400), t.index(3000, high=300), (400, 300)),
        errors=lambda t: [wrong() for wrong in _COO_ERRORS],
    ),
    *[_compressed_record(layout) for layout in _LAYOUTS],
    _op(
        "sparse_compressed_tensor",
        lambda x: torch.sparse_compressed_tensor(
            csr(x).crow_indices(),
            csr(x).col_indices(),
            csr(x).values(),
            tuple(x.shape),
            layout=torch.sparse_csr,
        ),
        lambda t: [call(t(4, 6)), call(t(2, 2))],
        thin,
        "fi",
        covers=(
            *("_sparse_compressed_tensor_unsafe", "_validate_sparse_compressed_tensor_args"),
            *("_sparse_compressed_tensor_with_dims", "_validate_compressed_sparse_indices"),
        ),
        errors=_not_tensors(),
    ),
    *_PARTS,
    *_CONVERSIONS,
    _op(
        "sparse_mask",
        lambda x, mask: x.sparse_mask(coo(mask.detach()).coalesce()),
        lambda t: [call(t(4, 6), t(4, 6, grad=False)), call(t(2, 2), t(2, 2, grad=False))],
        lambda x, mask: np.where(thin(mask) != 0, x, 0),
        "fi",
        errors=lambda t: [
            error(RuntimeError, "size|shape|expected", t(2, 3), t(3, 2)),
            error((TypeError, AttributeError), _WORDS, "text", t(2, 2)),
            error((TypeError, AttributeError), _WORDS, t(2, 2), "text"),
        ],
    ),
    _resize_record("sparse_resize_", False),
    _resize_record("sparse_resize_and_clear_", True, ("resize_as_sparse_",)),
    _unary("neg", torch.neg, np.negative, codes="fic"),
    _unary("sin", torch.sin, np.sin, grad_codes=""),
    _unary(
        "sqrt",
        lambda s: torch.sqrt(torch.abs(s)),
        lambda x: np.sqrt(np.abs(x)),
        codes="d",
        grad_codes="",
    ),
    _binary("add", torch.add, np.add),
    _binary("sub", torch.sub, np.subtract),
    _binary("mul", torch.mul, np.multiply),
    _product("_sparse_mm", lambda a, b: torch.sparse.mm(coo(a), b)),
    _product("mm", lambda a, b: torch.mm(csr(a), b), variant_test_name="csr"),
    _product("smm", lambda a, b: torch.smm(coo(a), b), codes="d", grad_codes=""),
    _product("hspmm", lambda a, b: torch.hspmm(coo(a), b), codes="d", grad_codes=""),
    _product(
        "_sparse_sparse_matmul",
        lambda a, b: torch.sparse.mm(coo(a), coo(b)),
        lambda a, b: thin(a) @ thin(b),
        codes="d",
    ),
    _add_product(
        "_sparse_addmm",
        lambda c, a, b, **k: torch.sparse.addmm(c, coo(a), b, **k),
        lambda c, a, b, beta=1, alpha=1: beta * c + alpha * (thin(a) @ b),
    ),
    _add_product(
        "sspaddmm",
        lambda c, a, b, **k: torch.sspaddmm(coo(c), coo(a), b, **k),
        lambda c, a, b, beta=1, alpha=1: beta * thin(c) + alpha * (thin(a) @ b),
        grad_codes="",
    ),
    _add_product(
        "sparse_sampled_addmm",
        lambda c, a, b, **k: torch.sparse.sampled_addmm(csr(c), a, b, **k),
        _sampled,
        skips={"expanded": _EXPAND},
    ),
    *_REDUCTIONS,
    _op(
        "_spdiags",
        lambda d, offsets, shape: torch.sparse.spdiags(d, offsets, shape),
        lambda t: [
            call(t(2, 4), torch.tensor([0, 1]), (4, 4)),
            call(t(1, 3), torch.tensor([-1]), (5, 3)),
        ],
        _spdiags,
        "di",
        grad_codes="",
        skips={"expanded": "two offsets would be equal"},
        big=lambda t: call(t(2, 4), torch.tensor([0, 1]), (4, 4)),
        errors=lambda t: [
            error(RuntimeError, "ffset", t(2, 4), torch.tensor([0]), (4, 4)),
            error(RuntimeError, "2", t(2, 4), torch.tensor([0, 1]), (4,)),
            error((TypeError, RuntimeError), "", "text", torch.tensor([0, 1]), (4, 4)),
        ],
    ),
    _gradient_record("embedding_sparse_backward", _embedding_gradient, False),
    _gradient_record("_embedding_bag_sparse_backward", _embedding_gradient, True),
    _gradient_record("_gather_sparse_backward", _gather_gradient, False),
]
