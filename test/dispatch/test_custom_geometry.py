"""Subclasses that answer questions about their shape, device and layout in __torch_dispatch__."""

import subprocess
import sys

import pytest

import torch


def subclass(answers, wrapper=True, **policy):
    """An object of a class with these results, by operator; others are not implemented."""

    class Answering(torch.Tensor):
        asked = []

        @staticmethod
        def __new__(cls, data):
            if wrapper:
                return torch.Tensor._make_wrapper_subclass(
                    cls, data.size(), dtype=data.dtype, device=data.device, **policy
                )
            return torch.Tensor._make_subclass(cls, data, False, **policy)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.asked.append((func, args[1:]))
            name = str(func.overloadpacket)
            return answers.get(name, NotImplemented)

    return Answering(torch.ones(4, 2))


@pytest.mark.parametrize("wrapper", [True, False])
def test_sizes_are_what_the_class_says(wrapper):
    x = subclass({"aten.sym_size": (5, 3), "aten.dim": 2, "aten.sym_numel": 15}, wrapper,
                 dispatch_sizes_strides_policy="sizes")  # fmt: skip
    assert x.size() == (5, 3) and x.shape == torch.Size((5, 3)) and x.size(1) == 3
    assert (x.dim(), x.ndim, x.numel()) == (2, 2, 15)


@pytest.mark.parametrize("wrapper", [True, False])
def test_none_leaves_the_stored_answer(wrapper):
    x = subclass({"aten.sym_size": None, "aten.sym_stride": None}, wrapper,
                 dispatch_sizes_strides_policy="sizes")  # fmt: skip
    assert x.shape == (4, 2) and x.stride() == (2, 1)


def test_not_implemented_raises_and_names_the_operator():
    x = subclass({}, dispatch_sizes_strides_policy="sizes")
    for call, name in (
        (x.size, "sym_size"),
        (x.dim, "dim"),
        (x.stride, "sym_stride"),
        (x.is_contiguous, "is_contiguous"),
        (x.contiguous, "is_contiguous"),
    ):
        with pytest.raises(
            TypeError, match=f"Multiple dispatch failed for 'torch.ops.aten.{name}'"
        ):
            call()


def test_strides_policy_asks_for_strides_and_contiguity_only():
    x = subclass({"aten.sym_stride": (1, 9), "aten.is_contiguous": False},
                 dispatch_sizes_strides_policy="strides")  # fmt: skip
    assert x.stride() == (1, 9) and x.stride(1) == 9 and x.size() == (4, 2)
    assert x.is_contiguous() is False
    assert x.is_contiguous(memory_format=torch.channels_last) is False
    assert type(x).asked[-1] == (torch.ops.aten.is_contiguous.memory_format, (torch.channels_last,))


def test_contiguous_tensor_by_its_class_is_returned_itself():
    x = subclass({"aten.is_contiguous": True}, dispatch_sizes_strides_policy="strides")
    assert x.contiguous() is x


def test_device_and_layout_are_what_the_class_says():
    x = subclass({"prim.device": torch.device("meta")}, dispatch_device=True)
    assert x.device.type == "meta"
    y = subclass({"prim.layout": torch.sparse_csr}, dispatch_layout=True)
    assert y.layout is torch.sparse_csr and y.device.type == "cpu"


def test_questions_on_plain_tensors_have_their_answers():
    import torch._custom_geometry

    x = torch.ones(3, 2)
    assert list(torch.ops.aten.sym_size.default(x)) == [3, 2]
    assert torch.ops.prim.device.default(x) == torch.device("cpu")


def test_wrong_policy_or_class_raises():
    with pytest.raises(RuntimeError, match="Unknown sizes_strides_policy"):
        subclass({}, dispatch_sizes_strides_policy="shapes")

    class Silent(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_subclass(Silent, torch.ones(1), dispatch_device=True)


def test_lazy_bits_can_be_set():
    z = torch.ones(2, dtype=torch.complex64) * 1j
    torch._C._set_conj(z, True)
    assert z.is_conj() and z.tolist() == [-1j, -1j]
    with pytest.raises(RuntimeError, match="only a complex tensor"):
        torch._C._set_conj(torch.ones(2), True)
    x = torch.ones(2)
    torch._C._set_neg(x, True)
    assert x.tolist() == [-1.0, -1.0]


def test_wrapper_has_a_storage_to_compare_but_no_memory():
    x = subclass({})
    storage = x.untyped_storage()
    assert storage.nbytes() == 4 * 2 * 4 and x.data_ptr() == 0
    for access in (storage.data_ptr, storage.tolist, lambda: bytes(storage), storage.clone):
        with pytest.raises((RuntimeError, TypeError)):
            access()


def test_questions_are_operators_whichever_module_is_loaded_first():
    ask = "print(torch.ops.aten.sym_size.default(torch.ones(2, 3)))"
    for lines in (("import torch._custom_geometry", ask), (ask, "import torch._custom_geometry")):
        size = "print(torch.ops.aten.size.default(torch.ones(4)))"
        code = "\n".join(("import torch", *lines, size))
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.stdout == "[2, 3]\n[4]\n", done.stderr
