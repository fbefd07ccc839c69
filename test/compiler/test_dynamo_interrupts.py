"""Compiled functions among what else happens in a process: signals whose handlers raise, threads,
forks, recursion, coroutines, tracers, the collector, and the end of the process. Each behaves as
the plain function does."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator

import pytest
from torch._C._dynamo import eval_frame

import torch
import torch._dynamo
from torch._dynamo.testing import CompileCounter

X = torch.arange(4.0)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Alarm(Exception):
    """What the handler of a signal raises."""


def state() -> tuple:
    """Settings of the process and of this thread that a compilation changes for itself."""
    return (
        sys.getrecursionlimit(),
        torch.is_grad_enabled(),
        eval_frame.get_eval_frame_callback(),
        torch.compiler.is_compiling(),
        torch._C._len_torch_function_stack(),
        torch._C._len_torch_dispatch_stack(),
        len(torch._C._functorch._level_kinds()),
        torch._guards.TracingContext.try_get(),
    )


def run_script(text: str, timeout: int = 60) -> subprocess.CompletedProcess:
    """A program of its own."""
    code = "import torch, torch._dynamo\n" + textwrap.dedent(text)
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout
    )


def said(text: str) -> str:
    """What a program writes that ends well."""
    done = run_script(text)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# ---- signals


def test_interrupt_of_a_backend_leaves_nothing_and_the_next_call_compiles() -> None:
    counter = CompileCounter()
    asked = []

    def backend(gm: torch.fx.GraphModule, inputs: list) -> Callable:
        asked.append(len(inputs))
        if len(asked) == 1:
            raise KeyboardInterrupt
        return counter(gm, inputs)

    fn = torch.compile(lambda x: torch.sin(x) + 1, backend=backend)
    before = state()
    with pytest.raises(KeyboardInterrupt):
        fn(X)
    assert state() == before
    assert torch.equal(fn(X), torch.sin(X) + 1)
    assert counter.frame_count == 1


class Holder:
    def __init__(self) -> None:
        self.items = [1, 2]
        self.value = X * 1


def program(x: torch.Tensor, holder: Holder) -> torch.Tensor:
    for i in range(6):
        with torch.no_grad():
            x = x + i
        x = x * holder.items[0] + len([j * 2 for j in range(i)])
    torch._dynamo.graph_break()
    holder.items.append(7)
    holder.value = x
    return torch.sin(x) + sum(holder.items)


@pytest.fixture
def alarms() -> Iterator[None]:
    def handler(number: int, frame: types.FrameType | None) -> None:
        raise Alarm

    before = signal.signal(signal.SIGALRM, handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Interrupt:
    """A tracer that raises where a context is entered or left, as the handler of a signal may: the
    interpreter asks for signals where a function begins."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: types.FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_name in ("__enter__", "__exit__"):
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt


def interrupted(tracer: Interrupt) -> int:
    """Compiles and raises where the tracer says; how many places there were."""
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="eager")
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        compiled(X, Holder())
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return tracer.count


@pytest.mark.slow
def test_interrupt_while_contexts_of_a_compilation_are_left_leaves_nothing() -> None:
    wanted = program(X, Holder())
    before = state()
    for at in range(1, interrupted(Interrupt(0)) + 1):
        interrupted(Interrupt(at))
        assert state() == before, at
    assert torch.equal(torch.compile(program, backend="eager")(X, Holder()), wanted)


class InterruptAtLine(Interrupt):
    """A tracer that raises before a line of the compiler, whichever function it is in."""

    def __call__(self, frame: types.FrameType, event: str, arg: object) -> Callable | None:
        own = os.sep + "torch" + os.sep in frame.f_code.co_filename
        if event == "line" and own:
            self.count += 1
            if self.count == self.at:
                raise KeyboardInterrupt
        return self if own else None


@pytest.mark.slow
def test_interrupt_before_any_line_of_a_compilation_leaves_nothing() -> None:
    wanted = program(X, Holder())
    before = state()
    last = interrupted(InterruptAtLine(0))
    for i in range(100):
        at = 1 + last * i // 100
        interrupted(InterruptAtLine(at))
        assert state() == before, at
    assert torch.equal(torch.compile(program, backend="eager")(X, Holder()), wanted)


