"""Backward passes over several CUDA devices: one thread per device, the CPU's nodes on the calling
thread, sums whose bits do not depend on how the threads ran, errors and Ctrl-C, what is in force on
the calling thread, and passes inside of passes. A pass with one device stays on its thread."""

import threading

import pytest
from cuda_support import EMULATED, emulator_environment, run_python

import torch

if torch.cuda.device_count() < 2:
    pytest.skip("needs two devices", allow_module_level=True)

FIRST, SECOND = "cuda:0", "cuda:1"


class Recorder(torch.autograd.Function):
    """Passes its input on and notes which thread runs its backward pass."""

    @staticmethod
    def forward(ctx, x, seen, name):
        ctx.seen, ctx.name = seen, name
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        ctx.seen[ctx.name] = threading.get_ident()
        return grad.clone(), None, None


def branches(seen):
    """A sum of three branches, on the CPU and on two devices."""
    x = torch.arange(1.0, 4.0, requires_grad=True)
    parts = [
        Recorder.apply(x * 2, seen, "cpu"),
        Recorder.apply(x.to(FIRST) * 3, seen, "first").cpu(),
        Recorder.apply(x.to(SECOND) * 5, seen, "second").cpu(),
    ]
    return x, sum(parts).sum()


def test_each_device_has_a_thread_and_the_cpu_the_calling_one():
    seen = {}
    x, total = branches(seen)
    total.backward()
    assert x.grad.tolist() == [10, 10, 10] and x.grad.device.type == "cpu"
    assert seen["cpu"] == threading.get_ident()
    others = {seen["first"], seen["second"]}
    assert threading.get_ident() in others or len(others) == 2
    assert len(set(seen.values())) >= 2


def test_one_device_stays_on_the_calling_thread():
    seen = {}
    x = torch.ones(3, device=FIRST, requires_grad=True)
    y = Recorder.apply(x * 2, seen, "device").cpu()
    Recorder.apply(y, seen, "cpu").sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert set(seen.values()) == {threading.get_ident()}


def test_threads_can_be_switched_off():
    seen = {}
    x, total = branches(seen)
    with torch.autograd.set_multithreading_enabled(False):
        total.backward()
    assert x.grad.tolist() == [10, 10, 10]
    assert set(seen.values()) == {threading.get_ident()}


def many_branches():
    torch.manual_seed(0)
    leaf = torch.randn(257, dtype=torch.float64, requires_grad=True)
    total = 0
    for i in range(12):
        device = (FIRST, SECOND, "cpu")[i % 3]
        part = (leaf.to(device) * (0.1 + 0.37 * i)).sin() * leaf.to(device)
        total = total + part.to(FIRST)
    return leaf, (total * total).sum()


def test_sums_have_the_same_bits_every_time():
    first = None
    for _ in range(4):
        leaf, total = many_branches()
        total.backward()
        first = leaf.grad if first is None else first
        assert torch.equal(first, leaf.grad)
    leaf, total = many_branches()
    with torch.autograd.set_multithreading_enabled(False):
        total.backward()
    torch.testing.assert_close(first, leaf.grad)


def test_gradients_wanted_at_inputs_and_kept_graph():
    leaf, total = many_branches()
    (grad,) = torch.autograd.grad(total, leaf, create_graph=True)
    (second,) = torch.autograd.grad(grad.sum(), leaf)
    other, same = many_branches()
    with torch.autograd.set_multithreading_enabled(False):
        (expected,) = torch.autograd.grad(same, other, create_graph=True)
        (expected_second,) = torch.autograd.grad(expected.sum(), other)
    torch.testing.assert_close(grad, expected)
    torch.testing.assert_close(second, expected_second)


def test_each_leaf_gets_its_gradient_on_its_device():
    a = torch.ones(3, device=FIRST, requires_grad=True)
    b = torch.ones(3, device=SECOND, requires_grad=True)
    c = torch.ones(3, requires_grad=True)
    (a.cpu() * 2 + b.cpu() * 3 + c).sum().backward()
    for leaf, value in ((a, 2), (b, 3), (c, 1)):
        assert leaf.grad.device == leaf.device and leaf.grad.tolist() == [value] * 3
    assert torch.cuda.current_device() == 0


class Faulty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise KeyError("from a device's thread")


@pytest.mark.parametrize("device", [FIRST, SECOND, "cpu"])
def test_an_error_reaches_the_caller(device):
    x = torch.ones(3, requires_grad=True)
    good = (x.to(FIRST) * 2).cpu() + (x.to(SECOND) * 2).cpu()
    bad = Faulty.apply(x.to(device)).cpu()
    with pytest.raises(KeyError, match="from a device's thread"):
        (good + bad).sum().backward()
    x.grad = None
    (x.to(FIRST).cpu() + x.to(SECOND).cpu()).sum().backward()  # the next pass is as good as new
    assert x.grad.tolist() == [2, 2, 2]


def test_errors_of_both_threads():
    x = torch.ones(3, requires_grad=True)
    total = Faulty.apply(x.to(FIRST)).cpu() + Faulty.apply(x.to(SECOND)).cpu()
    with pytest.raises(KeyError, match="from a device's thread"):
        total.sum().backward()


def test_an_error_of_the_library_reaches_the_caller():
    x = torch.ones(3, requires_grad=True)
    y = x.to(SECOND).exp()
    total = (x.to(FIRST) * 2).cpu() + y.cpu()
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.sum().backward()


