"""What the compiler keeps between processes: functions, graphs, and what makes them stale."""

import json
import os
import random
import subprocess
import sys
import textwrap

import pytest

import torch
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._functorch._aot_autograd.autograd_cache import (
    AOTAutogradCache,
    BypassAOTAutogradCache,
    autograd_cache_key,
)
from torch._functorch._aot_autograd.schemas import AOTConfig
from torch._inductor import config, graph_cache
from torch._inductor.cache_store import store
from torch._inductor.codecache import (
    BypassFxGraphCache,
    FxGraphCache,
    FxGraphCachePickler,
    FxGraphHashDetails,
)
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.graph_codec import Damaged, decode_graph, encode_graph
from torch._inductor.mock_cache import PatchCaches, global_stats
from torch.fx.experimental.proxy_tensor import make_fx


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()
    counters.clear()


def again(fn, *args, **options):
    """What a new compilation of a function returns."""
    torch._dynamo.reset()
    counters.clear()
    return torch.compile(fn, **options)(*args)


def sine(x):
    return x.sin()


def found() -> tuple[int, int]:
    """Hits among functions and among graphs."""
    return (
        counters["aot_autograd"]["autograd_cache_hit"],
        counters["inductor"]["fxgraph_cache_hit"],
    )


def test_function_compiled_again_is_taken_from_the_store():
    def fn(x, y):
        return torch.relu(x @ y).sum(1), x * 2

    x, y = torch.randn(5, 6), torch.randn(6, 7)
    want = again(fn, x, y)
    assert found() == (0, 0)
    assert counters["aot_autograd"]["autograd_cache_saved"] == 1
    assert counters["inductor"]["fxgraph_cache_miss"] == 1
    got = again(fn, x, y)
    assert found() == (1, 1)
    assert counters["inductor"]["fxgraph_cache_miss"] == 0
    assert all(torch.equal(a, b) for a, b in zip(want, got, strict=True))


def test_gradients_of_a_stored_function_equal_those_of_eager():
    def fn(x, w):
        return torch.tanh(x @ w).pow(2)

    x = torch.randn(4, 3)

    def gradient(run):
        w = torch.linspace(-1, 1, 6).reshape(3, 2).requires_grad_()
        run(x, w).sum().backward()
        return w.grad

    want = gradient(fn)
    torch._dynamo.reset()
    gradient(torch.compile(fn))
    assert counters["aot_autograd"]["autograd_cache_saved"] == 1
    torch._dynamo.reset()
    counters.clear()
    assert torch.equal(gradient(torch.compile(fn)), want)
    assert found() == (1, 2)


def test_function_is_kept_when_its_backward_graph_is_there():
    def fn(x):
        return x.sin()

    again(fn, torch.randn(3, requires_grad=True))
    assert counters["aot_autograd"]["autograd_cache_saved"] == 0
    again(fn, torch.randn(3, requires_grad=True))
    assert found() == (0, 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.double(),
        lambda x: torch.randn(5, 4).t()[:, :4].contiguous().t(),
        lambda x: torch.randn(3, 5),
        lambda x: x.clone().requires_grad_(),
    ],
)
def test_other_inputs_are_compiled_anew(change):
    def fn(x):
        return (x * 3).cumsum(0)

    x = torch.randn(4, 5)
    again(fn, x)
    other = change(x)
    assert torch.equal(again(fn, other), fn(other))
    assert found()[0] == 0


def test_constants_with_other_values_are_compiled_anew():
    def fn(first):
        def run(x):
            return x + torch.tensor([first, 2.0])

        return run

    x = torch.zeros(2)
    assert again(fn(1.0), x).tolist() == [1.0, 2.0]
    assert again(fn(5.0), x).tolist() == [5.0, 2.0]
    assert again(fn(1.0), x).tolist() == [1.0, 2.0]


def test_outputs_that_are_views_of_inputs_share_memory_when_stored():
    def fn(x):
        return x.view(2, 3).t(), x.add_(1)

    for _ in range(2):
        x = torch.arange(6.0)
        view, same = again(fn, x)
        assert same is x
        assert view.data_ptr() == x.data_ptr()
        assert view.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    assert found()[0] == 1


