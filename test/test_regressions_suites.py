"""What other projects' own test suites found: each test is the smallest form of something that
passed on PyTorch and did not here."""

import subprocess
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import pytest

import torch
from torch.utils import _pytree as pytree

Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("namedtuple", Point(1, 2)),
        ("ordereddict", OrderedDict(a=1, b=2)),
        ("odict", OrderedDict(a=1, b=2)),
        ("defaultdict", defaultdict(list, {"a": 1, "b": 2})),
        ("deque", deque([1, 2], maxlen=3)),
    ],
)
def test_each_container_names_its_functions(kind, value):
    children, context = getattr(pytree, f"_{kind}_flatten")(value)
    assert children == [1, 2]
    back = getattr(pytree, f"_{kind}_unflatten")(children, context)
    assert back == value and type(back) is type(value)


def test_pytree_has_names_for_annotations():
    for name in ("FlattenFunc", "UnflattenFunc", "FlattenWithKeysFunc", "KeyEntry", "KeyPath"):
        assert hasattr(pytree, name)
    assert pytree._is_namedtuple_instance(Point(1, 2))


def test_sizes_of_modules_have_names():
    from typing import get_args

    from torch.nn.common_types import _maybe_indices_t, _size_2_opt_t, _size_2_t, _size_any_t

    assert get_args(_size_2_t) == (int, tuple[int, int])
    assert get_args(_size_any_t) == (int, tuple[int, ...])
    assert type(None) in get_args(_size_2_opt_t)
    assert get_args(_maybe_indices_t) == (torch.Tensor, tuple[torch.Tensor, torch.Tensor])


def test_dir_names_submodules_that_are_not_loaded_yet():
    script = "import torch; print({'amp', 'func', 'futures', 'jit', 'optim'} <= set(dir(torch)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr
    assert all(hasattr(torch, name) for name in dir(torch) if name[0] != "_")


def test_writing_to_an_empty_expanded_tensor_does_not_warn():
    x = torch.zeros(1, 2).expand(3, 2)[:0]
    mask = torch.zeros(0, 2, dtype=torch.bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x[mask] = torch.zeros(0)
        x.masked_fill_(mask, 1.0)
    with pytest.warns(UserWarning, match="on expanded tensors"):
        torch.zeros(1, 2).expand(3, 2)[torch.ones(3, 2, dtype=torch.bool)] = torch.zeros(6)


def test_storage_from_buffer():
    content = bytearray(range(8))
    storage = torch.UntypedStorage.from_buffer(content, dtype=torch.uint8, count=4, offset=2)
    assert storage.tolist() == [2, 3, 4, 5]
    storage[0] = 9
    assert content[2] == 2
    swapped = torch.UntypedStorage.from_buffer(content, byte_order="big", dtype=torch.int16)
    assert torch.tensor([], dtype=torch.int16).set_(swapped).tolist() == [1, 515, 1029, 1543]
    floats = torch.FloatStorage.from_buffer(b"\0\0\x80?\0\0\0@", byte_order="little")
    assert floats.tolist() == [1.0, 2.0] and floats.dtype is torch.float32
    assert torch.ByteStorage.from_buffer(b"").tolist() == []


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (RuntimeError, "argument 'dtype' cannot be None", {}),
        (RuntimeError, "must be of type torch.dtype", {"dtype": "x"}),
        (RuntimeError, "missing required argument 'byte_order'", {"dtype": torch.float32}),
        (ValueError, "invalid byte_order 'x'", {"dtype": torch.int8, "byte_order": "x"}),
        (ValueError, "multiple of element size", {"dtype": torch.int16, "byte_order": "little"}),
        (ValueError, "but specified a size of 8", {"dtype": torch.uint8, "count": 8}),
        (ValueError, "offset must be non-negative", {"dtype": torch.uint8, "offset": 8}),
        (ValueError, "offset must be non-negative", {"dtype": torch.uint8, "offset": -1}),
    ],
)
def test_storage_from_buffer_errors(error, message, arguments):
    with pytest.raises(error, match=message):
        torch.UntypedStorage.from_buffer(bytes(7), **arguments)
    with pytest.raises(TypeError, match="bytes-like"):
        torch.UntypedStorage.from_buffer(5, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="'dtype' can only be specified"):
        torch.ByteStorage.from_buffer(b"", dtype=torch.int8)