def test_signal_at_any_moment_of_a_compilation_leaves_nothing() -> None:
    # In a process of its own: what a handler breaks here must not reach other tests.
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def interrupt_at_many_moments() -> None:
    def handler(number: int, frame: types.FrameType | None) -> None:
        raise Alarm

    signal.signal(signal.SIGALRM, handler)
    wanted = program(X, Holder())
    torch.compile(program, backend="eager")(X, Holder())
    before, hits = state(), 0
    torch._dynamo.reset()
    start = time.perf_counter()
    torch.compile(program, backend="eager")(X, Holder())
    whole = time.perf_counter() - start
    # Some come too late where the machine is busy, and some are dropped inside of finalizers.
    for i in range(300):
        torch._dynamo.reset()
        compiled = torch.compile(program, backend="eager")
        signal.setitimer(signal.ITIMER_REAL, whole * (i % 60 + 1) / 60)
        try:
            try:
                compiled(X, Holder())
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)  # it may come right before this
        except Alarm:
            hits += 1
        assert state() == before, (state(), before)
        assert torch.equal(compiled(X, Holder()), wanted)
        if hits == 60:
            break
    assert hits > 0


def test_signal_in_the_middle_of_compiled_code_is_the_programs_exception(alarms: None) -> None:
    def slow(gm: torch.fx.GraphModule, inputs: list) -> Callable:
        def run(*args: object) -> object:
            time.sleep(0.2)
            return gm(*args)

        return run

    def append(x: torch.Tensor, items: list) -> torch.Tensor:
        items.append(x + 1)
        return x * 2

    compiled = torch.compile(append, backend=slow)
    items: list[torch.Tensor] = []
    compiled(X, items)
    before = state()
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(Alarm):
        compiled(X, items)
    # The graph was not through: nothing was changed.
    assert len(items) == 1
    assert state() == before
    assert torch.equal(compiled(X, items), X * 2)
    assert len(items) == 2


def test_ctrl_c_ends_a_loop_of_compilations() -> None:
    done = run_script(
        """
        import os, signal, threading
        ended = threading.Event()
        def press():  # again, since Python drops what is raised inside of a finalizer
            while not ended.wait(0.3):
                os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=press, daemon=True).start()
        try:
            while True:
                torch._dynamo.reset()
                torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))
        except KeyboardInterrupt:
            ended.set()
            print(torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1)).item())
        """
    )
    assert done.stdout.strip() == "2.0", done.stderr


# ---- threads


def in_threads(count: int, task: Callable[[int], object]) -> list:
    """What tasks return that run at once; their errors are raised."""
    results: list = [None] * count
    errors: list[BaseException] = []
    gate = threading.Barrier(count)

    def run(i: int) -> None:
        try:
            gate.wait()
            results[i] = task(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]
    return results


def test_function_called_first_by_many_threads_is_compiled_once() -> None:
    wanted, before = program(X, Holder()), state()
    counter = CompileCounter()
    compiled = torch.compile(program, backend=counter)
    for result in in_threads(6, lambda i: compiled(X, Holder())):
        assert torch.equal(result, wanted)
    assert counter.frame_count == 2  # before and after the break
    assert state() == before


def test_functions_compiled_by_threads_at_once_compute_as_plain() -> None:
    def make(i: int) -> Callable:
        def fn(x: torch.Tensor) -> torch.Tensor:
            with torch.set_grad_enabled(i % 2 == 0):
                y = x * i
                for j in range(i):
                    y = y + j
            torch._dynamo.graph_break()
            return y.sum() + torch.sin(x)

        return fn

    def task(i: int) -> list:
        fn = make(i)
        compiled = torch.compile(fn, backend="eager")
        x = X.clone().requires_grad_()
        with torch.set_grad_enabled(i % 3 > 0):
            plain, got = fn(x), compiled(x)
        return [torch.equal(plain, got), plain.requires_grad == got.requires_grad]

    before = state()
    assert in_threads(8, task) == [[True, True]] * 8
    assert state() == before


def test_reset_while_other_threads_call_is_safe() -> None:
    compiled = torch.compile(program, backend="eager")
    wanted = program(X, Holder())

    def task(i: int) -> bool:
        if i == 0:
            for _ in range(20):
                torch._dynamo.reset()
            return True
        return all(torch.equal(compiled(X, Holder()), wanted) for _ in range(15))

    assert all(in_threads(4, task))


def test_thread_local_values_are_those_of_the_calling_thread() -> None:
    local = threading.local()

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x + local.value

    compiled = torch.compile(fn, backend="eager")

    def task(i: int) -> float:
        local.value = i
        return sum(compiled(torch.zeros(1)).item() for _ in range(3))

    assert in_threads(4, task) == [0.0, 3.0, 6.0, 9.0]


