"""The tensor object: identity, lifetime, attributes, subclasses, operators of Python, and the small
types."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import pytest

import torch

# ---- identity and lifetime -----------------------------------------------------------------------


def test_in_place_result_is_the_same_object():
    t = torch.ones(2)
    assert t.add_(1) is t
    t2 = t
    t2 += 1
    assert t2 is t


def test_base_of_a_view_is_the_same_object():
    t = torch.ones(4)
    view = t[1:]
    assert view._base is t
    assert view._is_view() and not t._is_view()


def test_attributes_survive_while_only_cpp_holds_the_tensor():
    t = torch.ones(4)
    t.note = "kept"
    view = t[1:]
    ident = weakref.ref(t)
    del t
    gc.collect()
    assert view._base.note == "kept"
    assert ident() is view._base
    del view
    gc.collect()
    assert ident() is None


def test_object_reached_through_weakref_outlives_cpp_owner():
    t = torch.ones(4)
    view = t[1:]
    ref = weakref.ref(t)
    del t
    again = ref()
    del view
    gc.collect()
    assert again.tolist() == [1.0] * 4


def test_cycles_through_attributes_are_collected():
    t = torch.ones(2)
    t.me = t
    ref = weakref.ref(t)
    del t
    gc.collect()
    assert ref() is None


def test_subclass_object_survives_while_only_cpp_holds_the_tensor():
    class Sub(torch.Tensor):
        pass

    t = torch.ones(4).as_subclass(Sub)
    with torch._C.DisableTorchFunctionSubclass():
        view = t[1:]
    del t
    gc.collect()
    assert type(view._base) is Sub


def test_subclass_with_slots_and_finalizer():
    log = []

    class Sub(torch.Tensor):
        __slots__ = ("extra",)

        def __del__(self):
            log.append(self.extra)

    t = torch.ones(2).as_subclass(Sub)
    t.extra = "gone"
    del t
    gc.collect()
    assert log == ["gone"]


def test_many_objects_come_and_go():
    keep = [torch.ones(1) for _ in range(1000)]
    del keep
    again = [torch.ones(1) + i for i in range(1000)]
    assert [x.item() for x in again[:3]] == [1.0, 2.0, 3.0]


# ---- attributes ----------------------------------------------------------------------------------


def test_geometry_attributes():
    t = torch.ones(2, 3)
    assert t.shape == t.size() == (2, 3) and isinstance(t.shape, torch.Size)
    assert t.size(1) == t.size(-1) == t.size(dim=1) == 3
    assert t.stride() == (3, 1) and t.stride(0) == 3
    assert t.dim() == t.ndim == t.ndimension() == 2
    assert t.numel() == t.nelement() == 6 and t.itemsize == t.element_size() == 4 and t.nbytes == 24
    assert t.storage_offset() == 0 and t.is_contiguous() and not t.t().is_contiguous()
    with pytest.raises(
        IndexError,
        match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)",
    ):
        t.size(5)


def test_transposes():
    t = torch.ones(2, 3, 4)
    assert t.mT.shape == (2, 4, 3)
    assert t[0].T.shape == (4, 3) and t[0].H.shape == (4, 3)
    with pytest.raises(RuntimeError, match="only supported on matrices"):
        _ = t.H
    assert torch.tensor(1.0).T.shape == ()


def test_requires_grad_flag():
    t = torch.ones(2)
    assert not t.requires_grad and t.is_leaf and t.grad is None and t.grad_fn is None
    t.requires_grad = True
    assert t.requires_grad and t.requires_grad_(False) is t and not t.requires_grad
    with pytest.raises(
        RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"
    ):
        torch.ones(2, dtype=torch.int64).requires_grad = True
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        t.requires_grad = 1


def test_grad_is_checked_on_assignment():
    t = torch.ones(2)
    t.grad = torch.zeros(2)
    assert t.grad.tolist() == [0.0, 0.0] and t.grad is t.grad
    t.grad = None
    assert t.grad is None
    for bad in (torch.zeros(3), torch.zeros(2, dtype=torch.float64), t):
        with pytest.raises(RuntimeError):
            t.grad = bad
    with pytest.raises(TypeError):
        t.grad = 1


def test_data_shares_memory_and_can_be_replaced():
    t = torch.ones(2)
    t.data.add_(1)
    assert t.tolist() == [2.0, 2.0]
    t.data = torch.zeros(3)
    assert t.shape == (3,)
    with pytest.raises(TypeError):
        t.data = 1


def test_version_counts_writes_through_views():
    t = torch.ones(3)
    before = t._version
    t[0].add_(1)
    assert t._version > before


# ---- numbers -------------------------------------------------------------------------------------


def test_arithmetic_operators_with_numbers_on_both_sides():
    t = torch.tensor([1.0, 2.0, 4.0])
    assert (t + 1).tolist() == (1 + t).tolist() == [2, 3, 5]
    assert (t - 1).tolist() == [0, 1, 3] and (1 - t).tolist() == [0, -1, -3]
    assert (t * 2).tolist() == (2 * t).tolist() == [2, 4, 8]
    assert (
        (-t).tolist() == [-1, -2, -4]
        and abs(-t).tolist() == [1, 2, 4]
        and (+t).tolist() == [1, 2, 4]
    )
    assert (t < 2).tolist() == [True, False, False] and (t > 2).tolist() == [False, False, True]
    assert (t == t).tolist() == [True] * 3 and (t != 1).tolist() == [False, True, True]


def test_integer_operators():
    t = torch.tensor([1, 2, 4])
    assert (t & 6).tolist() == (6 & t).tolist() == [0, 2, 4]
    assert (t | 1).tolist() == [1, 3, 5] and (t ^ 1).tolist() == [0, 3, 5]
    assert (
        (t << 1).tolist() == [2, 4, 8]
        and (1 << t).tolist() == [2, 4, 16]
        and (t >> 1).tolist() == [0, 1, 2]
    )
    assert (~t).tolist() == [-2, -3, -5]
    assert (
        (t // 2).tolist() == [0, 1, 2]
        and (t % 3).tolist() == [1, 2, 1]
        and (7 // t).tolist() == [7, 3, 1]
    )


def test_foreign_operands_are_left_to_python():
    t = torch.ones(2)

    class Other:
        def __radd__(self, other):
            return "mine"

    assert t + Other() == "mine"
    assert t.__add__("a") is NotImplemented
    assert (t == "a") is False and (t != None) is True  # noqa: E711
    with pytest.raises(
        TypeError, match=r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"
    ):
        t + "a"
    with pytest.raises(TypeError, match="'<' not supported"):
        _ = t < "a"
    with pytest.raises(TypeError):
        t @ 3
    with pytest.raises(TypeError, match="only implemented on integer and Boolean-type tensors"):
        _ = ~t


def test_conversion_to_python_numbers():
    assert (
        int(torch.tensor(3.7)) == 3
        and float(torch.tensor(2)) == 2.0
        and complex(torch.tensor(2)) == 2
    )
    assert bool(torch.tensor(0)) is False and bool(torch.tensor([1])) is True
    assert [10, 20][torch.tensor(1)] == 20
    assert torch.tensor(2**63 - 1).item() == 2**63 - 1 and torch.tensor(True).item() is True
    with pytest.raises(
        RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"
    ):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with no values is ambiguous"):
        bool(torch.ones(0))
    with pytest.raises(
        ValueError, match="only one element tensors can be converted to Python scalars"
    ):
        int(torch.ones(2))
    with pytest.raises(
        RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"
    ):
        torch.ones(2).item()
    with pytest.raises(
        TypeError, match="only integer tensors of a single element can be converted to an index"
    ):
        [1][torch.tensor(1.0)]
    with pytest.raises(OverflowError):
        int(torch.tensor(float("inf")))


def test_tolist_of_all_ranks():
    assert torch.tensor(1.5).tolist() == 1.5
    assert torch.ones(2, 0).tolist() == [[], []]
    assert torch.tensor([[1, 2], [3, 4]]).t().tolist() == [[1, 3], [2, 4]]
    assert len(torch.ones(3, 2)) == 3
    with pytest.raises(TypeError, match="len\\(\\) of a 0-d tensor"):
        len(torch.tensor(1))


# ---- conversions ---------------------------------------------------------------------------------


def test_to_returns_itself_when_nothing_changes():
    t = torch.ones(2)
    assert t.to(torch.float32) is t and t.to("cpu") is t and t.to() is t and t.to(t) is t
    assert t.float() is t and t.cpu() is t and t.contiguous() is t
    assert t.to(torch.float32, copy=True) is not t


def test_to_forms():
    t = torch.ones(2)
    assert t.to(torch.int32).dtype is torch.int32
    assert t.to("cpu", torch.int32).dtype is torch.int32
    assert t.to(torch.ones(1, dtype=torch.float64)).dtype is torch.float64
    assert t.to(device="cpu", dtype=torch.int16).dtype is torch.int16
    assert t.to("meta").device.type == "meta"
    assert (
        t.long().dtype is torch.int64
        and t.bool().dtype is torch.bool
        and t.cfloat().dtype is torch.complex64
    )
    with pytest.raises(TypeError, match="to\\(\\) received an invalid combination of arguments"):
        t.to(torch.int32, "cpu")


def test_type_names():
    t = torch.ones(2)
    assert t.type() == "torch.FloatTensor"
    assert (
        t.type("torch.IntTensor").dtype is torch.int32 and t.type(torch.int64).dtype is torch.int64
    )
    with pytest.raises(ValueError, match="invalid type: 'foo'"):
        t.type("foo")


# ---- subclasses ----------------------------------------------------------------------------------


def test_make_subclass_shares_memory():
    class Sub(torch.Tensor):
        pass

    t = torch.ones(2)
    s = torch.Tensor._make_subclass(Sub, t)
    assert type(s) is Sub
    t.add_(1)
    assert s.tolist() == [2.0, 2.0]
    assert torch.Tensor._make_subclass(Sub, t, True).requires_grad
    with pytest.raises(TypeError, match="does not inherit from Tensor"):
        torch.Tensor._make_subclass(int, t)
    with pytest.raises(TypeError):
        torch.Tensor._make_subclass(Sub, 1)


def test_base_class_cannot_be_constructed():
    with pytest.raises(RuntimeError, match="Cannot directly construct TensorBase"):
        torch._C.TensorBase()
    with pytest.raises(TypeError):
        object.__new__(torch.Tensor)


# ---- small types ---------------------------------------------------------------------------------


def test_dtype_objects():
    assert repr(torch.float32) == "torch.float32" and torch.float is torch.float32
    assert (
        torch.float32.itemsize == 4
        and torch.float32.is_floating_point
        and not torch.int8.is_complex
    )
    assert (
        torch.float32.to_complex() is torch.complex64 and torch.complex64.to_real() is torch.float32
    )
    assert not torch.uint8.is_signed
    with pytest.raises(TypeError):
        torch.dtype()


def test_device_objects():
    assert (
        repr(torch.device("cuda:1")) == "device(type='cuda', index=1)"
        and str(torch.device("cuda", 1)) == "cuda:1"
    )
    assert torch.device("cpu").index is None and torch.device("cpu") != torch.device("cpu:0")
    assert (
        hash(torch.device("cpu")) == hash(torch.device("cpu"))
        and torch.device(torch.device("cpu")).type == "cpu"
    )
    for bad in ("foo", "", "cuda:", "cuda:-1", "cuda:01", "cuda:x"):
        with pytest.raises(RuntimeError):
            torch.device(bad)
    with pytest.raises(
        RuntimeError, match="must not include an index because index was passed explicitly"
    ):
        torch.device("cuda:0", 1)
    with pytest.raises(TypeError):
        torch.device(1.0)


def test_size_stays_size():
    s = torch.Size([1, 2])
    assert (
        repr(s) == "torch.Size([1, 2])"
        and s == (1, 2)
        and hash(s) == hash((1, 2))
        and s.numel() == 2
    )
    for kept in (s[:1], s + (3,), (3,) + s, s * 2, 2 * s):
        assert type(kept) is torch.Size
    assert torch.Size([torch.tensor(3)]) == (3,)
    with pytest.raises(
        TypeError, match=r"torch.Size\(\) takes an iterable of 'int' \(item 0 is 'float'\)"
    ):
        torch.Size([1.0])
    with pytest.raises(TypeError):
        s + [3]


def test_finfo_and_iinfo():
    info = torch.finfo(torch.float32)
    assert info.eps == 2**-23 and info.tiny == info.smallest_normal == 2**-126 and info.bits == 32
    assert info.max == torch.finfo().max and info.dtype == "float32" and info.resolution == 1e-6
    assert torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.complex64) == torch.finfo(
        torch.float32
    )
    assert torch.iinfo(torch.int8).min == -128 and torch.iinfo(torch.uint64).max == 2**64 - 1
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


@pytest.mark.parametrize(
    "value",
    [
        torch.float32,
        torch.strided,
        torch.channels_last,
        torch.device("cuda:1"),
        torch.Size([1, 2]),
        torch.finfo(),
    ],
    ids=str,
)
def test_small_types_pickle_and_copy(value):
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value


def test_generator_state_round_trip():
    g = torch.Generator()
    assert g.initial_seed() == 67280421310721 and g.device.type == "cpu"
    assert g.manual_seed(-1) is g and g.initial_seed() == 2**64 - 1
    state = g.get_state()
    assert state.dtype is torch.uint8 and state.shape == (5056,)
    other = torch.Generator().set_state(state)
    assert (
        other.get_state().tolist() == state.tolist()
        and other.clone_state().get_state().tolist() == state.tolist()
    )
    with pytest.raises(TypeError):
        g.set_state(torch.zeros(3))
    with pytest.raises(RuntimeError):
        g.manual_seed("a")


def test_method_called_on_the_class_raises_after_many_calls_on_instances():
    # In a process of its own: it used to end it.
    code = """
