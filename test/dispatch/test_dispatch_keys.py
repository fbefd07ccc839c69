"""Every dispatch key that later layers stand on takes a kernel, is reached in its order, and lets
dispatch go on below it."""

import pytest

import torch

# Functionality keys from low to high: a higher one is asked first.
KEYS = [
    "BackendSelect",
    "Functionalize",
    "ADInplaceOrView",
    "AutogradCPU",
    "AutocastCPU",
    "AutocastCUDA",
    "FuncTorchBatched",
    "FuncTorchGradWrapper",
    "PreDispatch",
]
BACKENDS = {"CPU": "cpu", "Meta": "meta"}


@pytest.fixture
def library():
    lib = torch.library.Library("cresset_keys", "DEF")
    yield lib
    lib._destroy()


def included(key):
    return torch._C._IncludeDispatchKeyGuard(torch._C._parse_dispatch_key(key))


def excluded(key):
    return torch._C._ExcludeDispatchKeyGuard(
        torch._C.DispatchKeySet(torch._C._parse_dispatch_key(key))
    )


@pytest.mark.parametrize("key", KEYS)
def test_key_takes_a_kernel_and_dispatch_goes_on_below(key, library):
    name = f"echo_{key.lower()}"
    library.define(f"{name}(Tensor x) -> Tensor")
    seen = []

    def backend(x):
        seen.append("backend")
        return x.clone()

    def functionality(x):
        seen.append(key)
        with excluded(key):
            return op(x)

    library.impl(name, backend, "CPU")
    library.impl(name, functionality, key)
    op = getattr(torch.ops.cresset_keys, name)
    x = torch.ones(2)  # a factory inside would be one of the key's calls
    with included(key):
        out = op(x)
    assert seen == [key, "backend"]
    assert out.tolist() == [1, 1]


def test_higher_keys_are_asked_first(library):
    library.define("order(Tensor x) -> Tensor")
    seen = []

    def kernel_for(key):
        def kernel(x):
            seen.append(key)
            with excluded(key):
                return torch.ops.cresset_keys.order(x)

        return kernel

    keys = ["Functionalize", "AutocastCPU", "FuncTorchBatched"]
    for key in keys:
        library.impl("order", kernel_for(key), key)
    library.impl("order", lambda x: x.clone(), "CPU")
    x = torch.ones(1)
    guards = [included(key) for key in keys]
    for guard in guards:
        guard.__enter__()
    try:
        torch.ops.cresset_keys.order(x)
    finally:
        for guard in reversed(guards):
            guard.__exit__(None, None, None)
    assert seen == list(reversed(keys))


@pytest.mark.parametrize("key", BACKENDS)
def test_backend_of_the_tensor_decides(key, library):
    library.define("where_am_i(Tensor x) -> int")
    for number, name in enumerate(BACKENDS):
        library.impl("where_am_i", lambda x, number=number: number, name)
    got = torch.ops.cresset_keys.where_am_i(torch.ones(1, device=BACKENDS[key]))
    assert got == list(BACKENDS).index(key)


def test_composite_serves_every_backend_and_a_backend_kernel_wins(library):
    library.define("pick(Tensor x) -> str")
    library.impl("pick", lambda x: "composite", "CompositeExplicitAutograd")
    assert torch.ops.cresset_keys.pick(torch.ones(1)) == "composite"
    library.impl("pick", lambda x: "cpu", "CPU")
    assert torch.ops.cresset_keys.pick(torch.ones(1)) == "cpu"
    assert torch.ops.cresset_keys.pick(torch.ones(1, device="meta")) == "composite"


def test_missing_backend_names_operator_and_backends(library):
    library.define("cpu_only(Tensor x) -> Tensor")
    library.impl("cpu_only", lambda x: x, "CPU")
    with pytest.raises(NotImplementedError, match=r"cresset_keys::cpu_only.*'Meta' backend"):
        torch.ops.cresset_keys.cpu_only(torch.ones(1, device="meta"))


def test_kernel_of_a_builtin_operator_is_overridden_and_comes_back():
    lib = torch.library.Library("aten", "IMPL")
    try:
        lib.impl("sinh", lambda x: torch.full_like(x, 42), "CPU")
        assert torch.sinh(torch.zeros(1)).item() == 42
    finally:
        lib._destroy()
    assert torch.sinh(torch.zeros(1)).item() == 0


def test_conjugate_and_negative_bits_are_resolved_by_their_keys():
    z = torch.tensor([1 + 2j, 3 - 4j])
    assert z.conj().is_conj() and (z.conj() * 1j).tolist() == [2 + 1j, -4 + 3j]
    assert z.conj().imag.is_neg() and (z.conj().imag + 1).tolist() == [-1, 5]


def test_keys_with_another_meaning_are_free_for_their_users():
    """Forward mode, inference mode and the profiler have keys of their own."""
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
        keys = torch._C._dispatch_keys(dual)
        assert keys.has(torch._C.DispatchKey.ForwardGrad)
        assert not keys.has(torch._C.DispatchKey.Tracer)
    with torch.inference_mode():
        keys = torch._C._dispatch_keys(torch.ones(2))
        assert keys.has(torch._C.DispatchKey.InferenceCheck)
        assert not keys.has(torch._C.DispatchKey.DeferredInit)


def test_pre_dispatch_kernel_runs_while_the_profiler_records(library):
    library.define("traced(Tensor x) -> Tensor")
    seen = []

    def pre_dispatch(x):
        seen.append("PreDispatch")
        with excluded("PreDispatch"):
            return torch.ops.cresset_keys.traced(x)

    library.impl("traced", pre_dispatch, "PreDispatch")
    library.impl("traced", lambda x: x + 1, "CPU")
    with torch.profiler.profile() as profiler, included("PreDispatch"):
        assert torch.ops.cresset_keys.traced(torch.ones(1)).item() == 2
    assert seen == ["PreDispatch"]
    assert "cresset_keys::traced" in {event.name for event in profiler.events()}


def test_handlers_in_python_are_asked_before_the_fake_key():
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.Fake).add(torch._C.DispatchKey.Python)
    assert keys.highestPriorityTypeId() == torch._C.DispatchKey.Python


def test_python_kernel_of_a_key_runs_only_where_the_python_dispatcher_is_on():
    with torch.library._scoped_library("pydispatch", "FRAGMENT") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        op = torch.ops.pydispatch.f.default
        op.py_impl(torch._C.DispatchKey.CPU)(lambda x: x + 10)
        x = torch.zeros(1)
        assert op(x).item() == 1
        with torch._C._EnablePythonDispatcher():
            assert op(x).item() == 10
            with torch._C._DisablePythonDispatcher():
                assert op(x).item() == 1
        assert op(x).item() == 1


def test_forced_keys_replace_those_of_the_thread_for_a_block():
    keys = torch._C._dispatch_tls_local_exclude_set
    given = torch._C.DispatchKeySet(torch._C.DispatchKey.AutogradCPU)
    before = keys()
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.Meta)):
        with torch._C._ForceDispatchKeyGuard(
            torch._C.DispatchKeySet(torch._C.DispatchKey.Undefined), given
        ):
            assert keys() == given
            assert not (torch.ones(1, requires_grad=True) * 2).requires_grad
        assert keys() != given
    assert keys() == before
