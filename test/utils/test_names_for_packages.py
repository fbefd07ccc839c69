"""Names and small helpers that other packages import, each with what it must do."""

import subprocess
import sys
import textwrap
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import torch
from torch import nn
from torch.nn import functional
from torch.utils import _pytree as pytree


def answer(code, timeout=60):
    """What a fresh process prints."""
    done = subprocess.run(
        [sys.executable, "-c", "import torch\n" + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["forward_ad", "functional", "graph", "profiler"])
def test_submodules_of_autograd_need_no_import_of_their_own(name):
    assert answer(f"print(torch.autograd.{name}.__name__)") == f"torch.autograd.{name}"


def test_decorating_context_managers():
    from torch.utils._contextlib import _DecoratorContextManager, context_decorator

    depth = []

    class deeper(_DecoratorContextManager):
        def __enter__(self):
            depth.append(1)

        def __exit__(self, *error):
            depth.pop()

    @deeper()
    def count():
        return len(depth)

    assert count() == 1
    assert context_decorator(lambda: deeper(), lambda: len(depth))() == 1
    assert not depth


def test_state_dict_of_one_process():
    from torch.distributed.checkpoint import state_dict as states

    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    weights, moments = states.get_state_dict(model, optimizer)
    assert set(moments["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    assert moments["param_groups"][0]["params"] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    flat = states.StateDictOptions(flatten_optimizer_state_dict=True)
    for form in (moments, states.get_optimizer_state_dict(model, optimizer, options=flat)):
        fresh = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
        other = torch.optim.Adam(fresh.parameters(), lr=0.7)
        states.set_state_dict(fresh, other, model_state_dict=weights, optim_state_dict=form)
        assert other.param_groups[0]["lr"] == 0.1
        torch.testing.assert_close(fresh[0].weight, model[0].weight)
        assert len(other.state) == 4
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    full = states.StateDictOptions(full_state_dict=True)
    states.set_model_state_dict(empty, nn.Linear(2, 2).state_dict(), options=full)
    assert empty.weight.device.type == "cpu"
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        states.get_model_state_dict(
            empty, options=states.StateDictOptions(broadcast_from_rank0=True)
        )


def test_names_that_only_say_no():
    import torch._dynamo.utils
    from torch._subclasses.fake_tensor import is_fake
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    assert not is_fake(torch.ones(1))
    assert get_proxy_mode() is None
    assert not torch._dynamo.utils.is_compile_supported("cpu")
    assert not isinstance(torch.ones(1), torch._C.Graph)
    assert not hasattr(torch._C, "_no_such_name")


def test_dense_tensors_flattened():
    from torch._utils import _flatten_dense_tensors, _take_tensors, _unflatten_dense_tensors

    tensors = [torch.ones(3), torch.zeros(2, 2)]
    parts = _unflatten_dense_tensors(_flatten_dense_tensors(tensors), tensors)
    assert [part.shape for part in parts] == [(3,), (2, 2)]
    groups = list(_take_tensors([torch.ones(3), torch.ones(3).int(), torch.ones(9)], 16))
    assert [[t.numel() for t in group] for group in groups] == [[3], [9], [3]]


def test_alias_question():
    x = torch.ones(4)
    assert torch._C._is_alias_of(x, x[2:])
    assert not torch._C._is_alias_of(x, x.clone())


def test_older_names():
    import torch._custom_ops
    from torch.utils.model_zoo import load_url, tqdm

    assert callable(load_url)
    with tqdm(total=4, disable=True) as bar:
        bar.update(2)
    assert torch.jit._script_if_tracing(max)(1, 2) == 2
    assert torch.hub.tqdm is tqdm
    assert torch.cuda._initialized is torch.cuda.is_initialized()


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


def test_machinery_of_imports_is_loaded_with_torch():
    finder = "import importlib; print(importlib.machinery.PathFinder.__name__)"
    assert answer(finder).strip() == "PathFinder"