import torch

def call(u):
    u.size()

for _ in range(200):
    call(torch.ones(2))
try:
    call(torch.Tensor)
except TypeError as error:
    print("TypeError")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "TypeError"), done.stderr


# ---- storages


def test_meta_storage_has_a_size_and_no_elements():
    storage = torch.UntypedStorage(10, device="meta")
    assert (storage.nbytes(), storage.data_ptr(), storage.device.type) == (10, 0, "meta")
    assert torch.UntypedStorage([1, 2], device="meta").nbytes() == 2
    storage.resize_(20)
    assert storage.nbytes() == 20
    with pytest.raises(NotImplementedError, match="Not available for 'meta'"):
        storage[0]
    typed = torch.empty(3, device="meta")._typed_storage()
    with pytest.raises(NotImplementedError, match="Not available for 'meta'"):
        typed[0]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storage_of_another_dtype_is_refused():
    doubles = torch.ones(3, dtype=torch.float64).storage()
    for use in (
        lambda: torch.empty(0).set_(doubles),
        lambda: torch.tensor(doubles, dtype=torch.float32),
        lambda: torch.FloatTensor(doubles),
    ):
        with pytest.raises(RuntimeError, match="Expected a Storage of type Float or an Untyped"):
            use()
    assert torch.empty(0).set_(doubles.untyped()).numel() == 6


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storage_converts_to_every_dtype_by_name():
    storage = torch.IntStorage([-1, 0, 2])
    assert storage.float().tolist() == [-1.0, 0.0, 2.0]
    assert storage.half().type() == "torch.HalfStorage"
    assert storage.byte().tolist() == [255, 0, 2]
    assert storage.complex_double().dtype is torch.complex128
    names = torch.storage._dtype_to_storage_type_map()
    assert names[torch.int16] == "ShortStorage"
    quantized = torch.QInt8Storage(3)
    quantized[:] = 4
    assert quantized.tolist() == [4, 4, 4]


