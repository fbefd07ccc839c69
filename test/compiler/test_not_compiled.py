"""What comes later exists as far as it is true: compiling runs as is and says so once, absent
devices answer that they are absent, and starting what is missing raises NotImplementedError."""

import copy
import importlib
import pickle
import subprocess
import sys
import warnings

import pytest

import torch


def test_compile_runs_as_is_and_says_so_once():
    code = """
import warnings, torch
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    f = torch.compile(lambda x: x + 1, backend="cudagraphs")
    g = torch.compile(torch.nn.Linear(2, 2), backend="cudagraphs")
print(f(1), [str(w.message).split()[0] for w in seen])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "2 ['torch.compile']"


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_compiled_module_keeps_pytorchs_keys():
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Linear(3, 1))
    compiled = torch.compile(model)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    assert isinstance(compiled, torch._dynamo.OptimizedModule) and compiled._orig_mod is model
    x = torch.ones(1, 2)
    assert torch.equal(compiled(x), model(x))
    compiled.eval()
    assert not model.training and compiled[0] is model[0] and len(compiled) == 2
    compiled.note = 3
    assert model.note == 3
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert torch.equal(other(x), model(x)) and other._orig_mod is not model


def test_compile_arguments():
    @torch.compile(fullgraph=True, dynamic=False)
    def double(x):
        """Doc."""
        return x * 2

    assert double(3) == 6 and double.__doc__ == "Doc."
    function = lambda x: x
    assert torch.compile(function, disable=True) is function
    with pytest.raises(RuntimeError, match="Unrecognized mode=fast"):
        torch.compile(function, mode="fast")
    with pytest.raises(RuntimeError, match="both can't be specified"):
        torch.compile(function, mode="default", options={})
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nope"):
        torch.compile(function, backend="nope")
    with pytest.raises(AssertionError, match="callable"):
        torch.compile(3)


def test_compiler_marks():
    def f(x):
        return x

    compiler, dynamo = torch.compiler, torch._dynamo
    assert compiler.disable(f)(3) == 3 and compiler.disable(recursive=False)(f) is f
    assert compiler.allow_in_graph(f) is f and dynamo.allow_in_graph(f) is f
    assert not compiler.is_compiling() and not dynamo.is_compiling()
    assert not compiler.is_exporting()
    with compiler.set_stance("force_eager"):
        compiler.reset()
    with pytest.raises(RuntimeError, match="stance"):
        compiler.set_stance("whatever")
    import torch._inductor.config as inductor

    with inductor.patch({"triton.cudagraphs": True}):
        assert inductor.triton.cudagraphs
    assert not inductor.triton.cudagraphs


def test_jit_runs_python():
    class Model(torch.nn.Module):
        @torch.jit.export
        def other(self, x):
            return x

        @torch.jit.ignore(drop=True)
        def ignored(self, x):
            return x

        @torch.jit.unused
        def unused(self, x):
            return x

        def forward(self, x):
            return x + 1

    model = Model()
    assert model.other(1) == model.ignored(1) == model.unused(1) == 1
    assert not torch.jit.is_scripting() and not torch.jit.is_tracing()
    assert torch.jit.annotate(list[int], [1]) == [1]
    assert torch.jit.isinstance({"a": [1]}, dict[str, list[int]])
    assert not torch.jit.isinstance([1, "a"], list[int])
    assert torch.jit.wait(torch.jit.fork(lambda x: x + 1, 2)) == 3


def test_names_import_and_raise_when_used():
    from torch.onnx.symbolic_helper import parse_args

    assert parse_args("v")(len) is len
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("torch.fx.nothing")


@pytest.mark.parametrize("name", ["xpu", "mtia", "mps"])
def test_absent_devices(name):
    module = getattr(torch, name)
    assert not module.is_available() and module.device_count() == 0
    module.manual_seed(1)
    with pytest.raises((AssertionError, RuntimeError)):
        module.synchronize()
    if name != "mps":
        module.empty_cache()
        assert module.memory_allocated() == 0
        with pytest.raises(AssertionError, match="not compiled"):
            getattr(torch.ones(1), name)()


def test_futures():
    future = torch.futures.Future()
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    chained = future.then(lambda f: f.wait() + 1)
    assert not future.done()
    with pytest.raises(RuntimeError):
        future.value()
    future.set_result(1)
    assert future.wait() == 1 and chained.wait() == 2 and seen == [1]
    assert torch.futures.wait_all([future, chained]) == [1, 2]
    with pytest.raises(RuntimeError, match="once"):
        future.set_result(2)
    failed = torch.futures.Future()
    failed.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        torch.futures.wait_all([future, failed])
    assert torch.futures.collect_all([]).wait() == []


def test_control_flow_operators():
    assert torch.cond(torch.tensor(True), lambda x: x + 1, lambda x: x, (1,)) == 2
    assert torch.cond(False, lambda x: x + 1, lambda x: x, (1,)) == 1
    with pytest.raises(RuntimeError, match="pred"):
        torch.cond("yes", len, len, ())
    assert torch.while_loop(lambda i, s: i < 4, lambda i, s: (i + 1, s + i), (0, 0)) == (4, 6)


def test_gradcheck_stays_the_function():
    code = """
import torch.autograd.gradcheck, torch
assert callable(torch.autograd.gradcheck), torch.autograd.gradcheck
from torch.autograd.gradcheck import GradcheckError, gradcheck
assert torch.autograd.gradcheck is gradcheck
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_private_names_that_projects_import():
    from torch._decomp import get_decompositions, register_decomposition
    from torch._guards import detect_fake_mode
    from torch._logging import getArtifactLogger
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
    from torch.utils._triton import has_triton

    assert detect_fake_mode() is None and not has_triton()
    assert not isinstance(torch.ones(1), FakeTensor)
    assert getArtifactLogger("torch.x", "graph").name == "torch.x.__graph"
    table = {}
    sin = torch.ops.aten.sin.default
    register_decomposition(sin, table)(len)
    assert table == {sin: len} and get_decompositions([sin])[sin] is not len
    a, b = torch.ones(1), torch.ones(1, dtype=torch.float64)
    groups = _group_tensors_by_device_and_dtype([[a, b, a], [b, a, b]], with_indices=True)
    lists, places = groups[a.device, torch.float32]
    assert places == [0, 2] and lists[0][1] is a and lists[1][0] is b