def test_sizes_that_are_symbols_keep_their_conditions():
    def fn(x):
        return x * 2 if x.shape[0] < 10 else x * 3

    for size, factor in ((4, 2), (20, 3), (5, 2), (30, 3)):
        got = again(fn, torch.ones(size), dynamic=True)
        assert got.tolist() == [float(factor)] * size
        assert found()[0] == (size in (5, 30))


def test_one_stored_graph_serves_several_sizes():
    def fn(x):
        return x.softmax(-1).sum(0)

    for _ in range(2):
        torch._dynamo.reset()
        counters.clear()
        compiled = torch.compile(fn, dynamic=True)
        for size in (3, 8, 5):
            x = torch.randn(size, 4)
            assert torch.allclose(compiled(x), fn(x))
    assert found()[0] == 1


@pytest.mark.parametrize("switch", ["fx_graph_cache", "force_disable_caches"])
def test_nothing_is_kept_when_switched_off(switch):
    with config.patch({switch: switch != "fx_graph_cache"}):
        again(sine, torch.randn(3))
        again(sine, torch.randn(3))
    assert found() == (0, 0)
    assert not store().used


def test_autograd_cache_switched_off_leaves_graphs_kept():
    with functorch_config.patch(enable_autograd_cache=False):
        again(sine, torch.randn(3))
        again(sine, torch.randn(3))
    assert found() == (0, 1)


def test_clear_removes_entries():
    again(sine, torch.randn(3))
    FxGraphCache.clear()
    again(sine, torch.randn(3))
    assert found() == (0, 0)
    AOTAutogradCache.clear()
    again(sine, torch.randn(3))
    assert found() == (0, 1)


class Pass(CustomGraphPass):
    def __init__(self, name, op):
        self.name, self.op = name, op

    def __call__(self, graph):
        for node in graph.nodes:
            if node.target is torch.ops.aten.sin.default:
                node.target = self.op

    def uuid(self):
        return self.name


def test_passes_with_other_uuids_have_results_of_their_own():
    x = torch.rand(3)
    cos, exp = Pass("cos", torch.ops.aten.cos.default), Pass("exp", torch.ops.aten.exp.default)
    for given, want in ((cos, x.cos()), (exp, x.exp()), (cos, x.cos())):
        with config.patch(post_grad_custom_pre_pass=given):
            assert torch.allclose(again(sine, x), want)
    assert found() == (1, 1)
    with config.patch(post_grad_custom_pre_pass=lambda graph: None):
        assert torch.equal(again(sine, x), x.sin())
    assert counters["aot_autograd"]["autograd_cache_bypass"] == 1


def test_function_of_the_program_in_a_graph_has_no_key():
    graph = torch.fx.Graph()
    graph.output((graph.call_function(found, ()),))
    module = torch.fx.GraphModule({}, graph)
    with pytest.raises(BypassAOTAutogradCache, match="found"):
        autograd_cache_key(module, [], AOTConfig(None, None, None, {}))


def test_graph_read_back_computes_the_same():
    def fn(x):
        first, second = x.split([1, 2], dim=0)
        return torch.where(first > 0.5, second.sum(0), second.to(torch.float64)[0]), x[1:, ::2]

    x = torch.rand(3, 4)
    module = make_fx(fn)(x)
    copy = decode_graph(json.loads(json.dumps(encode_graph(module))))
    for want, got in zip(fn(x), copy(x), strict=True):
        assert want.dtype == got.dtype and torch.equal(want, got)


def mutated(rng, value):
    """A part of JSON data, exchanged for something else."""
    other = [None, -1, 10**9, "x", {}, [], {"n": 999}, {"d": "torch.load"}, "op os::system default",
             "operator.getitem", {"q": [1]}, True, 1.5]  # fmt: skip
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        return {**value, key: mutated(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], mutated(rng, value[place]), *value[place + 1 :]]
    return rng.choice(other)


def test_changed_graphs_are_read_or_refused_and_never_crash():
    row = torch.tensor([[1.0, 2.0]])
    module = make_fx(lambda x: (x.view(2, 3).t() + row).sum(0))(torch.rand(6))
    data = json.loads(json.dumps(encode_graph(module)))
    rng = random.Random(0)
    refused = 0
    for _ in range(1500):
        try:
            decode_graph(mutated(rng, data))
        except Damaged:
            refused += 1
    assert refused > 300