def test_storage_class_follows_the_default_dtype():
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.Storage is torch.DoubleStorage
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.Storage is torch.FloatStorage


def test_storage_object_takes_attributes_and_its_base_is_abstract():
    storage = torch.UntypedStorage(2)
    storage.note = "mine"
    assert storage.note == "mine"
    with pytest.raises(RuntimeError, match="Cannot directly construct StorageBase"):
        torch._C.StorageBase()


def test_address_of_no_element_is_zero():
    assert torch.empty(2, 2)[0:0].view(0, 1).data_ptr() == 0


def test_order_of_dimensions_is_ambiguous_where_one_has_a_single_element():
    formats = [torch.contiguous_format, torch.channels_last]
    turned = torch.empty(2, 2, 1, 2).to(memory_format=torch.channels_last)
    assert turned.dim_order(ambiguity_check=formats) == (0, 2, 3, 1)
    with pytest.raises(RuntimeError, match="does not have unique dim order"):
        turned.dim_order(ambiguity_check=True)
    with pytest.raises(RuntimeError, match="cannot map to exact one of the given memory formats"):
        torch.empty(2, 1, 2, 2).dim_order(ambiguity_check=formats)
    assert torch.empty(2, 3, 5).dim_order(ambiguity_check=True) == (0, 1, 2)


def test_complex_number_of_several_elements_is_a_value_error():
    with pytest.raises(ValueError, match="only one element tensors can be converted"):
        complex(torch.ones(2))
