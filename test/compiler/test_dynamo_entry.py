"""The callable behind torch.compile: binding of arguments, choice among compiled forms, frames
below code that runs as it is, what it keeps alive. Small callbacks play the compiler."""

from __future__ import annotations

import gc
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable

import pytest
from torch._C._dynamo import eval_frame, guards

from torch._dynamo.opcodes import Instruction, encode

Frame = tuple[str, dict[str, object]]


class Recorder:
    """Compiles a function to one that returns its locals; a guard fixes the type of each."""

    def __init__(self, skip: tuple[str, ...] = ()) -> None:
        self.frames: list[Frame] = []
        self.skip = skip

    def __call__(
        self,
        code: types.CodeType,
        module: dict[str, object],
        closure: tuple[types.CellType, ...] | None,
        local: dict[str, object],
        cache: eval_frame.CodeCache,
    ) -> eval_frame.CompiledEntry | None:
        self.frames.append((code.co_name, dict(local)))
        if code.co_name in self.skip:
            return None
        names = tuple(local)
        body = [Instruction("LOAD_CONST", argval="compiled")]
        body += [Instruction("LOAD_FAST", argval=n) for n in names]
        body += [Instruction("BUILD_TUPLE", arg=len(names) + 1), Instruction("RETURN_VALUE")]
        made = encode(
            body, code, argcount=len(names), posonlyargcount=0, kwonlyargcount=0, varnames=names,
            cellvars=(), flags=3, name="compiled_" + code.co_name,
        )  # fmt: skip
        root = guards.RootGuardManager()
        for i, (name, value) in enumerate(local.items()):
            manager = root.frame_local_manager((name, i), f"L[{name!r}]")
            manager.add_type_match_guard(id(type(value)), [f"type(L[{name!r}])"])
        return eval_frame.CompiledEntry(made, root, None, module)


def compiled(fn: Callable[..., object], **kwargs: object) -> tuple[Callable[..., object], Recorder]:
    recorder = Recorder(**kwargs)
    return eval_frame.CompiledFunction(fn, recorder), recorder


def test_arguments_are_bound_as_python_binds_them() -> None:
    def f(a, /, b, c=3, *rest, d, e=5, **more):
        return None

    run, recorder = compiled(f)
    calls = [
        ((1, 2), {"d": 4}),
        ((1,), {"b": 2, "d": 4}),
        ((1, 2, 7, 8, 9), {"d": 4, "e": 6, "z": 1}),
        ((1, 2), {"d": 4, "a": "keyword named like a positional"}),
    ]
    for args, kwargs in calls:
        bound = inspect.signature(f).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        expected = ("compiled", given["a"], given["b"], given["c"], given["d"], given["e"],
                    given["rest"], given["more"])  # fmt: skip
        assert run(*args, **kwargs) == expected
    assert len(recorder.frames) == 1