class Inner(torch.autograd.Function):
    """Runs a pass over both devices inside its own backward pass."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        with torch.enable_grad():
            z = torch.ones(3, requires_grad=True)
            inner = (z.to(FIRST) * 2).cpu() + (z.to(SECOND) * 3).cpu()
            inner.sum().backward()
        return grad * z.grad.to(grad.device)


@pytest.mark.parametrize("device", [FIRST, SECOND])
def test_a_pass_inside_of_a_device_thread(device):
    x = torch.ones(3, requires_grad=True)
    y = Inner.apply(x.to(device)).cpu() + (x.to(FIRST) * 1).cpu() + (x.to(SECOND) * 1).cpu()
    y.sum().backward()
    assert x.grad.tolist() == [7, 7, 7]


def test_grad_mode_is_carried():
    modes = {}

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            modes[ctx.name] = torch.is_grad_enabled()
            return grad.clone(), None

    for create in (False, True):
        x = torch.ones(3, requires_grad=True)
        parts = [Look.apply(x.to(d), d).cpu() for d in (FIRST, SECOND)]
        torch.autograd.grad(sum(parts).sum(), x, create_graph=create)
        assert set(modes.values()) == {create}


def test_autocast_of_the_caller_holds_in_the_pass():
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(torch.is_autocast_enabled("cuda"))
            return grad.clone()

    x = torch.ones(3, requires_grad=True)
    total = (Look.apply(x.to(FIRST)).cpu() + Look.apply(x.to(SECOND)).cpu()).sum()
    with torch.autocast("cuda"):
        total.backward()
    assert seen == [True, True]


def test_dispatch_modes_of_the_caller_see_the_pass():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Count(TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.calls += 1
            return func(*args, **(kwargs or {}))

    x = torch.ones(3, requires_grad=True)
    total = ((x.to(FIRST) * 2).cpu() + (x.to(SECOND) * 2).cpu()).sum()
    with Count() as mode:
        total.backward()
    assert mode.calls >= 6


def test_anomaly_mode_names_the_node():
    x = torch.full((3,), -1.0, requires_grad=True)
    with pytest.warns(UserWarning), torch.autograd.detect_anomaly(check_nan=True):
        total = x.to(FIRST).cpu() + x.to(SECOND).sqrt().cpu()
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            total.sum().backward()


def test_hooks_and_callbacks_run():
    calls = []
    x = torch.ones(3, requires_grad=True)
    parts = []
    for device in (FIRST, SECOND):
        y = x.to(device) * 2

        def hook(grad, device=device):
            calls.append(device)
            torch.autograd.Variable._execution_engine.queue_callback(
                lambda: calls.append("end " + device)
            )
            return grad * 10

        y.register_hook(hook)
        parts.append(y.cpu())
    sum(parts).sum().backward()
    assert sorted(calls[:2]) == [FIRST, SECOND]
    assert sorted(calls[2:]) == ["end " + FIRST, "end " + SECOND]
    assert x.grad.tolist() == [40, 40, 40]


def test_streams_of_the_forward_pass_are_used():
    streams = {d: torch.cuda.Stream(device=d) for d in (FIRST, SECOND)}
    seen = {}

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, device):
            ctx.device = device
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen[ctx.device] = torch.cuda.current_stream(torch.device(ctx.device))
            return grad.clone(), None

    x = torch.ones(3, requires_grad=True)
    parts = []
    for device, stream in streams.items():
        with torch.cuda.stream(stream):
            parts.append(Look.apply(x.to(device), device).cpu())
    sum(parts).sum().backward()
    assert seen == streams
    assert x.grad.tolist() == [2, 2, 2]
    assert torch.cuda.current_stream() == torch.cuda.default_stream()


def test_passes_of_several_python_threads():
    results, failures = [None] * 4, []

    def run(i):
        try:
            x = torch.full((3,), float(i), requires_grad=True)
            ((x.to(FIRST) ** 2).cpu() + (x.to(SECOND) ** 2).cpu()).sum().backward()
            results[i] = x.grad.tolist()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and results == [[4.0 * i] * 3 for i in range(4)]


def test_ctrl_c_ends_a_pass():
    code = """
import _thread, threading, time, torch

class Slow(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        time.sleep(0.02)
        return grad.clone()

x = torch.ones(3, requires_grad=True)
y, z = x.to("cuda:0"), x.to("cuda:1")
for _ in range(500):
    y, z = Slow.apply(y), Slow.apply(z)
threading.Timer(0.5, _thread.interrupt_main).start()
start = time.monotonic()
try:
    (y.cpu() + z.cpu()).sum().backward()
    print("not interrupted")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - start < 5)
(x.to("cuda:0").cpu() + x.to("cuda:1").cpu()).sum().backward()
print(x.grad.tolist())
"""
    done = run_python(code, emulator_environment() if EMULATED else None)
    assert done.stdout.splitlines() == ["interrupted True", "[2.0, 2.0, 2.0]"], done.stderr


def test_a_child_process_starts_clean():
    code = """
import os, torch
x = torch.ones(3, requires_grad=True)
(x.to("cuda:0").cpu() + x.to("cuda:1").cpu()).sum().backward()
child = os.fork()
if child == 0:
    y = torch.ones(3, requires_grad=True)
    (y * 2).sum().backward()
    os._exit(0 if y.grad.tolist() == [2, 2, 2] else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = run_python(code, emulator_environment() if EMULATED else None)
    assert done.stdout.strip() == "0", done.stderr
