"""Compiled graphs with their derivatives as one differentiable function: what it saves and frees,
tangents of all forms, and what callers around it may do."""

import gc
import weakref

import pytest

import torch
from torch.multiprocessing.reductions import StorageWeakRef


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _layer(x, w, b):
    return torch.nn.functional.gelu(x @ w + b).sin()


def _inputs():
    generator = torch.Generator().manual_seed(0)
    shapes = ((5, 4), (4, 6), (6,))
    return [torch.randn(s, generator=generator).requires_grad_() for s in shapes]


def _grads(function, *, weight=None, **options):
    inputs = _inputs()
    out = function(*inputs)
    out.backward(torch.ones_like(out) if weight is None else weight, **options)
    return [value.grad for value in inputs]


def _same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)


# ---- memory


class _Reader(torch.autograd.Function):
    ref = None
    alive: list[bool] = []

    @staticmethod
    def forward(ctx, x):
        kept = x.exp()
        _Reader.ref = StorageWeakRef(kept.untyped_storage())
        ctx.save_for_backward(kept)
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (kept,) = ctx.saved_tensors
        ctx.maybe_clear_saved_tensors()
        result = grad * kept
        del kept
        _Reader.alive.append(not _Reader.ref.expired())
        return result


def test_saved_tensors_are_freed_inside_of_the_last_backward_only():
    x = torch.randn(3, requires_grad=True)
    out = _Reader.apply(x).sum()
    _Reader.alive.clear()
    out.backward(retain_graph=True)
    out.backward()
    assert _Reader.alive == [True, False]
    torch.testing.assert_close(x.grad, 2 * x.detach().exp())


_marks: dict[str, object] = {}


@torch.library.custom_op("compiled_training::marked", mutates_args=())
def _marked(x: torch.Tensor) -> torch.Tensor:
    out = x.clone()
    _marks["ref"] = StorageWeakRef(out.untyped_storage())
    return out


@torch.library.custom_op("compiled_training::looked", mutates_args=())
def _looked(grad: torch.Tensor) -> torch.Tensor:
    _marks["freed"] = _marks["ref"].expired()
    return grad.clone()


_marked.register_fake(torch.empty_like)
_looked.register_fake(torch.empty_like)
_marked.register_autograd(lambda ctx, grad: _looked(grad))


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
def test_compiled_backward_frees_each_saved_tensor_after_its_last_use(backend):
    x = torch.randn(64, requires_grad=True)
    out = torch.compile(lambda x: _marked(x).sin(), backend=backend)(x)
    out.sum().backward(retain_graph=True)
    assert _marks["freed"] is False
    out.sum().backward()
    assert _marks["freed"] is True
    torch.testing.assert_close(x.grad, 2 * x.detach().cos())


def test_function_and_its_graphs_are_collected_when_nobody_has_them():
    def run(x):
        return (x * 2).sin()

    compiled = torch.compile(run)
    x = torch.randn(3, requires_grad=True)
    out = compiled(x)
    ref = weakref.ref(run)
    del compiled, run
    torch._dynamo.reset()
    gc.collect()
    out.sum().backward()  # the node has what it needs
    torch.testing.assert_close(x.grad, 2 * (2 * x.detach()).cos())
    del out
    gc.collect()
    assert ref() is None


# ---- gradients


def test_gradients_equal_those_of_eager_at_every_call():
    wanted = _grads(_layer)
    compiled = torch.compile(_layer)
    for _ in range(3):
        _same(_grads(compiled), wanted)


@pytest.mark.parametrize("form", ["transposed", "expanded", "strided"])
def test_tangents_of_other_strides_are_taken(form):
    weight = {
        "transposed": torch.randn(6, 5).t(),
        "expanded": torch.randn(1, 6).expand(5, 6),
        "strided": torch.randn(5, 12)[:, ::2],
    }[form]
    _same(_grads(torch.compile(_layer), weight=weight), _grads(_layer, weight=weight))


def test_output_without_a_gradient_counts_as_zeros():
    def both(x):
        return x.sin(), x.exp(), x.argmax()

    x = torch.randn(5, requires_grad=True)
    first, second, place = torch.compile(both)(x)
    assert place.grad_fn is None and not place.requires_grad
    second.sum().backward()
    assert torch.equal(x.grad, x.detach().exp())
    assert first.grad_fn is second.grad_fn


def test_inputs_that_need_no_gradient_get_none():
    x, w, b = _inputs()
    w = w.detach()
    torch.compile(_layer)(x, w, b).sum().backward()
    assert w.grad is None and x.grad is not None and b.grad is not None


def test_part_of_the_gradients_is_computed_by_autograd_grad():
    wanted = torch.autograd.grad(_layer(*(given := _inputs())).sum(), given[1])
    found = torch.autograd.grad(torch.compile(_layer)(*(given := _inputs())).sum(), given[1])
    _same(found, wanted)


def test_output_that_is_an_input_and_one_that_is_saved_keep_their_histories():
    def run(x, y):
        z = x.exp()  # its derivative is itself
        return x, z, y.view(-1)

    def total(function):
        x = torch.arange(4.0).requires_grad_()
        y = torch.ones(2, 2, requires_grad=True)
        a, b, c = function(x * 1, y * 2)
        (a.sum() * 3 + (b * b).sum() + (c * 5).sum()).backward()
        return x.grad, y.grad

    _same(total(torch.compile(run)), total(run))


