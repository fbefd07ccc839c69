"""Names around the function transforms: functorch's older ones, the first vmap, what code asks
about levels, and calls that are refused inside a transform."""

import warnings

import numpy as np
import pytest

import functorch
import torch
from functorch.experimental import chunk_vmap
from torch import _vmap_internals
from torch._C import _functorch as _F
from torch._functorch import make_functional
from torch._functorch.eager_transforms import _slice_argnums
from torch._functorch.vmap import restore_vmap
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vjp, vmap
from torch.nn.utils import stateless


def array(t):
    return t.detach().numpy()


# ---- functorch -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vmap", "grad", "jacrev", "functionalize"])
def test_functorch_transform_warns_and_names_its_successor(name):
    present = "torch.vmap" if name == "vmap" else f"torch.func.{name}"
    with pytest.warns(FutureWarning, match=present):
        getattr(functorch, name)(torch.sin)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.func.vmap(torch.sin)


def test_functional_init_with_shape_stacks_that_many_models():
    params, function, names = make_functional.functional_init(torch.nn.Linear, (4,))(2, 3)
    assert names == ("weight", "bias")
    assert [tuple(p.shape) for p in params] == [(4, 3, 2), (4, 3)]
    x = torch.rand(4, 5, 2)
    out = vmap(function)(params, (x,))
    expected = np.einsum("kni,koi->kno", array(x), array(params[0])) + array(params[1])[:, None]
    np.testing.assert_allclose(array(out), expected, rtol=1e-5)


def test_functional_init_with_buffers_gives_buffers_of_each_model():
    made = make_functional.functional_init_with_buffers(torch.nn.BatchNorm1d, (2,))(3)
    _, buffers, _, names, buffer_names = made
    assert [tuple(b.shape) for b in buffers] == [(2, 3), (2, 3), (2,)]
    assert buffer_names[0] == "running_mean" and names == ("weight", "bias")


# ---- vmap ------------------------------------------------------------------------------------


def test_chunk_vmap_equals_vmap_for_any_number_of_chunks():
    x = torch.rand(7, 3)
    for chunks in (1, 2, 3, 9):
        out = chunk_vmap(lambda row: row.cumsum(0), chunks=chunks, out_dims=1)(x)
        np.testing.assert_allclose(array(out), np.cumsum(array(x), 1).T, rtol=1e-6)


def test_restore_vmap_leaves_batches_where_they_are():
    x, y = torch.rand(2, 3), torch.rand(4)
    (product, constant), dims = restore_vmap(
        lambda a, b: (a * 2, b), in_dims=(1, None), batch_size=3, randomness="error"
    )(x, y)
    assert dims[1] is None and constant is y
    np.testing.assert_allclose(np.moveaxis(array(product), dims[0], 1), 2 * array(x))


def test_first_vmap_maps_and_warns():
    x = torch.rand(3, 2)
    with pytest.warns(FutureWarning, match="torch.vmap"):
        out = _vmap_internals.vmap(lambda r: (r.sum(), r), out_dims=(0, 1))(x)
    np.testing.assert_allclose(array(out[0]), array(x).sum(1), rtol=1e-6)
    assert out[1].shape == (2, 3)


@pytest.mark.parametrize(
    ("function", "out_dims", "message"),
    [
        (lambda x: 1.0, 0, "got type <class 'float'> as the return"),
        (lambda x: [x, x], 0, "must only return Tensors, got type <class 'list'>"),
        (lambda x: (x, 1), 0, "got type <class 'int'> for return 1"),
        (lambda x: (x, x), (0,), "must have one dim per output"),
        (lambda x: x, None, "must be an int or a tuple of int"),
    ],
)
def test_first_vmap_with_wrong_outputs_raises(function, out_dims, message):
    with pytest.raises(ValueError, match=message):
        _vmap_internals._vmap(function, out_dims=out_dims)(torch.ones(2))


def test_dim_reshapes_move_a_batch_into_a_dimension_and_back():
    x = torch.arange(24.0).view(2, 3, 4)
    into = _F.reshape_dim_into(0, 1, x)
    np.testing.assert_array_equal(array(into), array(x).transpose(1, 0, 2).reshape(3, 8))
    out = _F.reshape_dim_outof(1, 2, into)
    np.testing.assert_array_equal(array(out), array(x).transpose(1, 0, 2))
    with pytest.raises(RuntimeError, match="cannot be cut into 5 parts"):
        _F.reshape_dim_outof(0, 5, x)