# ---- processes


def test_child_of_a_fork_runs_and_compiles() -> None:
    text = """
        import os, sys
        fn = torch.compile(lambda x: x.sin() * 2, backend="eager")
        first = fn(torch.ones(3))
        child = os.fork()
        if child == 0:
            same = torch.equal(fn(torch.ones(3)), first)
            other = torch.compile(lambda x: x + 5, backend="eager")(torch.zeros(1)).item()
            os._exit(0 if same and other == 5 else 3)
        assert os.waitpid(child, 0)[1] == 0
        print(torch.equal(fn(torch.ones(3)), first))
    """
    assert said(text) == "True"


def test_child_of_a_fork_while_another_thread_compiles() -> None:
    text = """
        import os, threading, time
        held = threading.Event()

        def backend(gm, inputs):
            held.set()
            time.sleep(1.0)
            return gm

        slow = torch.compile(lambda x: x * 3, backend=backend)
        thread = threading.Thread(target=slow, args=(torch.ones(2),))
        thread.start()
        held.wait()
        child = os.fork()
        if child == 0:
            got = torch.compile(lambda x: x + 5, backend="eager")(torch.zeros(1)).item()
            os._exit(0 if got == 5 else 3)
        for _ in range(300):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            time.sleep(0.1)
        else:
            os.kill(child, 9)
        thread.join()
        print(done != 0 and status == 0)
    """
    assert said(text) == "True"


def test_fork_in_the_middle_of_a_compilation() -> None:
    text = """
        import os

        def backend(gm, inputs):
            child = os.fork()
            if child == 0:
                return lambda *args: [torch.full((1,), 7.0)]
            assert os.waitpid(child, 0)[1] == 0
            return gm

        fn = torch.compile(lambda x: x + 1, backend=backend)
        parent = os.getpid()
        value = fn(torch.zeros(1)).item()
        other = torch.compile(lambda x: x * 2, backend="eager")(torch.ones(1)).item()
        if os.getpid() != parent:
            os._exit(0 if (value, other) == (7.0, 2.0) else 3)
        print(value, other)
    """
    assert said(text) == "1.0 2.0"


# ---- recursion


def test_function_that_calls_its_compiled_self() -> None:
    @torch.compile(backend="eager")
    def down(x: torch.Tensor, n: int) -> torch.Tensor:
        if n == 0:
            return x
        torch._dynamo.graph_break()
        return down(x + n, n - 1)

    assert down(torch.zeros(1), 5).item() == 15


@pytest.mark.parametrize("break_first", [False, True])
def test_recursion_without_end_is_a_recursion_error(break_first: bool) -> None:
    def endless(x: torch.Tensor) -> torch.Tensor:
        if break_first:
            torch._dynamo.graph_break()
        return endless(x + 1)

    before = state()
    with pytest.raises(RecursionError):
        torch.compile(endless, backend="eager")(X)
    assert state() == before
    assert torch.equal(torch.compile(lambda x: x + 1, backend="eager")(X), X + 1)


# ---- coroutines and generators


def test_coroutines_with_compiled_functions_inside() -> None:
    inner = torch.compile(lambda x, i: torch.sin(x) * i, backend="eager")

    @torch.compile(backend="eager")
    async def outer(i: int) -> torch.Tensor:
        await asyncio.sleep(0)
        first = inner(X, i)
        await asyncio.sleep(0)
        return first + inner(X, i + 1)

    async def main() -> list:
        return await asyncio.gather(*[outer(i) for i in range(4)])

    for i, got in enumerate(asyncio.run(main())):
        torch.testing.assert_close(got, torch.sin(X) * i + torch.sin(X) * (i + 1))


def test_task_cancelled_between_calls() -> None:
    inner = torch.compile(lambda x: x + 1, backend="eager")
    seen = []

    async def worker() -> None:
        x = X
        try:
            while True:
                x = inner(x)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            seen.append(inner(x))
            raise

    async def main() -> None:
        task = asyncio.create_task(worker())
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(seen) == 1


def test_compiled_generator_function_is_a_generator() -> None:
    @torch.compile(backend="eager")
    def numbers(x: torch.Tensor) -> Iterator[torch.Tensor]:
        try:
            while True:
                x = x + ((yield x) or 1)
        finally:
            seen.append("closed")

    seen: list[str] = []
    it = numbers(torch.zeros(1))
    assert [next(it).item(), it.send(5).item(), next(it).item()] == [0, 5, 6]
    it.close()
    assert seen == ["closed"]