@pytest.mark.parametrize("pad", [0, 1, 2])
def test_conv_tbc(pad):
    x = torch.randn(6, 2, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(3, 3, 4, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(4, dtype=torch.float64, requires_grad=True)
    padded = np.pad(x.detach().numpy(), ((pad, pad), (0, 0), (0, 0)))
    steps = padded.shape[0] - 2
    windows = np.stack([padded[k : k + steps] for k in range(3)])
    expected = np.einsum("ktbi,kio->tbo", windows, weight.detach().numpy()) + bias.detach().numpy()
    out = torch.conv_tbc(x, weight, bias, pad)
    assert out.is_contiguous()
    np.testing.assert_allclose(out.detach().numpy(), expected, rtol=1e-12, atol=1e-12)
    assert torch.autograd.gradcheck(
        lambda *a: torch.nn.functional.conv_tbc(*a, pad), (x, weight, bias)
    )


def test_conv_tbc_errors():
    x, weight, bias = torch.randn(5, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    for arguments, message in [
        ((x[0], weight, bias), "Input must have 3 dims"),
        ((x, weight[0], bias), "Weight tensor must have 3 dims"),
        ((x, weight, weight), "Bias must be 1-D"),
        ((x[..., :2], weight, bias), "not == dim 1 in the weight"),
        ((x, weight, bias[:2]), "Bias size must equal dim 2"),
    ]:
        with pytest.raises(RuntimeError, match=message):
            torch.conv_tbc(*arguments)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_int_mm(dtype):
    a = torch.arange(-68, 68).view(17, 8).to(dtype)
    b = torch.arange(-96, 96).view(8, 24).to(torch.int8)
    expected = a.numpy().astype(np.int64) @ b.numpy().astype(np.int64)
    out = torch._int_mm(a, b)
    assert out.dtype is torch.int32 and (out.numpy() == expected).all()
    assert torch._int_mm(a[:0], b).shape == (0, 24)
    assert (torch._int_mm(a.t().contiguous().t(), b) == out).all()
    with pytest.raises(RuntimeError, match="Expected mat2 dtype to be of type int8"):
        torch._int_mm(a, b.float())
    with pytest.raises(RuntimeError, match="needs to match"):
        torch._int_mm(a, b[1:])
    with pytest.raises(RuntimeError, match="dimension 2"):
        torch._int_mm(a[0], b)


def test_names_that_other_packages_use():
    from torch.autograd.function import FunctionCtx, _ContextMethodMixin

    assert _ContextMethodMixin is FunctionCtx
    assert torch.has_cuda == torch.backends.cuda.is_built() and not torch.has_cudnn
    q = torch.randn(3, 2, 4)
    check = torch.nn.functional._mha_shape_check
    assert check(q, q, q, None, None, 2) and not check(q[0], q[0], q[0], None, None, 2)


def test_names_that_other_packages_use_of_submodules():
    from torch.autograd import DeviceType, ProfilerActivity
    from torch.functional import F, Tensor
    from torch.nn.functional import has_torch_function
    from torch.nn.utils import clip_grad

    assert F is torch.nn.functional and Tensor is torch.Tensor
    assert DeviceType.CUDA != DeviceType.CPU and ProfilerActivity.CPU
    assert not has_torch_function((torch.ones(1),))
    assert clip_grad._get_total_norm([torch.tensor([3.0, 4.0])]) == 5
    assert torch._C._GLIBCXX_USE_CXX11_ABI and not torch._C._mps_is_available()
    assert issubclass(torch.UntypedStorage, torch.storage._StorageBase)
    assert torch.cpu._is_avx512_bf16_supported() <= torch.cpu._is_avx512_supported()
    assert torch.cpu._is_vnni_supported() <= torch.cpu._is_avx2_supported()


def test_node_that_receives_a_gradient():
    from torch.autograd.graph import _get_grad_fn_or_grad_acc

    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert _get_grad_fn_or_grad_acc(y) == y.grad_fn
    assert "AccumulateGrad" in _get_grad_fn_or_grad_acc(x).name()
    with pytest.raises(AssertionError, match="Expected gradient function"):
        _get_grad_fn_or_grad_acc(torch.ones(1))


def test_get_lr_may_be_called_where_a_schedule_says_so():
    from torch.optim.lr_scheduler import StepLR, _enable_get_lr_call

    schedule = StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], 0.5), 2)
    with warnings.catch_warnings(), _enable_get_lr_call(schedule):
        warnings.simplefilter("error")
        assert schedule.get_lr() == [0.5]
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()


def test_a_thread_has_a_name():
    import torch.multiprocessing as multiprocessing

    before = multiprocessing._get_thread_name()
    multiprocessing._set_thread_name("a name longer than fifteen")
    try:
        assert multiprocessing._get_thread_name() == "a name longer t"
    finally:
        multiprocessing._set_thread_name(before)


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-6), (torch.float16, 1e-3), (torch.bfloat16, 8e-3)]
)
def test_weight_int8pack_mm(dtype, bound):
    x = torch.randn(3, 8).to(dtype)
    weight = torch.arange(-128, 128, dtype=torch.int32)[:40].view(5, 8).to(torch.int8)
    scales = torch.rand(5).add(0.5).to(dtype)
    out = torch._weight_int8pack_mm(x, weight, scales)
    assert out.dtype is dtype
    expected = x.double().numpy() @ weight.double().numpy().T * scales.double().numpy()
    assert np.abs(out.double().numpy() - expected).max() <= bound * np.abs(expected).max()
    with pytest.raises(RuntimeError, match="expect B to be int8"):
        torch._weight_int8pack_mm(x, weight.int(), scales)
    with pytest.raises(RuntimeError, match="1d tensor with size 5"):
        torch._weight_int8pack_mm(x, weight, scales[:4])
    with pytest.raises(RuntimeError, match="32-bit or 16-bit"):
        torch._weight_int8pack_mm(x.double(), weight, scales)


def test_gradcheck_of_a_function_that_takes_gradients_itself():
    def derivative(v):
        (gradient,) = torch.autograd.grad((v**3).sum(), v, create_graph=True)
        return gradient

    assert torch.autograd.gradcheck(
        derivative, (torch.rand(3, dtype=torch.float64).requires_grad_(),)
    )
