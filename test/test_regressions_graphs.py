"""What other projects' code does with torch and once failed here: each test names the behaviour,
not the project."""

import copy
import io
import pickle

import numpy as np
import pytest

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

# ---- in-place variants of composites


@pytest.mark.parametrize(
    "write",
    [
        lambda x: functional.relu6(x, inplace=True),
        lambda x: functional.rrelu(x, inplace=True),
        lambda x: functional.hardtanh(x, 0.0, 6.0, inplace=True),
        lambda x: x.mvlgamma_(1),
        lambda x: x.ldexp_(torch.tensor(2)),
    ],
)
def test_in_place_composites_can_be_differentiated(write):
    x = torch.linspace(0.6, 7.5, 12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: write(t * 1.5), (x,))
    target = x.detach() * 1.5
    before = target.data_ptr()
    assert write(target) is target and target.data_ptr() == before


def test_storage_of_a_leaf_may_be_replaced_without_recording():
    leaf = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in"):
        leaf.set_(torch.ones(4))
    with torch.no_grad():
        leaf.set_(torch.ones(4))
    (leaf * 2).sum().backward()
    assert leaf.requires_grad and leaf.grad.tolist() == [2.0] * 4


# ---- what __torch_dispatch__ sees of an index


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, args[1:]))
        return func(*args, **(kwargs or {}))


LAST = 2**63 - 1


@pytest.mark.parametrize(
    ("key", "calls"),
    [
        ((slice(None), slice(None, 2)), [(1, 0, 2)]),
        (slice(1, None), [(0, 1, LAST)]),
        (slice(None), [(0, 0, LAST)]),
        (slice(None, None, 2), [(0, 0, LAST, 2)]),
        ((slice(0, 3), slice(1, 3)), [(1, 1, 3)]),
    ],
)
def test_slices_are_dispatched_with_numbers_and_whole_ones_not_at_all(key, calls):
    x = torch.arange(12).reshape(3, 4)
    with Log() as log:
        result = x[key]
    assert log.calls == [(torch.ops.aten.slice.Tensor, args) for args in calls]
    assert torch.equal(result, torch.from_numpy(x.numpy()[key]))


def test_a_key_of_whole_slices_gives_a_view():
    x = torch.arange(12).reshape(3, 4)
    view = x[:, :]
    assert view is not x and view.data_ptr() == x.data_ptr()
    x[:, :] = 0
    assert view.eq(0).all()


def test_lists_are_made_under_a_mode():
    with Log() as log:
        assert torch.arange(3).tolist() == [0, 1, 2]
    assert [func for func, _ in log.calls] == [torch.ops.aten.arange.default]


# ---- subclasses without memory of their own


