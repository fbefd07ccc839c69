"""Fake tensors: form without data. What an operator on them returns, and what it refuses."""

import copy
import gc
import types
import weakref

import numpy as np
import pytest

import torch
from torch import nn
from torch._subclasses import _fake_special
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeCopyMode,
    FakeTensor,
    FakeTensorConverter,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
    is_fake,
    maybe_get_fake_mode,
    unset_fake_temporarily,
)
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def mode():
    with FakeTensorMode() as active:
        yield active


def form(t):
    return type(t), tuple(t.shape), t.stride(), t.dtype, str(t.device)


# ---- results


def test_factories_in_the_mode_make_fakes_that_claim_the_device(mode):
    a = torch.empty(2, 3, device="cuda")
    assert form(a) == (FakeTensor, (2, 3), (3, 1), torch.float32, "cuda:0")
    assert form(torch.arange(4)) == (FakeTensor, (4,), (1,), torch.int64, "cpu")
    assert form(torch.ones_like(a, dtype=torch.half))[3:] == (torch.half, "cuda:0")
    assert a.new_zeros(2, device="cpu").device.type == "cpu"
    assert a.fake_mode is mode and a.fake_device == torch.device("cuda:0")


def test_results_have_the_form_of_real_ones(mode):
    a, b = torch.empty(4, 1, 5), torch.empty(3, 5, dtype=torch.float64)
    assert form(a + b) == (FakeTensor, (4, 3, 5), (15, 5, 1), torch.float64, "cpu")
    assert form(a.transpose(0, 2))[1:3] == ((5, 1, 4), (1, 5, 5))
    assert form(torch.randn(2, 3) @ torch.randn(3, 4))[1] == (2, 4)


def test_operators_outside_of_the_block_keep_the_mode():
    with FakeTensorMode() as mode:
        a = torch.empty(2)
    assert torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is None
    assert (a * 2).fake_mode is mode
    assert type(torch.ones(2)) is torch.Tensor


def test_views_share_storage_base_and_version_with_the_fake(mode):
    a = torch.zeros(3, 4)
    row = a[1]
    assert row._base is a
    assert row.untyped_storage()._cdata == a.untyped_storage()._cdata
    row.add_(1)
    assert a._version == row._version == 1
    assert a.view(-1)[2:].storage_offset() == 2


def test_in_place_change_of_geometry_reaches_the_fake(mode):
    a = torch.zeros(3, 4)
    assert a.t_() is a and a.shape == (4, 3)
    assert a.resize_(2, 2).shape == (2, 2) and a.stride() == (2, 1)
    b = torch.zeros(5, device="cuda")
    assert b.set_(torch.zeros(2, device="cuda")).shape == (2,) and b.device.type == "cuda"


def test_training_step_runs_on_fakes(mode):
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    model = nn.Sequential(model, nn.Linear(144, 2)).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters())
    loss = nn.functional.cross_entropy(
        model(torch.randn(2, 3, 8, 8, device="cuda")),
        torch.zeros(2, dtype=torch.long, device="cuda"),
    )
    loss.backward()
    optimizer.step()
    for p in model.parameters():
        assert isinstance(p, nn.Parameter) and isinstance(p, FakeTensor)
        assert form(p.grad)[1:] == form(p)[1:]


# ---- devices


def test_number_like_cpu_tensor_mixes_with_another_device(mode):
    out = torch.empty((), dtype=torch.float64) + torch.empty(3, device="cuda")
    assert form(out)[3:] == (torch.float32, "cuda:0")


def test_tensors_of_two_devices_are_refused(mode):
    with pytest.raises(
        RuntimeError, match=r"aten.add.Tensor, found two different devices cpu, cuda:0"
    ):
        torch.empty(3) + torch.empty(3, device="cuda")


def test_copy_and_to_cross_devices(mode):
    a, b = torch.empty(3), torch.empty(3, device="cuda:1")
    assert str(a.copy_(b).device) == "cpu" and str(b.copy_(a).device) == "cuda:1"
    assert str(a.to("cuda:1").device) == "cuda:1" and str(b.cpu().device) == "cpu"
    assert str(b[torch.zeros(2, dtype=torch.long)].device) == "cuda:1"


def test_indices_into_a_tensor_of_the_meta_device_may_be_elsewhere(mode):
    bag = nn.EmbeddingBag(10, 3, device="meta")
    out = bag(torch.zeros(4, dtype=torch.long), torch.zeros(2, dtype=torch.long))
    assert form(out)[1:] == ((2, 3), (3, 1), torch.float32, "meta")


def test_foreach_results_are_where_each_operand_is(mode):
    out = torch._foreach_mul([torch.empty(2), torch.empty(3, device="cuda")], 2.0)
    assert [(str(t.device), tuple(t.shape)) for t in out] == [("cpu", (2,)), ("cuda:0", (3,))]


# ---- real tensors