@pytest.mark.parametrize(
    ("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"a": 1}), ((1,), {"z": 1})]
)
def test_calls_that_cannot_be_bound_raise_what_python_raises(
    args: tuple[int, ...], kwargs: dict[str, int]
) -> None:
    def f(a, b=2):
        return a

    run, recorder = compiled(f)
    with pytest.raises(TypeError) as expected:
        f(*args, **kwargs)
    with pytest.raises(TypeError) as got:
        run(*args, **kwargs)
    assert str(got.value) == str(expected.value) and not recorder.frames


def test_form_whose_guards_hold_is_used_and_comes_first() -> None:
    def f(x):
        return x

    run, recorder = compiled(f)
    assert [run(v) for v in (1, 2, "a", 3, "b")] == [("compiled", v) for v in (1, 2, "a", 3, "b")]
    assert [frame[1]["x"] for frame in recorder.frames] == [1, "a"]
    entries = eval_frame._debug_get_cache_entry_list(f)
    assert len(entries) == 2 and entries[0].guards.check({"x": "s"})
    run(1)
    assert eval_frame._debug_get_cache_entry_list(f)[0].guards.check({"x": 5})


def test_forms_of_other_backends_are_not_used() -> None:
    def f(x):
        return x

    first, second = Recorder(), Recorder()
    eval_frame.CompiledFunction(f, first, "a")(1)
    eval_frame.CompiledFunction(f, second, "b")(1)
    assert len(first.frames) == len(second.frames) == 1


def test_frames_below_skipped_code_are_compiled() -> None:
    def inner(y):
        return y + 1

    def f(x):
        return inner(x), inner(x)

    run, recorder = compiled(f, skip=("f",))
    assert run(1) == (("compiled", 1), ("compiled", 1))
    assert [name for name, _ in recorder.frames] == ["f", "inner"]
    assert run(2) == (("compiled", 2), ("compiled", 2)) and len(recorder.frames) == 2
    assert inner(1) == 2, "outside nothing is compiled"


def test_frames_below_disabled_code_are_left_alone() -> None:
    def leaf(y):
        return y + 1

    hidden = eval_frame.DisabledFunction(lambda y: leaf(y))

    def f(x):
        return hidden(x), leaf(x)

    run, recorder = compiled(f, skip=("f",))
    assert run(1) == (2, ("compiled", 1))
    assert [name for name, _ in recorder.frames] == ["f", "leaf"]


def test_generators_and_their_frames_run_as_they_are() -> None:
    def numbers(n):
        yield from range(n)

    def f(n):
        return list(numbers(n))

    run, recorder = compiled(f, skip=("f",))
    assert run(3) == [0, 1, 2] and [name for name, _ in recorder.frames] == ["f"]
    stream, recorder = compiled(numbers)
    assert list(stream(3)) == [0, 1, 2] and not recorder.frames


def test_closures_are_those_of_the_called_function() -> None:
    def make(value):
        def f(x):
            return x, value

        return f

    def callback(code, module, closure, local, cache):
        return eval_frame.CompiledEntry(code.replace(co_name="copy"), None, None, module)

    one = eval_frame.CompiledFunction(make(1), callback)
    two = eval_frame.CompiledFunction(make(2), callback)
    assert [one(0), two(0), one(0)] == [(0, 1), (0, 2), (0, 1)]
    assert len(eval_frame._debug_get_cache_entry_list(one.__wrapped__)) == 1


def test_guards_see_cells_after_the_parameters() -> None:
    limit = 3

    def f(x):
        return x < limit

    seen = []

    def callback(code, module, closure, local, cache):
        seen.append(closure[0].cell_contents)
        root = guards.RootGuardManager()
        cell = root.frame_local_manager(("limit", 1), "L['limit']").cell_contents_manager()
        cell.add_equals_match_guard(limit, ["limit"])
        return eval_frame.CompiledEntry(code.replace(co_name="copy"), root, None, module)

    run = eval_frame.CompiledFunction(f, callback)
    assert run(1) and run(2) and seen == [3]
    limit = 1
    assert not run(2) and seen == [3, 1]


def test_conditions_on_the_whole_frame_see_the_guarded_locals() -> None:
    def f(x, y):
        return x

    def callback(code, module, closure, local, cache):
        root = guards.RootGuardManager()
        for i, name in enumerate(local):
            root.frame_local_manager((name, i)).add_type_match_guard(id(int), ["int"])
        root.add_epilogue_lambda_guard(lambda L: L["x"] < L["y"], ["x < y"])
        asked.append(local)
        return eval_frame.CompiledEntry(code.replace(co_name="copy"), root, None, module)

    asked: list[dict[str, int]] = []
    run = eval_frame.CompiledFunction(f, callback)
    run(1, 2), run(3, 4), run(2, 1)
    assert asked == [{"x": 1, "y": 2}, {"x": 2, "y": 1}]


def test_wrapper_looks_like_the_function() -> None:
    def f(x: int, y: int = 2) -> int:
        """Adds."""
        return x + y

    f.tag = "t"
    run, _ = compiled(f)
    assert (run.__name__, run.__doc__, run.__module__, run.tag) == ("f", "Adds.", __name__, "t")
    assert run.__wrapped__ is f and inspect.signature(run) == inspect.signature(f)
    run.own = 1
    assert not hasattr(f, "own") and run.own == 1
    assert weakref.ref(run)() is run


def test_wrapper_in_a_class_is_a_method() -> None:
    class A:
        def f(self, x):
            return x

    A.f, recorder = compiled(A.__dict__["f"])
    a = A()
    assert a.f(3) == ("compiled", a, 3) and A.f(a, 4) == ("compiled", a, 4)
    assert len(recorder.frames) == 1


def test_exception_in_the_callback_reaches_the_caller() -> None:
    def f(x):
        return x

    def callback(*args):
        raise KeyError("callback")

    run = eval_frame.CompiledFunction(f, callback)
    for _ in range(2):
        with pytest.raises(KeyError, match="callback"):
            run(1)


def test_false_from_the_callback_runs_once_and_asks_again() -> None:
    def f(x):
        return x

    asked = []
    run = eval_frame.CompiledFunction(f, lambda *args: bool(asked.append(1)))
    assert run(1) == 1 and run(1) == 1 and len(asked) == 2


def test_skip_run_only_and_reset_of_a_code_object() -> None:
    def f(x):
        return x

    run, recorder = compiled(f)
    eval_frame.skip_code(f.__code__)
    assert run(1) == 1 and not recorder.frames
    eval_frame.reset_code(f.__code__)
    assert run(1) == ("compiled", 1)
    eval_frame.code_cache(f).run_only = True
    assert run("a") == "a" and run(2) == ("compiled", 2)
    eval_frame.reset_all()
    assert run("a") == ("compiled", "a") and len(recorder.frames) == 2


def test_force_eager_runs_everything_as_it_is() -> None:
    def f(x):
        return x

    run, recorder = compiled(f)
    before = eval_frame.set_force_eager(True)
    try:
        assert run(1) == 1 and not recorder.frames
    finally:
        eval_frame.set_force_eager(before)
    assert run(1) == ("compiled", 1)


def test_recursion_through_the_wrapper_ends_as_pythons_does() -> None:
    def f(n):
        return run(n + 1)

    run, _ = compiled(f, skip=("f",))
    with pytest.raises(RecursionError):
        run(0)


def test_set_eval_frame_compiles_what_is_called_until_taken_back() -> None:
    def f(x):
        return x

    recorder = Recorder()
    assert eval_frame.set_eval_frame(recorder) is None
    try:
        got = f(1)
    finally:
        previous = eval_frame.set_eval_frame(None)
    assert previous is recorder and got == ("compiled", 1) and f(1) == 1
    with pytest.raises(TypeError):
        eval_frame.set_eval_frame(3)


def test_hook_of_one_thread_leaves_others_alone() -> None:
    def leaf(x):
        return x

    results: list[object] = []
    ready, go = threading.Event(), threading.Event()

    def other() -> None:
        ready.set()
        go.wait(10)
        results.extend(leaf(i) for i in range(3))

    def f(x):
        go.set()
        thread.join()
        return leaf(x)

    thread = threading.Thread(target=other)
    thread.start()
    ready.wait(10)
    run, _ = compiled(f, skip=("f", "set", "join", "wait", "is_set", "_wait_for_tstate_lock"))
    run(7)
    assert results == [0, 1, 2]


def test_nothing_is_kept_alive_after_reset_or_death() -> None:
    class Big:
        pass

    def make() -> tuple[weakref.ref, weakref.ref]:
        held = Big()

        def f(x):
            return held

        run, recorder = compiled(f)
        run(Big())
        recorder.frames.clear()
        return weakref.ref(f), weakref.ref(held)

    function, held = make()
    gc.collect()
    assert function() is None
    eval_frame.reset_all()
    gc.collect()
    assert held() is None


def test_calls_leave_reference_counts_as_they_were() -> None:
    def f(a, *rest, k=1, **more):
        return None

    run, _ = compiled(f)
    value = object()
    run(value, value, k=value, z=value)
    run(value)
    before = sys.getrefcount(value)
    for _ in range(100):
        run(value, value, k=value, z=value)
        run(value)
    assert sys.getrefcount(value) == before


def test_wrong_arguments_raise_type_errors() -> None:
    for call in (
        lambda: eval_frame.CompiledFunction(len, print),
        lambda: eval_frame.CompiledFunction(compiled, 3),
        lambda: eval_frame.CompiledEntry(3),
        lambda: eval_frame.CompiledEntry(compiled.__code__, 3),
        lambda: eval_frame.DisabledFunction(3),
        lambda: eval_frame.skip_code(3),
        lambda: eval_frame.CodeCache(),
    ):
        with pytest.raises(TypeError):
            call()
