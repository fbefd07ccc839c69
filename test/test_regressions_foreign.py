"""What test suites of einops, safetensors, pytorch_optimizer, linear_operator, skorch and others
asked for and did not find. Each test states the behaviour, not the project."""

import copy
import io
import math
import pickle
import pickletools
from collections import OrderedDict

import pytest

import torch


class TestStorageAsData:
    """torch.asarray and its kin take a storage as the bytes of a one-dimensional tensor."""

    def test_asarray_shares_the_memory_of_a_slice(self):
        storage = torch.UntypedStorage(16)
        for i in range(16):
            storage[i] = i
        t = torch.asarray(storage[4:8], dtype=torch.uint8)
        assert t.tolist() == [4, 5, 6, 7]
        t[0] = 99
        assert storage[4] == 99

    def test_asarray_reads_bytes_as_the_dtype(self):
        source = torch.tensor([1.5, -2.0])
        t = torch.asarray(source.untyped_storage(), dtype=torch.float32)
        assert t.tolist() == [1.5, -2.0] and t.data_ptr() == source.data_ptr()

    def test_tensor_copies(self):
        source = torch.tensor([1, 2], dtype=torch.int32)
        t = torch.tensor(source.untyped_storage(), dtype=torch.int32)
        assert t.tolist() == [1, 2] and t.data_ptr() != source.data_ptr()

    def test_typed_storage_keeps_its_dtype(self):
        typed = torch.TypedStorage([1.0, 2.0, 3.0])
        t = torch.asarray(typed)
        assert t.dtype == torch.float32 and t.tolist() == [1.0, 2.0, 3.0]
        assert t.data_ptr() == typed.data_ptr()

    def test_size_that_is_no_multiple_is_an_error(self):
        with pytest.raises(ValueError, match="7 bytes"):
            torch.asarray(torch.UntypedStorage(7), dtype=torch.int32)


class TestFloat8Scale:
    """float8_e8m0fnu: powers of two, no zero, no sign."""

    @pytest.mark.parametrize(
        "value, bits",
        [(1.0, 127), (3.0, 129), (0.3, 125), (-2.0, 128), (0.0, 0), (math.inf, 255), (1e30, 227)],
    )
    def test_encoding(self, value, bits):
        t = torch.tensor([value], dtype=torch.float8_e8m0fnu)
        assert t.view(torch.uint8).item() == bits
        assert torch.tensor([value]).to(torch.float8_e8m0fnu).view(torch.uint8).item() == bits
        full = torch.full((2,), value, dtype=torch.float8_e8m0fnu)
        assert full.view(torch.uint8).tolist() == [bits] * 2

    def test_values_come_back(self):
        t = torch.tensor([0.5, 4.0], dtype=torch.float8_e8m0fnu)
        assert t.tolist() == [0.5, 4.0] and t[0].item() == 0.5
        assert t.to(torch.float64).tolist() == [0.5, 4.0]
        assert torch.equal(t, t.clone())
        assert repr(t) == "tensor([0.5000, 4.0000], dtype=torch.float8_e8m0fnu)"


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_float8_comparisons(name):
    t = torch.tensor([0.5, 1.0, 2.0]).to(getattr(torch, name))
    assert (t == t).tolist() == [True] * 3
    assert (t < 1).tolist() == [True, False, False]
    assert torch.isnan(t).tolist() == [False] * 3


def test_first_sparse_products():
    sparse, dense = torch.eye(3).to_sparse(), torch.arange(6.0).view(3, 2)
    assert torch.equal(torch.dsmm(sparse, dense), dense)
    assert torch.equal(torch.spmm(sparse, dense), dense)
    assert torch.equal(torch.hsmm(sparse, dense).to_dense(), dense)
    added = torch.saddmm(dense.to_sparse(), sparse, dense)
    assert added.is_sparse and torch.equal(added.to_dense(), 2 * dense)


def test_module_behind_another_base_can_be_copied():
    class Named:
        """A class of Python's that comes first, so that it gives the layout of the instances."""

    class Both(Named, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

    both = Both()
    for again in (copy.deepcopy(both), Both.__new__(Both)):
        assert type(again) is Both
    assert pickle.loads(pickle.dumps(Pair())).weight.tolist() == [1.0]


class Plain:
    pass


class Pair(Plain, torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))


