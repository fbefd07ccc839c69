"""What a caller's own code may do while the bindings read an argument or run a hook, and threads
that wait for each other. What could crash or hang runs in a process of its own."""

import ctypes
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import torch


class Shrinks:
    """An index that empties the list it stands in."""

    def __init__(self):
        self.owner = [self, *range(10**30, 10**30 + 40)]

    def __index__(self):
        self.owner.clear()
        return 2


def test_list_of_sizes_emptied_by_its_first_item_is_refused():
    with pytest.raises(RuntimeError, match="changed its length"):
        torch.zeros(Shrinks().owner)


def test_list_of_numbers_emptied_by_its_first_item_is_refused():
    class Emptied(int):
        def __float__(self):
            sigmas.clear()
            return 1.0

    sigmas = [Emptied(1), *(float(i) for i in range(40))]
    image = torch.zeros(1, 1, 4, 4)
    with pytest.raises(RuntimeError, match="changed its length"):
        torch._C._nn.upsample_nearest2d(image, None, sigmas)


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


def test_list_given_to_an_operator_object_is_read_as_it_was():
    code = """
        class Shrinks:
            def __index__(self):
                sizes.clear()
                return 2
        sizes = [Shrinks()] + [3] * 4
        print(tuple(torch.ops.aten.zeros.default(sizes).shape))
    """
    assert answer(code) == "(2, 3, 3, 3, 3)"


@pytest.mark.parametrize("size", [0, 1 << 22])
def test_part_of_a_storage_keeps_its_memory_when_the_whole_is_resized(size):
    whole = torch.UntypedStorage(1 << 20)
    whole.fill_(7)
    part = whole[1000:2000]
    whole.resize_(size)
    others = [torch.zeros(1 << 18) for _ in range(4)]
    assert len(part) == 1000 and set(part.tolist()) == {7}
    del others


def test_long_chain_of_tensors_through_slots_is_freed():
    code = """
        class Link(torch.Tensor):
            __slots__ = ("before",)
        last = None
        for _ in range(300_000):
            link = torch.ones(1).as_subclass(Link)
            link.before = last
            last = link
        del link, last
        print("freed")
    """
    assert answer(code) == "freed"


def test_unpack_hook_that_frees_the_graph_leaves_an_error():
    code = """
        import torch.autograd.graph
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x, 2 * x, 3 * x)
                return 2 * x
            @staticmethod
            def backward(ctx, grad):
                one, two, three = ctx.saved_tensors
                return grad * two
        x = torch.ones(100, requires_grad=True)
        inside = []
        def unpack(value):
            if not inside:
                inside.append(True)
                with torch.enable_grad():
                    torch.autograd.grad(y.sum(), x)
            return value.clone()
        for make in (Twice.apply, lambda x: x.exp() * x):
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), unpack):
                y = make(x)
            inside.clear()
            try:
                torch.autograd.grad(y.sum(), x)
            except RuntimeError as error:
                print(str(error)[:30])
    """
    assert answer(code).splitlines() == ["Trying to backward through the"] * 2


def test_reading_the_generator_while_another_thread_fills_does_not_hang():
    code = """
        import threading
        def fill():
            for _ in range(20):
                torch.rand(2_000_000)
        def read():
            for _ in range(3000):
                torch.set_rng_state(torch.get_rng_state())
        threads = [threading.Thread(target=work) for work in (fill, read, fill, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("done")
    """
    assert answer(code) == "done"


def test_watch_that_cannot_be_started_leaves_signals_as_they_were():
    # No room for another thread's stack.
    code = """
        import os, resource, signal
        with open("/proc/self/statm") as file:
            pages = int(file.read().split()[0])
        room = pages * resource.getpagesize() + (1 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        try:
            torch._C._die_with(os.getpid(), int(signal.SIGTERM))
        except RuntimeError:
            print(signal.pthread_sigmask(signal.SIG_BLOCK, []))
    """
    assert answer(code) == "set()"


@pytest.mark.parametrize("name", ["real", "imag"])
def test_deleting_a_part_of_a_complex_tensor_names_the_attribute(name):
    with pytest.raises(TypeError, match=f"the attribute {name} of a tensor cannot be deleted"):
        delattr(torch.ones(2, dtype=torch.complex64), name)


def test_tensor_with_the_negative_bit_is_not_exported():
    negated = torch.tensor([1 + 2j]).conj().imag
    with pytest.raises(BufferError, match="negative bit"):
        np.from_dlpack(negated)
    assert np.from_dlpack(negated.resolve_neg()).tolist() == [-2.0]


class Managed(ctypes.Structure):
    """DLManagedTensor of the DLPack standard, flattened."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


def capsule_of(managed):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    return new(ctypes.addressof(managed), b"dltensor", None)


@pytest.mark.parametrize("device", [256, -1, 1 << 20])
def test_capsule_of_a_device_out_of_range_is_refused(device):
    shape = (ctypes.c_int64 * 1)(2)
    memory = (ctypes.c_float * 2)()
    managed = Managed(ctypes.addressof(memory), 2, device, 1, 2, 32, 1, shape, None, 0, None, None)
    with pytest.raises(RuntimeError, match=f"no device number {device}"):
        torch._C._from_dlpack(capsule_of(managed))