def test_generator_passed_to_a_compiled_function_goes_on_where_it_was() -> None:
    def source() -> Iterator[torch.Tensor]:
        for i in range(6):
            yield X + i

    @torch.compile(backend="eager")
    def take(it: Iterator[torch.Tensor]) -> torch.Tensor:
        return next(it) * 2 + next(it)

    it = source()
    assert torch.equal(take(it), X * 2 + X + 1)
    assert torch.equal(take(it), (X + 2) * 2 + X + 3)
    assert torch.equal(next(it), X + 4)


# ---- tracers


def test_tracer_stays_installed_and_sees_balanced_frames() -> None:
    depth, lowest, names = 0, 0, set()

    def tracer(frame: types.FrameType, event: str, arg: object) -> Callable:
        nonlocal depth, lowest
        if event == "call":
            depth += 1
            names.add(frame.f_code.co_name)
        elif event == "return":
            depth -= 1
            lowest = min(lowest, depth)
        return tracer

    compiled = torch.compile(program, backend="eager")
    wanted = program(X, Holder())
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        first = compiled(X, Holder())
        second = compiled(X, Holder())
        after = sys.gettrace()
    finally:
        sys.settrace(before)
    assert after is tracer
    assert (depth, lowest) == (0, 0)
    assert torch.equal(first, wanted)
    assert torch.equal(second, wanted)


def test_profiler_stays_installed_and_sees_balanced_calls() -> None:
    depth = lowest = 0

    def profiler(frame: types.FrameType, event: str, arg: object) -> None:
        nonlocal depth, lowest
        if event == "call":
            depth += 1
        elif event == "return":
            depth -= 1
            lowest = min(lowest, depth)

    compiled = torch.compile(program, backend="eager")
    wanted = program(X, Holder())
    sys.setprofile(profiler)
    try:
        first = compiled(X, Holder())
        second = compiled(X, Holder())
        after = sys.getprofile()
    finally:
        sys.setprofile(None)
    assert after is profiler
    assert (depth, lowest) == (0, 0)
    assert torch.equal(first, wanted)
    assert torch.equal(second, wanted)


