"""Around the tracer: settings, backends, marks, stances, limits, what is logged."""

from __future__ import annotations

import json
import logging
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import torch
import torch._dynamo
import torch._logging
from torch._dynamo import config, exc, utils
from torch._dynamo.backends import registry
from torch._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs
from torch._logging import _internal


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def add(x: torch.Tensor, y: object) -> torch.Tensor:
    return x + y


# ---- settings


def test_settings_are_read_set_patched_and_put_back() -> None:
    assert config.recompile_limit == config.cache_size_limit == 8
    with config.patch(cache_size_limit=3):
        assert config.recompile_limit == 3
        with config.patch("recompile_limit", 5), config.patch({"verbose": True}):
            assert (config.cache_size_limit, config.verbose) == (5, True)
    assert (config.recompile_limit, config.verbose) == (8, False)

    @config.patch(verbose=True)
    def patched() -> bool:
        return config.verbose

    assert patched() and not config.verbose
    with pytest.raises(AttributeError, match="does not exist"):
        config.no_such_setting = 1
    with pytest.raises(AssertionError, match="does not exist"):
        config.patch(no_such_setting=1)


def test_settings_are_saved_loaded_and_hashed() -> None:
    before = config.get_hash()
    saved = config.save_config()
    with config.patch(recompile_limit=4):
        assert config.get_hash() != before
        assert "torch._dynamo.config.recompile_limit = 4" in config.codegen_config()
        config.load_config(saved)
        assert config.recompile_limit == 8
    assert config.get_hash() == before and "repro_after" not in pickle.loads(saved)
    with config.patch(verbose=True):
        assert config.get_hash() == before, "what is said does not change what is compiled"


def test_mutable_defaults_are_not_shared_with_what_users_change() -> None:
    config.ignore_logger_methods.add("x")
    try:
        assert "x" in config.ignore_logger_methods and not config.is_default(
            "ignore_logger_methods"
        )
    finally:
        del config.ignore_logger_methods
    assert config.ignore_logger_methods == set()


# ---- backends


@pytest.mark.parametrize("name", ["eager", "aot_eager", "aot_eager_decomp_partition"])
def test_backends_compute_values_and_gradients(name: str) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return (x.sin() * x).sum()

    x = torch.arange(4.0, requires_grad=True)
    compiled = torch.compile(f, backend=name)
    out = compiled(x)
    out.backward()
    assert torch.allclose(out, f(x))
    assert torch.allclose(x.grad, (x.cos() * x + x.sin()).detach())


def test_backends_are_found_by_name_and_listed_without_debug_ones() -> None:
    def mine(gm: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Callable:
        return gm.forward

    registry.register_backend(mine, name="mine_for_test")
    try:
        assert "mine_for_test" in torch._dynamo.list_backends()
        assert "eager" not in torch.compiler.list_backends()
        assert "eager" in torch._dynamo.list_backends(None)
        assert torch._dynamo.lookup_backend("mine_for_test") is mine
        assert torch._dynamo.lookup_backend(len) is len
        with pytest.raises(AssertionError, match="duplicate"):
            registry.register_backend(mine, name="mine_for_test")
        assert torch.equal(
            torch.compile(add, backend="mine_for_test")(torch.ones(2), 1), torch.full((2,), 2.0)
        )
    finally:
        del registry._COMPILER_FNS["mine_for_test"], registry._BACKENDS["mine_for_test"]
    with pytest.raises(exc.InvalidBackend, match="none of that name"):
        torch.compile(add, backend="none of that name")
    with pytest.raises(NotImplementedError, match="cudagraphs"):
        torch._dynamo.lookup_backend("cudagraphs")
    assert "inductor" in torch._dynamo.list_backends()


def test_options_reach_a_backend_and_share_what_was_compiled() -> None:
    seen = []

    def backend(gm: torch.fx.GraphModule, inputs: list[object], options: object = None) -> Callable:
        seen.append(options)
        return gm.forward

    for _ in range(2):
        torch.compile(add, backend=backend, options={"a": 1})(torch.ones(1), 1)
    assert seen == [{"a": 1}]


def test_verify_correctness_catches_a_wrong_backend() -> None:
    def wrong(gm: torch.fx.GraphModule, inputs: list[object]) -> Callable:
        return lambda *args: tuple(out + 1 for out in gm.forward(*args))

    with config.patch(verify_correctness=True):
        with pytest.raises(RuntimeError, match="incorrect results of backend"):
            torch.compile(add, backend=wrong)(torch.ones(2), 1)
        right = torch.compile(add, backend="eager")(torch.ones(2), 1)
    assert torch.equal(right, torch.full((2,), 2.0))


def test_counters_count_graphs_and_calls() -> None:
    counter, recorder = CompileCounterWithBackend("eager"), EagerAndRecordGraphs()
    f = torch.compile(lambda x: (x + 1) * 2, backend=counter)
    assert torch.equal(f(torch.ones(1)), f(torch.ones(1)))
    assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 2, 1)
    torch.compile(add, backend=recorder)(torch.ones(1), 1)
    assert len(recorder.graphs) == 1


