"""Registering kernels and operators in the orders and for the keys that packages use."""

import pytest

import torch


def test_kernel_registered_before_its_operator():
    early = torch.library.Library("ecosystem_order", "FRAGMENT")
    early.impl("twice", lambda x: x * 2, "CPU")
    late = torch.library.Library("ecosystem_order", "FRAGMENT")
    late.define("twice(Tensor x) -> Tensor")
    assert torch.ops.ecosystem_order.twice(torch.ones(2)).tolist() == [2.0, 2.0]
    gone = torch.library.Library("ecosystem_order", "FRAGMENT")
    gone.impl("thrice", lambda x: x * 3, "CPU")
    gone._destroy()
    del gone
    late.define("thrice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError):
        torch.ops.ecosystem_order.thrice(torch.ones(2))


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


def test_keys_of_absent_devices_have_names_and_add_nothing():
    key = torch._C.DispatchKey.AutocastXPU
    assert torch._C._dispatch_key_name(key) == "AutocastXPU"
    assert torch._C._dispatch_key_parse("MPS") == torch._C.DispatchKey.MPS
    assert torch._C._dispatch_key_for_device("xpu") == "XPU"
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    both = cpu | torch._C.DispatchKeySet(key)
    assert both == cpu and not both.has(key)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
        assert torch.ones(2).add(1).tolist() == [2, 2]


def test_kernel_for_an_absent_device_is_accepted_and_never_called():
    library = torch.library.Library("programs_absent", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("seven() -> int")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", lambda x: x * 3, "XPU")
    library.impl("seven", lambda: 7, "CompositeImplicitAutograd")
    library.impl("seven", lambda: 8, "AutogradMPS")
    torch.library.impl("programs_absent::twice", "mps", lambda x: x, lib=library)
    assert torch.ops.programs_absent.twice(torch.ones(1)).item() == 2
    assert torch.ops.programs_absent.seven() == 7
    library._destroy()


def test_unknown_key_is_refused():
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        torch._C._dispatch_key_parse("Toaster")