def test_lengths_that_vary_give_gradients_of_eager():
    compiled = torch.compile(lambda x: (x.sin() * x.shape[0]).cumsum(0))
    for n in (3, 5, 8, 11):
        x = torch.randn(n, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        compiled(x).sum().backward()
        (y.sin() * n).cumsum(0).sum().backward()
        assert torch.equal(x.grad, y.grad)


# ---- callers


def test_second_backward_is_an_error_unless_the_graph_is_retained():
    x, w, b = _inputs()
    out = torch.compile(_layer)(x, w, b).sum()
    out.backward(retain_graph=True)
    first = x.grad.clone()
    out.backward()
    assert torch.equal(x.grad, first + first)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        out.backward()


def test_derivative_of_the_derivative_is_refused():
    x, w, b = _inputs()
    out = torch.compile(_layer)(x, w, b)
    (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
    assert grad.requires_grad
    with pytest.raises(RuntimeError, match="does not currently support double backward"):
        grad.sum().backward()


def test_write_to_a_saved_parameter_is_noticed():
    x, w, b = _inputs()
    out = torch.compile(_layer)(x, w, b)
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_hooks_pack_and_unpack_what_is_saved():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.shape)
        return t.numpy(force=True).copy()

    def unpack(a):
        unpacked.append(a.shape)
        return torch.from_numpy(a)

    compiled = torch.compile(_layer)
    compiled(*_inputs())
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        found = _grads(compiled)
    assert packed and len(packed) == len(unpacked)
    _same(found, _grads(_layer))


def test_hooks_of_the_node_and_of_the_output_see_gradients():
    x, w, b = _inputs()
    out = torch.compile(_layer)(x, w, b)
    assert out.grad_fn.name() == "CompiledFunctionBackward"
    entering, leaving = [], []
    out.register_hook(lambda grad: entering.append(grad.shape))
    out.grad_fn.register_hook(lambda inputs, outputs: leaving.append(len(inputs)))
    out.sum().backward()
    assert entering == [(5, 6)] and leaving == [3]


def test_anomaly_mode_names_the_function():
    def root(x):
        return (x - 1).sqrt() * 0

    x = torch.zeros(2, requires_grad=True)
    with (
        pytest.warns(UserWarning, match="Anomaly Detection has been enabled"),
        torch.autograd.detect_anomaly(check_nan=True),
        pytest.raises(RuntimeError, match="CompiledFunctionBackward' returned nan"),
    ):
        torch.compile(root)(x).sum().backward()


def test_call_without_gradients_equals_eager():
    compiled = torch.compile(_layer)
    inputs = _inputs()
    with torch.no_grad():
        out = compiled(*inputs)
    assert not out.requires_grad and torch.equal(out, _layer(*inputs))


def test_backward_inside_of_a_transform_is_refused():
    x, w, b = _inputs()
    out = torch.compile(_layer)(x, w, b)

    def pull(weight):
        return torch.autograd.grad(out, x, weight, retain_graph=True)[0]

    with pytest.raises(RuntimeError, match="within vmap/grad/vjp"):
        torch.func.vmap(pull)(torch.ones(2, 5, 6))


def test_gradient_of_values_written_through_a_mask_has_their_shape() -> None:
    def fn(x: torch.Tensor, mask: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        x[:, mask] = values
        return x

    mask = torch.tensor([True, False, True, False])
    x = torch.randn(8, 4, requires_grad=True)
    values = torch.randn(2, requires_grad=True)
    compiled = torch.compile(fn, backend="aot_eager")
    wanted = torch.autograd.grad(fn(x, mask, values).square().sum(), (x, values))
    got = torch.autograd.grad(compiled(x, mask, values).square().sum(), (x, values))
    for one, other in zip(got, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_gradient_that_reads_values_leaves_the_function_to_python():
    lib = torch.library.Library("compiled_training", "FRAGMENT")
    try:
        lib.define("chosen(Tensor x, Tensor index) -> Tensor")
        lib.impl("chosen", lambda x, index: x * 2, "CPU")
        lib._register_fake("chosen", lambda x, index: torch.empty_like(x))

        def setup(ctx, inputs, output):
            ctx.index = inputs[1]

        def backward(ctx, grad):
            return (grad * 2 if ctx.index.tolist()[0] == 1 else grad), None

        torch.library.register_autograd(
            "compiled_training::chosen", backward, setup_context=setup, lib=lib
        )

        def fn(x, index):
            return torch.ops.compiled_training.chosen(x.sin(), index).cos()

        for backend in ("aot_eager", "inductor"):
            for first in (1, 0):
                x = torch.linspace(0, 1, 3).requires_grad_()
                y = x.detach().clone().requires_grad_()
                index = torch.tensor([first, 2])
                torch._dynamo.reset()
                torch.compile(fn, backend=backend)(x, index).sum().backward()
                fn(y, index).sum().backward()
                assert torch.equal(x.grad, y.grad)
        with pytest.raises(torch._dynamo.exc.BackendCompilerFailed):
            torch._dynamo.reset()
            torch.compile(fn, backend="aot_eager", fullgraph=True)(x, index)
    finally:
        lib._destroy()


OVERLAPPING = {
    "expanded": lambda x: x.sum(0, keepdim=True).expand(4, 6),
    "windows": lambda x: (x * 2).unfold(0, 3, 1),
    "strides": lambda x: (x * 2).as_strided((3, 3), (1, 1)),
    "every other row": lambda x: x.exp()[::2],
}


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", OVERLAPPING)
def test_results_that_are_not_dense_get_dense_tangents(name, dynamic):
    function = OVERLAPPING[name]
    x = torch.linspace(-1, 1, 24).view(4, 6)
    found = []
    for run in (function, torch.compile(function, dynamic=dynamic, fullgraph=True)):
        leaf = x.clone().requires_grad_()
        out = run(leaf)
        (out * torch.arange(float(out.numel())).view(out.shape)).sum().backward()
        found.append((out, leaf.grad))
    _same(found[1], found[0])
    assert found[0][0].stride() == found[1][0].stride()