def test_real_tensor_among_the_arguments_is_refused(mode):
    with unset_fake_temporarily() as before:
        assert before is mode
        real = torch.ones(3)
    assert type(real) is torch.Tensor
    with pytest.raises(AssertionError, match=r"Please convert all Tensors .* aten.add.Tensor\("):
        torch.empty(3) + real
    with pytest.raises(AssertionError, match="Please convert all Tensors"):
        real[0]


def test_real_tensor_with_allow_non_fake_inputs_becomes_fake():
    real = torch.ones(3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(real * 2, FakeTensor)


def test_fakes_of_two_modes_do_not_mix():
    with FakeTensorMode():
        a = torch.empty(2)
    with FakeTensorMode(), pytest.raises(AssertionError, match="Mixing fake modes"):
        a + torch.empty(2)


# ---- data


def test_reading_values_raises(mode):
    a = torch.randn(3)
    for read in (a.sum().item, a.tolist, lambda: bool(a[0] > 0), lambda: torch.equal(a, a)):
        with pytest.raises(DataDependentOutputException):
            read()


@pytest.mark.parametrize(
    "op",
    [
        torch.nonzero,
        torch.unique,
        lambda a: torch.masked_select(a, a > 0),
        lambda a: a[a > 0],
        lambda a: torch.bincount(a.long()),
    ],
)
def test_shape_that_depends_on_data_raises(mode, op):
    with pytest.raises(DynamicOutputShapeException):
        op(torch.randn(3))


def test_constant_is_followed_through_operators(mode):
    a = torch.tensor(3)
    b = (a + 4) * 2
    assert b.item() == 14
    with unset_fake_temporarily():
        assert b.constant == 14
    assert torch.tensor([1, 2]).constant is None


def test_constant_is_forgotten_with_all_its_views_after_a_write(mode):
    a = torch.tensor([1.0])
    view = a[:]
    assert view.constant is not None
    view.mul_(3)
    assert a.item() == 3.0
    view.add_(torch.rand(1))
    assert a.constant is None and view.constant is None
    with pytest.raises(DataDependentOutputException):
        a.item()


def test_constant_is_forgotten_after_a_write_through_a_view_too_large_to_follow(mode):
    a = torch.tensor([1])
    wide = a.expand(4)
    assert wide.constant is None and a.constant is not None
    wide[0] = torch.randint(3, ())
    assert a.constant is None


def test_constant_is_forgotten_when_the_tensor_is_resized(mode):
    a = torch.tensor([1])
    assert a.constant is not None
    a.resize_(2)
    assert a.shape == (2,) and a.constant is None


def test_numbers_alone_give_a_constant(mode):
    assert torch.div(9, 4, rounding_mode="floor").item() == 2


def test_data_of_python_and_numpy_becomes_fake(mode):
    assert isinstance(torch.tensor(np.zeros((2, 3))), FakeTensor)
    assert isinstance(torch.tensor([[1, 2]], device="cuda"), FakeTensor)
    assert isinstance(torch.zeros(3)[[0, 2]], FakeTensor)


# ---- conversion


def test_conversion_is_remembered_and_keeps_views():
    mode = FakeTensorMode()
    base = torch.rand(3, 4, requires_grad=True)
    view = base.detach()[1:]
    fake = mode.from_tensor(view)
    assert mode.from_tensor(view) is fake
    assert form(fake)[1:] == form(view)[1:] and fake.storage_offset() == 4
    assert mode.from_tensor(fake) is fake
    assert mode.from_tensor(base).requires_grad


def test_converted_parameter_is_a_parameter_and_has_a_fake_gradient():
    mode = FakeTensorMode()
    parameter = nn.Parameter(torch.rand(4))
    parameter.grad = torch.rand(4)
    fake = mode.from_tensor(parameter)
    assert isinstance(fake, nn.Parameter) and fake.is_leaf and fake.requires_grad
    assert isinstance(fake.grad, FakeTensor)
    assert not isinstance(mode.from_tensor(parameter.view(4)), nn.Parameter)


def test_sparse_tensor_has_no_fake_form():
    with pytest.raises(UnsupportedFakeTensorException):
        FakeTensorMode().from_tensor(torch.eye(3).to_sparse())


def test_converter_forgets_dead_tensors():
    mode, converter = FakeTensorMode(), FakeTensorConverter()
    real = torch.rand(2)
    fake = converter.from_real_tensor(mode, real)
    assert len(converter.tensor_memo) == 1 and fake.shape == (2,)
    del real, fake
    assert len(converter.tensor_memo) == 0


def test_mode_lives_as_long_as_its_fakes():
    mode = FakeTensorMode()
    fake = mode.from_tensor(torch.rand(2))
    dead = weakref.ref(mode)
    del mode
    gc.collect()
    assert dead() is fake.fake_mode
    del fake
    gc.collect()
    assert dead() is None


def test_module_copied_in_fake_copy_mode_is_fake():
    mode = FakeTensorMode()
    module = nn.BatchNorm2d(3)
    module.again = module.weight
    with FakeCopyMode(mode):
        copied = copy.deepcopy(module)
    assert copied.again is copied.weight and isinstance(copied.weight, nn.Parameter)
    assert isinstance(copied.running_mean, FakeTensor) and copied.running_mean.fake_mode is mode
    assert type(module.weight) is nn.Parameter


def test_copies_of_a_fake_are_fakes_of_the_same_form(mode):
    a = torch.empty(4, 3, device="cuda").t()
    assert form(copy.deepcopy(a)) == form(a)
    assert form(a.detach()) == form(a) and form(a.data) == form(a)


def test_questions_about_fakes_hold_for_wrappers_too(mode):
    a = torch.empty(2)
    assert is_fake(a) and maybe_get_fake_mode(a) is mode
    with unset_fake_temporarily():
        assert not is_fake(torch.ones(2)) and maybe_get_fake_mode(torch.ones(2)) is None


def test_repr_shows_form_and_no_data(mode):
    assert repr(torch.empty(2, 2)) == "FakeTensor(..., size=(2, 2))"
    assert repr(torch.empty(2, device="meta")) == "FakeTensor(..., device='meta', size=(2,))"
    assert repr(nn.Parameter(torch.empty(2))) == (
        "Parameter(FakeTensor(..., size=(2,), requires_grad=True))"
    )


def test_printing_a_real_tensor_in_the_mode_shows_its_data():
    real = torch.zeros(2)
    with FakeTensorMode():
        assert str(real) == "tensor([0., 0.])"
        assert str(real.untyped_storage()).startswith(" 0")


# ---- modes


def test_nested_modes_each_make_their_own():
    with FakeTensorMode() as outer:
        with FakeTensorMode() as inner:
            assert torch.empty(1).fake_mode is inner
        with outer:
            assert torch.empty(1).fake_mode is outer
        assert torch.empty(1).fake_mode is outer


def test_user_mode_sees_fakes_before_the_fake_mode():
    seen = []

    class Record(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            seen.append((str(func), type(out)))
            return out

    with Record(), FakeTensorMode():
        torch.neg(torch.empty(2))
    assert ("aten.neg.default", FakeTensor) in seen


def test_subclass_of_the_mode_that_overrides_dispatch_sees_every_operator():
    seen = []

    class Mine(FakeTensorMode):
        def dispatch(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().dispatch(func, types, args, kwargs)

    with Mine() as mode:
        out = torch.neg(torch.empty(2))
    assert out.fake_mode is mode
    assert seen == ["aten.empty.memory_format", "aten.neg.default"]


def test_real_tensors_beside_the_fakes_follow_each_operator(monkeypatch):
    config = types.SimpleNamespace(fake_tensor_propagate_real_tensors=True)
    monkeypatch.setattr(_fake_special, "functorch_config", lambda: config)
    with FakeTensorMode() as mode:
        a = mode.from_tensor(torch.tensor([1.0, 2.0]))
        b = (a * 3).add_(1)
    assert isinstance(b, FakeTensor) and b.real_tensor.tolist() == [4.0, 7.0]


def test_fakes_of_the_meta_device_can_be_switched_off(monkeypatch):
    config = types.SimpleNamespace(fake_tensor_allow_meta=False)
    monkeypatch.setattr(_fake_special, "functorch_config", lambda: config)
    with FakeTensorMode():
        assert torch.empty(2).shape == (2,)
        with pytest.raises(AssertionError, match="meta device"):
            torch.empty(2, device="meta")


def test_no_dispatch_inside_the_mode_makes_real_tensors(mode):
    with no_dispatch():
        assert type(torch.ones(2)) is torch.Tensor
    assert isinstance(torch.ones(2), FakeTensor)


# ---- custom operators


@pytest.fixture
def library():
    with torch.library._scoped_library("faketest", "FRAGMENT") as lib:
        yield lib


def test_registered_fake_gets_fakes_of_the_claimed_device(library):
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: torch.cat([x, x]), "CPU")
    seen = []

    @torch.library.register_fake("faketest::twice", lib=library)
    def _(x):
        seen.append(str(x.device))
        return x.new_empty(2 * x.shape[0])

    with FakeTensorMode():
        out = torch.ops.faketest.twice(torch.empty(3, device="cuda"))
    assert form(out) == (FakeTensor, (6,), (1,), torch.float32, "cuda:0")
    assert seen == ["cuda:0"]


def test_custom_operator_without_a_fake_is_refused(library, mode):
    library.define("nofake(Tensor x) -> Tensor")
    library.impl("nofake", lambda x: x.clone(), "CPU")
    with pytest.raises(UnsupportedOperatorException, match=r"faketest\.nofake\.default"):
        torch.ops.faketest.nofake(torch.empty(2))


def test_rule_registered_with_py_impl_runs_instead_of_the_kernel(library):
    library.define("ruled(Tensor x) -> Tensor")
    op = torch.ops.faketest.ruled.default

    @op.py_impl(FakeTensorMode)
    def _(mode, x):
        return x.new_empty(7)

    with FakeTensorMode():
        assert op(torch.empty(2)).shape == (7,)