def test_fallback_of_vmap_can_be_switched_off():
    square = torch.library.Library("test_func_names", "DEF")
    square.define("square(Tensor x) -> Tensor")
    square.impl("square", lambda x: x * x, "CPU")
    x = torch.rand(3)
    assert _F._is_vmap_fallback_enabled()
    _F._set_vmap_fallback_enabled(False)
    try:
        with pytest.raises(RuntimeError, match="fallback path is disabled"):
            vmap(torch.ops.test_func_names.square)(x)
    finally:
        _F._set_vmap_fallback_enabled(True)
    torch._C._debug_only_display_vmap_fallback_warnings(True)
    try:
        for _ in range(2):  # every time, not once
            with pytest.warns(UserWarning, match="performance drop"):
                out = vmap(torch.ops.test_func_names.square)(x)
    finally:
        torch._C._debug_only_display_vmap_fallback_warnings(False)
    np.testing.assert_allclose(array(out), array(x) ** 2, rtol=1e-6)


def test_registrations_say_how_vmap_treats_an_operator():
    by_key = torch._C._dispatch_get_registrations_for_dispatch_key
    definitions, rules = by_key("FuncTorchBatchedDecomposition"), by_key("FuncTorchBatched")
    assert "aten::matmul" in by_key("CompositeImplicitAutograd")
    assert "aten::mm" in rules and not set(rules) & set(definitions)
    assert "aten::add.Tensor" in by_key("CPU") and len(by_key()) > len(rules)


# ---- refused inside a transform --------------------------------------------------------------


def test_retain_grad_inside_a_transform_raises():
    def function(x):
        y = x.sin()
        y.retain_grad()
        return y.sum()

    with pytest.raises(RuntimeError, match=r"Tensor.retain_grad\(\) inside"):
        grad(function)(torch.rand(3))


def test_backward_inside_a_transform_raises():
    def function(x):
        x.sum().backward()
        return x.sum()

    with pytest.raises(RuntimeError, match="inside a functorch transform"):
        grad(function)(torch.rand(3))


# ---- arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("primals", "tangents", "message"),
    [
        ((1.0,), (1.0,), "primals to only contain Tensors"),
        (((),), ((),), "at least one Tensor"),
        ((torch.ones(1),), torch.ones(1), "same python structure"),
    ],
)
def test_jvp_with_wrong_inputs_raises(primals, tangents, message):
    with pytest.raises(RuntimeError, match=message):
        jvp(torch.sin, primals, tangents)


@pytest.mark.parametrize("output", [None, ()])
def test_transform_of_a_function_without_output_raises(output):
    with pytest.raises(RuntimeError, match="non-empty output"):
        vjp(lambda _: output, torch.ones(1))
    with pytest.raises(RuntimeError, match="non-empty output"):
        jvp(lambda _: output, (torch.ones(1),), (torch.ones(1),))


@pytest.mark.parametrize(
    ("argnums", "message"),
    [(0.0, "int or Tuple"), ([0], "int or Tuple"), (("0",), "must be int"), ((0, -2), "unique")],
)
def test_argnums_of_a_wrong_kind_raise(argnums, message):
    with pytest.raises(RuntimeError, match=message):
        _slice_argnums((1, 2), argnums)
    with pytest.raises(RuntimeError, match=message):
        jacrev(torch.mul, argnums=argnums)(torch.ones(2), torch.ones(2))


@pytest.mark.parametrize("jacobian", [jacrev, jacfwd])
def test_jacobian_of_scalars_in_containers_has_their_structure(jacobian):
    x = torch.tensor(2.0)
    result = jacobian(lambda a, b: (a[0] + a[1] * 2, {"k": b * 3}))((x, x), x)
    assert [float(t) for t in result[0]] == [1.0, 2.0]
    assert [float(t) for t in result[1]["k"]] == [0.0, 0.0]


# ---- forward mode ----------------------------------------------------------------------------


def test_forward_mode_of_dropout_uses_the_mask_of_the_result():
    x, t = torch.rand(100), torch.rand(100)
    torch.manual_seed(3)
    plain = torch.nn.functional.dropout(x, 0.5)
    after = torch.rand(1)
    torch.manual_seed(3)
    with forward_ad.dual_level():
        out = torch.nn.functional.dropout(forward_ad.make_dual(x, t), 0.5)
        primal, tangent = forward_ad.unpack_dual(out)
        assert torch.equal(primal, plain)
        np.testing.assert_allclose(array(tangent), array(t) * 2 * (array(plain) != 0), rtol=1e-6)
    assert torch.equal(torch.rand(1), after)  # the numbers were drawn once