class TestPlainPickle:
    """pickle.dumps of a tensor names what PyTorch's pickles name, so that each reads the other's
    and an Unpickler can put its own function in the place of torch.storage._load_from_bytes."""

    def test_names(self):
        for dtype in (torch.float32, torch.float8_e5m2):
            data = pickle.dumps(torch.ones(2, dtype=dtype))
            names = [arg for op, arg, _ in pickletools.genops(data) if isinstance(arg, str)]
            assert all(name in known for name, known in zip(names, PICKLED_NAMES, strict=False))

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.uint16])
    def test_round_trip(self, dtype):
        tensor = torch.tensor([0, 1, 1]).to(dtype)
        again = pickle.loads(pickle.dumps(tensor))
        assert again.dtype == dtype and torch.equal(again, tensor)

    def test_shared_memory_stays_shared(self):
        whole = torch.zeros(4)
        a, b = pickle.loads(pickle.dumps((whole, whole[1:])))
        a[1] = 7
        assert b[0] == 7

    def test_storages(self):
        storage = torch.tensor([1.0, 2.0]).untyped_storage()
        again = pickle.loads(pickle.dumps(storage))
        assert again.tolist() == storage.tolist() and again.data_ptr() != storage.data_ptr()

    def test_loader_can_be_replaced(self):
        class Unpickler(pickle.Unpickler):
            def find_class(self, module, name):
                if (module, name) == ("torch.storage", "_load_from_bytes"):
                    return lambda b: torch.load(io.BytesIO(b), map_location="cpu")
                return super().find_class(module, name)

        again = Unpickler(io.BytesIO(pickle.dumps(torch.arange(3)))).load()
        assert again.tolist() == [0, 1, 2]


PICKLED_NAMES = [
    {"torch._utils"},
    {"_rebuild_tensor_v2", "_rebuild_tensor_v3"},
    {"torch.storage"},
    {"_load_from_bytes"},
    {"collections"},
    {"OrderedDict"},
    {"torch"},
    {"float8_e5m2"},
]


def test_save_flushes_a_writer():
    class Collector:
        def __init__(self):
            self.parts, self.flushed = [], 0

        def write(self, data):
            self.parts.append(bytes(data))

        def flush(self):
            self.flushed += 1

    out = Collector()
    torch.save({"a": torch.ones(2)}, out)
    assert out.flushed == 1
    assert torch.load(io.BytesIO(b"".join(out.parts)))["a"].tolist() == [1.0, 1.0]


class TestNumbersBesideTensors:
    """A Python number that the tensor's dtype cannot hold."""

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_products_and_quotients_keep_it_in_float32(self, dtype):
        x = torch.linspace(0.1, 9.0, 777).to(dtype)
        assert torch.equal(x * 0.1, (x.float() * 0.1).to(dtype))
        assert torch.equal(0.1 * x, (x.float() * 0.1).to(dtype))
        assert torch.equal(x / 0.3, (x.float() / 0.3).to(dtype))
        assert torch.equal(x.clone().mul_(0.1), (x.float() * 0.1).to(dtype))
        assert torch.equal(x * torch.tensor(0.1), (x.float() * 0.1).to(dtype))
        assert torch.equal(torch._foreach_mul([x], 0.1)[0], (x.float() * 0.1).to(dtype))

    def test_sums_round_it(self):
        x = torch.linspace(0.1, 9.0, 777).to(torch.bfloat16)
        rounded = torch.tensor(0.1, dtype=torch.bfloat16).float()
        assert torch.equal(x + 0.1, (x.float() + rounded).to(torch.bfloat16))

    def test_out_of_range(self):
        half = torch.tensor([0.5], dtype=torch.float16)
        assert (half * 1e5).item() == 49984.0
        assert (half + 1e5).item() == math.inf and (half < 1e6).item()
        assert (torch.tensor([1.0]) * 1e39).item() == math.inf
        assert torch.full((1,), 1e6, dtype=torch.float16).item() == math.inf
        assert torch.pow(1e6, half.new_ones(1)).item() == math.inf
        mask, two = torch.tensor([True]), torch.ones(2, dtype=torch.float16)
        for call in (
            lambda: half.clamp(max=1e6),
            lambda: half.pow(1e6),
            lambda: torch.full((2,), 1e6, dtype=torch.float16),
            lambda: two.fill_(65505),
            lambda: torch.nn.functional.pad(half, (1, 1), value=1e6),
            lambda: torch.nn.functional.threshold(half, 1e6, 0.0),
            lambda: torch.nn.functional.hardtanh(half, -1e6, 1e6),
            lambda: half.masked_fill(mask, -65519.0),
        ):
            with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
                call()
        assert two.tolist() == [1.0, 1.0]
        with pytest.raises(RuntimeError, match="type c10::BFloat16 without overflow"):
            torch.full((2,), torch.finfo(torch.float32).min, dtype=torch.bfloat16)
        with pytest.raises(RuntimeError, match=r"type c10::complex<float> without overflow"):
            torch.full((2,), 1e39, dtype=torch.complex64)
        with pytest.raises(RuntimeError, match="type c10::Float8_e4m3fn without overflow"):
            torch.full((2,), 1e3, dtype=torch.float8_e4m3fn)
        with pytest.raises(RuntimeError, match="type float without overflow"):
            torch.full((2,), 3.4028235e38)
        assert torch.full((2,), torch.finfo(torch.float32).max).isfinite().all()

    def test_numbers_with_a_point_do_not_wrap_into_integers(self):
        for dtype, number in (
            (torch.uint8, -8.4),
            (torch.uint8, -0.5),
            (torch.uint16, -1.0),
            (torch.uint64, -1.5),
            (torch.int8, 127.5),
            (torch.int8, -128.5),
        ):
            for call in (
                lambda n, d: torch.full((2,), n, dtype=d),
                lambda n, d: torch.tensor([n], dtype=d),
                lambda n, d: torch.zeros(2, dtype=d).fill_(n),
                lambda n, d: torch.zeros(2, dtype=d).masked_fill(torch.tensor([True, False]), n),
            ):
                with pytest.raises(RuntimeError, match="without overflow"):
                    call(number, dtype)
        assert torch.full((2,), -8, dtype=torch.uint8).tolist() == [248, 248]
        assert torch.tensor([-0.0, 3.9], dtype=torch.uint8).tolist() == [0, 3]

    def test_integers_wrap(self):
        small = torch.tensor([1, 2], dtype=torch.int8)
        assert (small + 1000).tolist() == [-23, -22] and (small * 1000).tolist() == [-24, -48]
        assert (torch.tensor([3], dtype=torch.uint8) - 1000).tolist() == [27]
        assert (small == 257).tolist() == [True, False]