# ---- recompiles


def test_guard_failure_recompiles_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    counter = CompileCounter()
    f = torch.compile(add, backend=counter)
    torch._logging.set_logs(recompiles=True)
    logger = logging.getLogger("torch._dynamo")
    logger.addHandler(caplog.handler)
    try:
        f(torch.ones(2), 1)
        f(torch.ones(2, dtype=torch.double), 1)
    finally:
        logger.removeHandler(caplog.handler)
        torch._logging.set_logs()
    assert counter.frame_count == 2
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "Recompiling function add" in text
    assert "dtype mismatch. expected Float, actual Double" in text


def test_limit_of_recompiles_stops_compiling_or_raises() -> None:
    counter = CompileCounter()
    dtypes = [torch.float, torch.double, torch.int, torch.long]
    with config.patch(recompile_limit=2):
        f = torch.compile(add, backend=counter)
        for dtype in dtypes:
            assert torch.equal(f(torch.ones(2, dtype=dtype), 1), torch.full((2,), 2, dtype=dtype))
        assert counter.frame_count == 2
        torch._dynamo.reset()
        strict = torch.compile(add, backend=CompileCounter(), fullgraph=True)
        with pytest.raises(exc.FailOnRecompileLimitHit, match="recompile_limit reached"):
            for dtype in dtypes:
                strict(torch.ones(2, dtype=dtype), 1)
    with config.patch(error_on_recompile=True):
        f = torch.compile(add, backend=CompileCounter())
        f(torch.ones(2), 1)
        with pytest.raises(exc.RecompileError, match="guard failure"):
            f(torch.ones(2).double(), 1)


def test_guard_fail_fn_is_told_the_reason() -> None:
    told = []
    f = torch._dynamo.optimize("eager", guard_fail_fn=told.append)(add)
    f(torch.ones(2), 1)
    f(torch.ones(2).double(), 1)
    assert len(told) == 1 and "dtype mismatch" in told[0].reason
    assert told[0].orig_code is add.__code__


def test_relations_of_sizes_are_a_program_of_the_guard_tree() -> None:
    def f(x: torch.Tensor, y: torch.Tensor, n: int) -> torch.Tensor:
        if x.shape[0] % 2 == 0 and x.shape[0] < 10 * n:
            return x + y
        return x - y

    counter = CompileCounter()
    compiled = torch.compile(f, backend=counter, dynamic=True)
    for size, n in ((4, 2), (6, 3), (8, 4), (7, 2), (9, 5), (60, 2), (80, 3)):
        x, y = torch.ones(size), torch.ones(size)
        assert torch.equal(compiled(x, y, n), f(x, y, n))
    assert counter.frame_count == 3
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list(f)
    kinds = {type(leaf).__name__ for e in entries for leaf in e.guards.get_epilogue_lambda_guards()}
    assert kinds == {"SYMBOLIC_SHAPE_GUARD"}


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ("L['x'].size()[0] == 2*L['n']", (4, 2), (4, 3)),
        ("2 <= L['x'].size()[0] <= 5", (5, 0), (6, 0)),
        ("Mod(L['x'].size()[0], 3) == 1 and not L['n'] > 4", (4, 4), (4, 5)),
        ("(L['x'].size()[0]//3) + Max(1, -L['n']) != 3", (4, 0), (6, 0)),
        ("L['x'].storage_offset() == 0 or L['x'].stride()[0] < 0", (4, 0), None),
    ],
)
def test_shape_conditions_mean_what_python_means(
    text: str, good: tuple[int, int], bad: tuple[int, int] | None
) -> None:
    from torch._C._dynamo.guards import RootGuardManager

    from torch._dynamo.shape_guards import ShapeCompiler
    from torch._dynamo.source import LocalSource

    root = RootGuardManager()
    compiler = ShapeCompiler([LocalSource("x"), LocalSource("n")])
    assert compiler.add(text) and not compiler.add("L['x'].size()[0] > sqrt(2.5)")
    places = {"x": 0, "n": 1}
    compiler.install(
        root, lambda s: root.frame_local_manager((s.local_name, places[s.local_name])), [text]
    )
    assert root.check({"x": torch.ones(good[0]), "n": good[1]})
    if bad is not None:
        assert not root.check({"x": torch.ones(bad[0]), "n": bad[1]})