def test_accesses_to_the_store_are_counted_inside_of_the_context():
    with PatchCaches() as stats:
        again(sine, torch.randn(3))
        again(sine, torch.randn(3))
        assert stats.fx_graph.num_put == stats.aot_autograd.num_put == 1
        assert stats.aot_autograd.num_get_hit == stats.aot_autograd.num_get_miss == 1
    again(sine, torch.randn(3))
    assert global_stats.aot_autograd.num_get_hit == 1


def test_bytes_of_values_are_equal_where_values_are():
    dumps = FxGraphCachePickler(torch.fx.GraphModule({}, torch.fx.Graph())).dumps
    joined = "str"
    joined += "ing"
    assert dumps(["string", "string"]) == dumps(["string", joined])
    assert dumps({"a": {1, 2}, "b": 3}) == dumps({"b": 3, "a": {2, 1}})
    assert dumps({"a": {1, 2}}) != dumps({"a": {1, 3}})
    assert dumps((1,)) != dumps([1])
    x = torch.arange(6.0)
    assert dumps(x) == dumps(x.clone())
    assert dumps(x) != dumps(x + 1)
    assert dumps(x.view(2, 3)) != dumps(x.view(3, 2))
    with pytest.raises(BypassFxGraphCache, match="object"):
        dumps(object())


def test_details_of_a_compilation_differ_with_settings():
    dumps = FxGraphCachePickler(torch.fx.GraphModule({}, torch.fx.Graph())).dumps
    usual = dumps(FxGraphHashDetails(None, [], {}, []))
    assert dumps(FxGraphHashDetails(None, [], {}, [])) == usual
    with config.patch(max_autotune=not config.max_autotune):
        assert dumps(FxGraphHashDetails(None, [], {}, [])) != usual
    assert dumps(FxGraphHashDetails(None, [], {"a": 1}, [])) != usual


def test_build_without_python_sources_has_an_identity(monkeypatch):
    monkeypatch.setattr(graph_cache, "_OWN_CODE", ["no such folder", "bin"])
    assert graph_cache.library_identity.__wrapped__().endswith(" 0")


def entries(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(parent, name)


def test_damaged_entries_are_compiled_anew(tmp_path):
    x = torch.randn(3)
    again(sine, x)
    paths = list(entries(tmp_path))
    assert paths
    for path in paths:
        with open(path, "rb") as file:
            raw = bytearray(file.read())
        raw[len(raw) // 2] ^= 1
        with open(path, "wb") as file:
            file.write(raw)
    assert torch.equal(again(sine, x), x.sin())
    assert found() == (0, 0)


def test_entries_with_a_checksum_but_without_sense_are_refused():
    x = torch.randn(3)
    again(sine, x)
    kept = dict(store().used)
    for content in (b"", b"[]", b"{}", b'{"graph": 1}', b'{"meta": {}}', b"\xff", b"[" * 10**5):
        for kind, key in kept:
            store().put(kind, key, content)
        assert torch.equal(again(sine, x), x.sin())
        assert found() == (0, 0)


def test_artifacts_carry_functions_to_another_folder(tmp_path, monkeypatch):
    again(sine, torch.randn(3))
    raw, info = torch.compiler.save_cache_artifacts()
    assert info.aot_autograd_artifacts and info.inductor_artifacts
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "other"))
    assert torch.compiler.load_cache_artifacts(raw) == info
    again(sine, torch.randn(3))
    assert found() == (1, 1)


PROGRAM = """
    import torch
    from torch._dynamo.utils import counters

    layer = torch.nn.Linear(4, 3)

    @torch.compile
    def step(x):
        return torch.relu(layer(x)).sum()

    step(torch.ones(2, 4)).backward()
    traced = "torch._functorch._aot_autograd.trace" in __import__("sys").modules
    print(counters["aot_autograd"]["autograd_cache_hit"], traced)
"""


def test_new_process_neither_traces_nor_differentiates_what_was_compiled(tmp_path):
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    said = [
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(PROGRAM)],
            env=env, capture_output=True, text=True, check=True,
        ).stdout.strip()
        for _ in range(2)
    ]  # fmt: skip
    assert said == ["0 True", "1 False"]