def test_tracer_that_raises_is_the_programs_exception() -> None:
    def tracer(frame: types.FrameType, event: str, arg: object) -> Callable:
        if frame.f_code.co_name == "helper":
            raise Alarm
        return tracer

    def helper(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def fn(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return helper(x) * 2

    compiled = torch.compile(fn, backend="eager")
    torch._dynamo.disable(helper)
    settings = state()
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(Alarm):
            fn(X)
    finally:
        sys.settrace(before)
    assert torch.equal(compiled(X), (X + 1) * 2)
    assert state() == settings


# ---- exceptions inside captured code


def test_error_of_a_graph_has_the_callers_context_and_leaves_the_function_usable() -> None:
    def fn(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return (x * 2)[i] + 1

    compiled = torch.compile(fn, backend="eager")
    good = torch.tensor([0, 1])
    bad = torch.tensor([0, 9])
    assert torch.equal(compiled(X, good), fn(X, good))
    for call in (fn, compiled):
        with pytest.raises(IndexError) as info:
            try:
                raise KeyError("outer")
            except KeyError:
                call(X, bad)
        assert isinstance(info.value.__context__, KeyError)
    assert torch.equal(compiled(X, good), fn(X, good))


def under_no_grad(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x[i] * 2


def under_a_mode(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    with torch.set_grad_enabled(False):
        y = x[i]
    return y + 1


def under_autocast(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x[i] * 2


def under_vmap(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.vmap(lambda row: x[i] * row)(x)


def under_grad(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda a: (x[i].sum() * a).sum())(x)


def after_a_switch(x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
    torch.set_grad_enabled(False)
    y = x[i]
    torch.set_grad_enabled(True)
    return y


@pytest.mark.parametrize(
    "fn",
    [under_no_grad, under_a_mode, under_autocast, under_vmap, under_grad, after_a_switch],
    ids=lambda fn: fn.__name__,
)
def test_error_of_a_graph_leaves_the_contexts_it_is_in(fn: Callable) -> None:
    def settings() -> tuple:
        levels = torch._C._functorch._level_kinds()
        hooks = torch._C._autograd._saved_tensors_hooks_is_enabled()
        torch.autocast_increment_nesting()
        casts = torch.is_autocast_enabled("cpu"), torch.autocast_decrement_nesting()
        return torch.is_grad_enabled(), casts, levels, hooks

    compiled = torch.compile(fn, backend="eager", fullgraph=True)
    found = []
    for call in (fn, compiled):
        call(X, torch.tensor([0, 1]))
        with pytest.raises(IndexError):
            call(X, torch.tensor([0, 9]))
        found.append(settings())
        torch.set_grad_enabled(True)
    assert found[0] == found[1]


def test_traceback_of_an_error_names_the_programs_function_after_a_break() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        raise ValueError("here")

    with pytest.raises(ValueError, match="here") as info:
        torch.compile(fails, backend="eager")(X)
    lines = {(e.path.name if hasattr(e.path, "name") else str(e.path)) for e in info.traceback}
    assert os.path.basename(__file__) in lines


# ---- references and the collector


def test_weak_references_die_as_in_the_plain_function() -> None:
    events: list[str] = []

    def fn(x: torch.Tensor, holder: Holder) -> torch.Tensor:
        ref = weakref.ref(holder)
        y = x + ref().items[0]
        return y

    compiled = torch.compile(fn, backend="eager")
    for call in (fn, compiled, compiled):
        holder = Holder()
        weakref.finalize(holder, events.append, "gone")
        assert torch.equal(call(X, holder), X + 1)
        del holder
    assert events == ["gone"] * 3


def test_collector_inside_of_compiled_code_and_finalizers_that_compute() -> None:
    made = []

    class Computes:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            made.append(torch.ones(2) + 1)

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        Computes()
        gc.collect()
        return y * 2

    compiled = torch.compile(fn, backend="eager")
    for _ in range(2):
        assert torch.equal(compiled(X), (X + 1) * 2)
    gc.collect()
    assert len(made) == 2
    assert all(type(v) is torch.Tensor and v.tolist() == [2, 2] for v in made)


def test_finalizers_that_run_while_a_function_is_traced_compute_plainly() -> None:
    made = []

    class Computes:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            made.append((torch.ones(2) + 1, torch.compiler.is_compiling()))

    threshold = gc.get_threshold()
    try:
        gc.set_threshold(20)
        for _ in range(10):
            torch._dynamo.reset()
            for _ in range(4):
                Computes()
            wanted = program(X, Holder())
            compiled = torch.compile(program, backend="eager")
            for _ in range(4):
                Computes()
            assert torch.equal(compiled(X, Holder()), wanted)
    finally:
        gc.set_threshold(*threshold)
    gc.collect()
    assert len(made) == 80
    assert all(type(v) is torch.Tensor and not torch._C._is_fake(v) for v, _ in made)
    assert all(v.tolist() == [2, 2] for v, _ in made)


# ---- the end of the process


@pytest.mark.parametrize("place", ["backend", "graph", "after a break"])
def test_exit_in_the_middle_ends_the_process_as_plainly(place: str) -> None:
    text = f"""
        import sys
        place = {place!r}

        def backend(gm, inputs):
            if place == "backend":
                sys.exit(7)

            def run(*args):
                if place == "graph":
                    sys.exit(7)
                return gm(*args)

            return run

        def fn(x):
            y = x + 1
            torch._dynamo.graph_break()
            if place == "after a break":
                sys.exit(7)
            return y * 2

        torch.compile(fn, backend=backend)(torch.ones(2))
    """
    done = run_script(text)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_process_that_ends_while_threads_compile() -> None:
    text = """
        import threading, time

        def work():
            while True:
                torch._dynamo.reset()
                torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        time.sleep(0.3)
        print("end")
    """
    done = run_script(text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "end"


def test_compiled_functions_called_while_the_process_ends() -> None:
    text = """
        import atexit
        fn = torch.compile(lambda x: x * 2 + 1, backend="eager")

        class Last:
            def __del__(self):
                try:
                    print("del", fn(torch.ones(1)).item())
                except BaseException as error:
                    print("del", type(error).__name__)

        kept = Last()
        atexit.register(lambda: print("atexit", fn(torch.ones(2)).sum().item()))
        fn(torch.ones(3))
        del kept
    """
    assert said(text).splitlines() == ["del 3.0", "atexit 6.0"]


if __name__ == "__main__":
    interrupt_at_many_moments()