# ---- switches


def test_disable_leaves_a_function_alone_with_all_it_calls() -> None:
    counter = CompileCounter()

    @torch.compiler.disable(reason="test")
    def hidden(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def f(x: torch.Tensor) -> torch.Tensor:
        return hidden(x + 1) + 1

    assert torch.equal(torch.compile(f, backend=counter)(torch.ones(1)), torch.full((1,), 5.0))
    assert counter.op_count == 2 and hidden.__name__ == "hidden"
    assert hidden._torchdynamo_disable_msg == "test"


def test_stances_decide_when_to_compile() -> None:
    counter = CompileCounter()
    f = torch.compile(add, backend=counter)
    with torch.compiler.set_stance("force_eager"):
        f(torch.ones(1), 1)
    assert counter.frame_count == 0
    f(torch.ones(1), 1)
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(f(torch.ones(1).double(), 1), torch.full((1,), 2.0).double())
    assert counter.frame_count == 1
    with torch.compiler.set_stance("fail_on_recompile"):
        f(torch.ones(1), 1)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(torch.ones(1).double(), 1)

    @torch.compiler.set_stance("force_eager")
    def eagerly() -> None:
        f(torch.ones(1).double(), 1)

    eagerly()
    assert counter.frame_count == 1
    f(torch.ones(1).double(), 1)
    assert counter.frame_count == 2
    with pytest.raises(RuntimeError, match="invalid torch"):
        torch.compiler.set_stance("sometimes")


def test_run_uses_what_is_compiled_and_makes_nothing() -> None:
    counter = CompileCounter()
    f = torch.compile(add, backend=counter)
    f(torch.ones(1), 1)
    again = torch._dynamo.run(f)
    again(torch.ones(1), 1)
    assert torch.equal(again(torch.ones(1).double(), 1), torch.full((1,), 2.0).double())
    assert counter.frame_count == 1


def test_methods_modules_classes_and_callables_are_wrapped() -> None:
    class Scale(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((1,), 3.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight

        def twice(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    counter = CompileCounter()
    module = Scale()
    compiled = torch.compile(module, backend=counter)
    assert torch.equal(compiled(torch.ones(1)), torch.full((1,), 3.0))
    assert list(compiled.state_dict()) == ["_orig_mod.weight"] and compiled.weight is module.weight
    calls: list[int] = []
    module.register_forward_hook(lambda *args: calls.append(1))
    compiled(torch.ones(1))
    assert calls == [1]
    method = torch.compile(module.twice, backend=counter)
    assert torch.equal(method(torch.ones(1)), torch.full((1,), 2.0))
    assert method.__self__ is module
    partial = torch.compile(torch.nn.ReLU(), backend=counter)
    assert torch.equal(partial(-torch.ones(1)), torch.zeros(1))
    with pytest.raises(AssertionError, match="callable"):
        torch.compile(3)


def test_marks_on_tensors_are_kept_by_the_tensor() -> None:
    t = torch.ones(2, 3)
    torch._dynamo.mark_dynamic(t, 0, min=2, max=8)
    torch._dynamo.mark_dynamic(t, (1,))
    torch._dynamo.maybe_mark_dynamic(t, 1)
    torch._dynamo.mark_static(t, 0)
    torch._dynamo.mark_unbacked(t, [0])
    torch._dynamo.mark_static_address(t)
    assert t._dynamo_dynamic_indices == {0, 1} and t._dynamo_weak_dynamic_indices == {1}
    assert [(r.dim, r.min, r.max) for r in t._dynamo_dynamic_range] == [(0, 2, 8)]
    assert t._dynamo_static_indices == {0} and t._dynamo_unbacked_indices == {0}
    for mark in (torch._dynamo.mark_static_address, torch._dynamo.mark_static):
        with pytest.raises(TypeError, match="expects a tensor"):
            mark(3)


def test_reset_frees_what_was_compiled() -> None:
    import gc
    import weakref

    graphs = []

    def backend(gm: torch.fx.GraphModule, inputs: list[object]) -> Callable:
        graphs.append(weakref.ref(gm))
        return gm.forward

    f = torch.compile(add, backend=backend)
    f(torch.ones(1), 1)
    assert graphs[0]() is not None
    torch._dynamo.reset()
    gc.collect()
    assert graphs[0]() is None


def test_explain_counts_graphs_and_operators() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        return x * 2

    found = torch._dynamo.explain(f)(torch.ones(2))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 2)
    assert "Graph Count: 2" in str(found) and "Break Reason 1" in str(found)


# ---- comparisons


def test_same_compares_containers_and_numbers() -> None:
    a = torch.arange(3.0)
    assert utils.same({"x": [a, (a, 1)]}, {"x": [a.clone(), (a, 1)]})
    assert not utils.same([a], [a + 1]) and not utils.same(a, a.double())
    assert not utils.same([a], [a, a]) and not utils.same({"x": a}, {"y": a})
    assert utils.same(a, a.double(), exact_dtype=False)
    assert utils.same(a, a + 1e-3, fp64_ref=a.double() + 5e-4)


# ---- logs


def test_log_settings_are_parsed_and_refused() -> None:
    state = _internal._parse_log_settings("+dynamo,-aot,graph_code,torch._dynamo.guards")
    assert state.log_qname_to_level["torch._dynamo"] == logging.DEBUG
    assert state.log_qname_to_level["torch._functorch.aot_autograd"] == logging.ERROR
    assert state.log_qname_to_level["torch._dynamo.guards"] == logging.INFO
    assert state.is_artifact_enabled("graph_code")
    for wrong in ("nonsense_name", "+", "a b"):
        with pytest.raises(ValueError, match="Invalid log settings"):
            _internal._parse_log_settings(wrong)
    for call in (
        lambda: torch._logging.set_logs(nonsense=1),
        lambda: torch._logging.set_logs(dynamo=12345),
        lambda: torch._logging.set_logs(graph_code=3),
        lambda: torch._logging.getArtifactLogger("torch", "nonsense"),
    ):
        with pytest.raises(ValueError):
            call()


def test_default_logging_is_a_choice_that_set_logs_takes() -> None:
    torch._logging.set_logs(**torch._logging.DEFAULT_LOGGING)
    try:
        assert logging.getLogger("torch._dynamo").isEnabledFor(logging.INFO)
    finally:
        torch._logging.set_logs()
    assert not logging.getLogger("torch._dynamo").isEnabledFor(logging.INFO)


def test_artifacts_are_silent_until_asked_for() -> None:
    logger = torch._logging.getArtifactLogger("torch._dynamo.surface_test", "output_code")
    assert not logger.isEnabledFor(logging.DEBUG)
    torch._logging.set_logs(output_code=True)
    try:
        assert logger.isEnabledFor(logging.DEBUG)
    finally:
        torch._logging.set_logs()
    assert not logger.isEnabledFor(logging.DEBUG)


PROGRAM = """
import torch
def f(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2
g = torch.compile(f, backend="eager")
g(torch.ones(3)); g(torch.ones(3).double())
"""


def test_environment_switches_artifacts_on(tmp_path: object) -> None:
    environment = {**os.environ, "TORCH_LOGS": "graph_code,recompiles,graph_breaks,guards,bytecode"}
    environment["TORCH_TRACE"] = str(tmp_path / "trace")
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    for part in ("[__graph_code]", "[0/0]", "[__recompiles]", "[__graph_breaks]", "[__guards]",
                 "[__bytecode]", "TRACED GRAPH", "Graph break"):  # fmt: skip
        assert part in run.stderr, part
    (file,) = (tmp_path / "trace").iterdir()
    records = [json.loads(line.split("] ", 1)[1]) for line in file.read_text().splitlines()
               if not line.startswith("\t")]  # fmt: skip
    kinds = {key for record in records for key in record}
    assert {"dynamo_start", "dynamo_output_graph", "frame_id", "frame_compile_id"} <= kinds


KNOWN_BACKEND = """
import sys
import torch

torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
before = "importlib.metadata" in sys.modules
try:
    torch.compile(lambda x: x + 1, backend="no such backend")
except torch._dynamo.exc.InvalidBackend:
    print(before, "importlib.metadata" in sys.modules)
"""


def test_installed_packages_are_asked_for_backends_that_are_unknown_only() -> None:
    run = subprocess.run(
        [sys.executable, "-c", KNOWN_BACKEND], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == ["False", "True"]


# ---- small names


def test_methods_of_plain_numbers_fix_a_symbol() -> None:
    from torch._subclasses import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    env = ShapeEnv()
    size = FakeTensorMode(shape_env=env).from_tensor(torch.ones(5), static_shapes=False).shape[0]
    assert size.bit_length() == 3 and size.as_integer_ratio() == (5, 1)
    assert (size * 1.5).as_integer_ratio() == (15, 2) and (size * 1.5).hex() == (7.5).hex()
    assert len(env.guards) == 1


def test_ranges_of_numbers_are_stated_and_checked() -> None:
    assert torch.sym_constrain_range(3, min=1, max=4) is None
    assert torch.sym_constrain_range_for_size(3, min=1, max=4) is None
    with pytest.raises(RuntimeError, match=r"Invalid value range for 7 between \[1, 4\]"):
        torch.sym_constrain_range(7, min=1, max=4)


def test_training_flag_of_a_compiled_module_is_that_of_the_module() -> None:
    module = torch.nn.Dropout(0.5)
    compiled = torch.compile(module, backend="eager")
    module.eval()
    assert compiled.training is False
    compiled.train()
    assert module.training is True and compiled.training is True


def test_fake_mode_keeps_values_of_small_tensors() -> None:
    from torch._subclasses import FakeTensorMode

    mode = FakeTensorMode()
    fake = mode.from_tensor(torch.ones(2))
    assert mode.may_turn_const(torch.ones(1)) and not mode.may_turn_const(torch.ones(2000))
    assert not mode.may_turn_const(fake) and not mode.may_turn_const(torch.ones(2, device="meta"))


def test_hooks_say_what_the_program_does_when_it_is_compiled_again() -> None:
    epochs = iter(["epoch 1", "x" * 300])
    torch._dynamo.register_hook_for_recompile_user_context(lambda: next(epochs))
    try:
        fn = torch.compile(add, backend="eager", dynamic=False)
        for size in (2, 3, 4):
            fn(torch.ones(size), 1)
    finally:
        torch._dynamo.reset_recompile_user_contexts()
    noted = [m.recompile_user_contexts for m in utils.get_compilation_metrics()[-3:]]
    assert noted == [None, ["epoch 1"], ["x" * 256]]


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor, factors: list, shape: tuple) -> torch.Tensor:
        ctx.factor = factors[0] * factors[1]
        return (x * ctx.factor).reshape(shape)

    @staticmethod
    def backward(ctx, grad: torch.Tensor) -> tuple:
        return grad.reshape(4) * ctx.factor, None, None


def test_function_with_its_own_derivative_takes_sequences_of_tensors() -> None:
    def fn(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return Scaled.apply(x, [a, a + 1], (2, 2)).sin()

    results = []
    for run in (fn, torch.compile(fn, backend="aot_eager", fullgraph=True)):
        x = torch.arange(4.0, requires_grad=True)
        out = run(x, torch.tensor(2.0))
        out.sum().backward()
        results.append((out.detach(), x.grad))
    assert all(map(torch.equal, *results))


def test_parts_of_the_package_are_found_without_an_import() -> None:
    text = "import torch._dynamo; torch._dynamo.compiled_autograd._enable; torch._dynamo.pgo.load"
    subprocess.run([sys.executable, "-c", text], check=True)