def test_new_of_a_sparse_tensor():
    a = torch.eye(3).to_sparse()
    assert a.new().is_sparse and a.new(2, 3).shape == (2, 3)
    made = a.new(a._indices(), 2 * a._values(), torch.Size([4, 4]))
    assert made.is_sparse and made.shape == (4, 4) and made.to_dense()[1, 1] == 2
    assert a.new(a._indices(), a._values().double()).dtype == torch.float64
    resized = a.new().resize_as_(a)
    assert resized.is_sparse and resized.shape == (3, 3) and resized._nnz() == 0
    with pytest.raises(TypeError, match="sizes"):
        a.new([1.0, 2.0])


def test_optimizer_without_init_patches_its_step():
    class Wrapper(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks = OrderedDict()
            self._optimizer_step_post_hooks = OrderedDict()
            self._patch_step_function()

        def step(self, closure=None):
            return self.inner.step(closure)

    p = torch.nn.Parameter(torch.ones(2))
    p.grad = torch.ones(2)
    wrapper, seen = Wrapper(torch.optim.SGD([p], lr=1.0)), []
    wrapper.register_step_post_hook(lambda *args: seen.append("post"))
    wrapper.step()
    assert seen == ["post"] and p.tolist() == [0.0, 0.0]


def test_names_that_optimizers_import():
    from torch.optim.optimizer import (
        _default_to_fused_or_foreach,
        _get_value,
        _use_grad_for_differentiable,
        _view_as_real,
    )

    class Own(torch.optim.Optimizer):
        @_use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    own = Own([torch.nn.Parameter(torch.ones(1))], {"differentiable": False})
    assert own.step() is False
    assert _get_value(torch.tensor(2.0)) == 2.0 and _get_value(3) == 3
    assert _default_to_fused_or_foreach([torch.ones(1)], True) == (False, False)
    lists = [torch.ones(1, dtype=torch.complex64)], [torch.ones(1, dtype=torch.complex64)]
    _view_as_real(*lists)
    assert [one[0].shape for one in lists] == [(1, 2), (1, 2)]


def test_parameter_list_takes_a_generator():
    made = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(1)) for _ in range(3))
    assert len(made.extend(torch.zeros(1) for _ in range(2))) == 5
    with pytest.raises(TypeError, match="iterable"):
        made.extend(torch.ones(2))


class TestPerSampleGradients:
    """torch.nn.utils._per_sample_grad: as many backward passes as samples are the reference."""

    @pytest.mark.parametrize("reduction", ["sum", "mean"])
    def test_gradients_are_those_of_each_sample(self, reduction):
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Conv1d(2, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.Flatten(),
            torch.nn.Linear(12, 3),
        ).double()  # fmt: skip
        x = torch.randn(5, 2, 5, dtype=torch.float64)
        call = call_for_per_sample_grads(module, loss_reduction=reduction)
        getattr(call(x).pow(2).sum(1), reduction)().backward()
        for i in range(5):
            expected = torch.autograd.grad(module(x[i : i + 1]).pow(2).sum(), module.parameters())
            for parameter, grad in zip(module.parameters(), expected, strict=True):
                assert parameter.grad is None
                torch.testing.assert_close(parameter.grad_sample[i], grad)
        with pytest.raises(RuntimeError, match="grad_sample"):
            call_for_per_sample_grads(module)

    def test_sizes_have_to_agree(self):
        from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

        with pytest.raises(RuntimeError, match="batch size"):
            call_for_per_sample_grads(torch.nn.Linear(2, 3), batch_size=5)(torch.ones(4, 2))
        with pytest.raises(RuntimeError, match="sum or mean"):
            call_for_per_sample_grads(torch.nn.Linear(2, 3), loss_reduction="max")