def test_forward_mode_switched_off_drops_tangents():
    x, t = torch.rand(3), torch.rand(3)

    def function(a):
        with forward_ad._set_fwd_grad_enabled(False):
            constant = a**2
        return a**2 - constant

    assert forward_ad._is_fwd_grad_enabled()
    _, tangent = jvp(function, (x,), (t,))
    np.testing.assert_allclose(array(tangent), 2 * array(x) * array(t), rtol=1e-6)
    with forward_ad.dual_level():
        out = function(forward_ad.make_dual(x, t))
        found = forward_ad.unpack_dual(out).tangent
    np.testing.assert_allclose(array(found), 2 * array(x) * array(t), rtol=1e-6)
    assert forward_ad._is_fwd_grad_enabled()


def test_jvp_has_tangents_where_forward_mode_is_off_around_it():
    x, t = torch.rand(3), torch.rand(3)
    with forward_ad._set_fwd_grad_enabled(False):
        _, tangent = jvp(torch.sin, (x,), (t,))
        assert not forward_ad._is_fwd_grad_enabled()
    np.testing.assert_allclose(array(tangent), np.cos(array(x)) * array(t), rtol=1e-6)


# ---- modules as functions --------------------------------------------------------------------


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.count = torch.nn.Buffer(torch.zeros(1))
        self.plain = torch.ones(1)
        self.number = 0.5

    def forward(self, x):
        self.count = self.count + 1
        return x * self.plain + self.count


def test_functional_call_gives_back_what_the_module_assigned():
    module, state = Counter(), {"count": torch.tensor([2.0]), "plain": torch.tensor([3.0])}
    out = functional_call(module, state, torch.ones(1))
    assert float(out) == 6.0 and float(state["count"]) == 3.0
    assert float(module.count) == 0.0 and float(module.plain) == 1.0


def test_functional_call_with_a_new_name_sets_it_for_the_call():
    class Reader(torch.nn.Module):
        def forward(self, x):
            return x + self.extra

    module = Reader()
    assert float(functional_call(module, {"extra": torch.ones(())}, torch.ones(()))) == 2.0
    assert not hasattr(module, "extra")
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'extra'"):
        functional_call(module, {"extra": torch.ones(())}, torch.ones(()), strict=True)


def test_functional_call_with_none_leaves_the_parameter_out():
    module = torch.nn.Linear(1, 1)
    state = {"weight": torch.tensor([[2.0]]), "bias": None}
    assert float(stateless.functional_call(module, state, torch.ones(1, 1))) == 2.0
    assert module.bias is not None


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        ({"number": torch.ones(1)}, TypeError, "attribute `number`: 0.5 is not an instance"),
        ({"inner.weight": torch.ones(1)}, AttributeError, "Counter has no attribute `inner`"),
        ({"count": 1}, TypeError, "1 is not an instance of torch.Tensor"),
    ],
)
def test_functional_call_with_a_wrong_place_or_value_raises(state, error, message):
    with pytest.raises(error, match=message):
        functional_call(Counter(), state, torch.ones(1))


def test_vmap_passes_keyword_arguments_to_every_sample_whole():
    x, y = torch.rand(3), torch.rand(4)
    out = vmap(lambda a, *, b: a * b)(x, b=y)
    np.testing.assert_allclose(array(out), np.outer(array(x), array(y)), rtol=1e-6)


def test_jacrev_of_a_function_that_writes_to_another_argument():
    x, y = torch.rand(2), torch.rand(2)
    jacobian = jacrev(lambda a, b: b.copy_(a * 2))(x, y)
    np.testing.assert_allclose(array(jacobian), 2 * np.eye(2))


@pytest.mark.parametrize("transform", [grad, jacrev])
def test_saved_tensor_hooks_inside_reverse_mode_raise(transform):
    def function(x):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            return x.sin().sum()

    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        transform(function)(torch.rand(3))
    assert vmap(function)(torch.rand(3, 2)).shape == (3,)


def test_the_first_vmap_counts_dimensions_from_the_first_one_only():
    from torch._vmap_internals import _vmap

    with pytest.raises(ValueError, match="Got in_dim=-1 for some input"):
        _vmap(lambda x: x, in_dims=(-1,))(torch.ones(2, 3))