class Wrapper(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        wrapper = torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        wrapper.inner = inner
        return wrapper

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        args = [arg.inner if isinstance(arg, Wrapper) else arg for arg in args]
        return cls(func(*args, **(kwargs or {})))


def test_wrapper_subclasses_are_pickled_with_what_they_hold():
    wrapper = Wrapper(torch.arange(3.0))
    file = io.BytesIO()
    torch.save(wrapper, file)
    file.seek(0)
    for again in (
        pickle.loads(pickle.dumps(wrapper)),
        copy.deepcopy(wrapper),
        torch.load(file, weights_only=False),
    ):
        assert type(again) is Wrapper and again.shape == (3,) and again.dtype == torch.float32
        assert again.inner.tolist() == [0.0, 1.0, 2.0]
        assert again.inner.data_ptr() != wrapper.inner.data_ptr()
    assert type(wrapper.data) is Wrapper
    assert wrapper.data.inner.data_ptr() == wrapper.inner.data_ptr()
    with pytest.raises(RuntimeError, match=r"tolist\(\) is not supported for tensor subclasses"):
        wrapper.tolist()


# ---- sparse matrices whose order is the caller's word


def test_a_claim_to_be_coalesced_is_taken_and_checked_where_it_matters():
    indices = torch.tensor([[1, 0, 1], [0, 1, 0]])
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    for claimed in (
        torch.sparse_coo_tensor(indices, torch.ones(3), (2, 2))._coalesced_(True),
        torch.sparse_coo_tensor(indices, torch.ones(3), (2, 2), is_coalesced=True),
    ):
        assert claimed.is_coalesced() and torch.equal(claimed.indices(), indices)
        assert torch.equal(claimed.to_dense(), dense)
        assert torch.equal(claimed.to_sparse_csr().to_dense(), dense)
        assert torch.equal(claimed @ torch.eye(2), dense)
        assert torch.equal((claimed + claimed).to_dense(), dense * 2)
    with pytest.raises(RuntimeError, match="correspond to uncoalesced COO tensor"):
        torch.sparse_coo_tensor(
            indices, torch.ones(3), (2, 2), is_coalesced=True, check_invariants=True
        )


def test_rows_of_a_compressed_matrix_need_not_ascend():
    matrix = torch.sparse_csr_tensor([0, 3, 3], [1, 0, 1], [1.0, 2.0, 3.0], (2, 2))
    dense = torch.tensor([[2.0, 4.0], [0.0, 0.0]])
    assert matrix.col_indices().tolist() == [1, 0, 1]
    assert torch.equal(matrix.to_dense(), dense)
    assert torch.equal(matrix @ torch.eye(2), dense)
    assert torch.equal(matrix.to_sparse_coo().to_dense(), dense)
    assert torch.equal((matrix @ matrix).to_dense(), dense @ dense)
    for col in ([2, 0], [-1, 0]):
        with pytest.raises(RuntimeError, match="col_indices"):
            torch.sparse_csr_tensor([0, 2, 2], col, [1.0, 2.0], (2, 2))


@pytest.mark.parametrize("reduce", ["amax", "amin", "max", "min"])
def test_sparse_products_reduced_by_an_extremum(reduce):
    generator = np.random.default_rng(4)
    dense = generator.standard_normal((5, 6)) * (generator.random((5, 6)) > 0.5)
    dense[2] = 0
    other = generator.standard_normal((6, 3))
    want = np.zeros((5, 3))
    for i in range(5):
        products = [dense[i, k] * other[k] for k in np.flatnonzero(dense[i])]
        if products:
            want[i] = np.max(products, 0) if "max" in reduce else np.min(products, 0)
    matrix, right = torch.from_numpy(dense).to_sparse_csr(), torch.from_numpy(other)
    np.testing.assert_array_equal(torch.sparse.mm(matrix, right, reduce).numpy(), want)
    right.requires_grad_()
    assert torch.autograd.gradcheck(lambda t: torch.sparse.mm(matrix, t, reduce), (right,))


# ---- names that programs import


def test_older_names():
    import torch._custom_ops
    from torch.utils.model_zoo import load_url, tqdm

    assert callable(load_url)
    with tqdm(total=4, disable=True) as bar:
        bar.update(2)
    assert torch.jit._script_if_tracing(len) is len
    assert torch.hub.tqdm is tqdm
    assert torch.cuda._initialized is torch.cuda.is_initialized()


def test_the_first_interface_to_custom_operators():
    from torch import _custom_ops

    _custom_ops.custom_op("ecosystem::twice", "(Tensor x) -> Tensor")

    @_custom_ops.impl("ecosystem::twice")
    def twice(x):
        return x * 2

    @_custom_ops.impl_abstract("ecosystem::twice")
    def twice_shape(x):
        return torch.empty_like(x)

    @_custom_ops.impl_save_for_backward("ecosystem::twice")
    def save(inputs, output):
        return inputs.x.shape

    @_custom_ops.impl_backward("ecosystem::twice")
    def backward(ctx, saved, grad):
        assert saved == grad.shape
        return {"x": grad * 2}

    x = torch.ones(3, requires_grad=True)
    out = torch.ops.ecosystem.twice(x)
    out.sum().backward()
    assert out.tolist() == [2.0] * 3 and x.grad.tolist() == [2.0] * 3
    assert torch.ops.ecosystem.twice(torch.ones(2, device="meta")).shape == (2,)


def test_a_mixin_behind_module_makes_the_instance():
    class Mixin:
        def __new__(cls, *args, **kwargs):
            instance = super().__new__(cls)
            instance.__dict__["made_with"] = args
            return instance

    class Both(torch.nn.Module, Mixin):
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls, *args, **kwargs)

        def __init__(self, size):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(size))

    both = Both(3)
    assert both.made_with == (3,) and both.weight.shape == (3,)
    assert torch.nn.Module.__new__(Both).__class__ is Both
    with pytest.raises(TypeError):
        torch.nn.Linear.__new__(int)


def test_helpers_that_projects_borrow():
    q, w, b = torch.randn(2, 3, 4), torch.randn(12, 4), torch.randn(12)
    k, v = q + 1, q - 1
    for given in ((q, q, q), (q, k, k), (q, k, v)):
        parts = functional._in_projection_packed(*given, w, b)
        for part, x, weight, bias in zip(parts, given, w.chunk(3), b.chunk(3), strict=True):
            torch.testing.assert_close(part, x @ weight.t() + bias)
    mask = torch.tensor([True, False])
    as_numbers = functional._canonical_mask(mask, "mask", None, "other", torch.float32)
    assert as_numbers.tolist() == [-float("inf"), 0.0]
    with pytest.warns(UserWarning, match="mismatched a and b"):
        functional._canonical_mask(as_numbers, "a", torch.bool, "b", torch.float32)
    with pytest.raises(AssertionError, match="only bool and floating types of a"):
        functional._canonical_mask(mask.long(), "a", None, "b", torch.float32)
    assert functional._none_or_dtype(mask) is torch.bool and functional._none_or_dtype(None) is None
    assert functional._pair(3) == (3, 3)
    assert functional._Reduction.get_enum("mean") == 1
    with pytest.raises(AttributeError, match="no attribute 'unknown'"):
        functional.unknown  # noqa: B018
    tensor = torch.empty(3, requires_grad=True)
    torch.manual_seed(0)
    filled = torch.nn.init._no_grad_normal_(tensor, 0.0, 1.0).tolist()
    torch.manual_seed(0)
    assert torch.nn.init.normal_(torch.empty(3)).tolist() == filled
    assert torch.nn.init._no_grad_fill_(tensor, 2.0).tolist() == [2.0] * 3
