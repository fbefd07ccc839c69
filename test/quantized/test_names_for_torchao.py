"""Names outside of the quantization packages that torchao asks for when it is imported."""

import warnings

import pytest

import torch
from torch.sparse import _triton_ops_meta as tuned


def test_warn_once_shows_a_message_once_with_the_line_of_the_caller():
    from torch._dynamo.utils import warn_once

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            warn_once("only once, for this test")
    assert [w.filename for w in seen] == [__file__]


def test_tuned_parameters_are_found_by_device_version_and_key():
    version = (0, torch.float16, 0.5)
    tuned.update("bsr_dense_addmm", "some device", version, (1, 2), (3, 4, 5, 6))
    found = tuned.get_meta("bsr_dense_addmm", (1, 2), device_name="some device", version=version)
    assert found == {"GROUP_SIZE_ROW": 3, "SPLIT_N": 4, "num_stages": 5, "num_warps": 6}
    ask = {"device_name": "another", "version": version}
    assert tuned.get_meta("bsr_dense_addmm", (1, 2), **ask) == found
    assert tuned.get_meta("bsr_dense_addmm", (1, 2), **ask, exact=True) is None
    assert tuned.get_meta("bsr_dense_addmm", (1, "*"), **ask) == {(1, 2): found}
    assert tuned.get_meta("bsr_dense_addmm", (1, 3), **ask) is None


def test_minimize_descends_to_the_lowest_neighbour():
    best, gain, value, text = tuned.minimize(
        lambda p: (p["a"] - 5) ** 2 + abs(p["b"] - 3) + 1.0,
        {"a": 1, "b": 1},
        {"a": 2, "b": 2},
        lambda name, value, direction, parameters: value + direction,
    )
    assert best == {"a": 5, "b": 3} and value == 1.0
    assert gain == pytest.approx(100 * (11 - 1) / 11) and "a=5" in text


def test_processor_is_described_by_name():
    found = torch.cpu.get_capabilities()
    assert found["num_logical_cores"] >= found["num_physical_cores"] >= 1
    assert found["avx512_vnni"] == torch.cpu._is_vnni_supported()
    assert found["avx2"] or not found["avx512_f"]


def test_shallow_copy_question_asks_the_subclass():
    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    plain = torch.zeros(2)
    assert torch._has_compatible_shallow_copy_type(plain, torch.ones(3)) is True
    answer = torch._has_compatible_shallow_copy_type(plain.as_subclass(Asked), plain)
    assert answer == "_has_compatible_shallow_copy_type"


def test_operators_of_process_groups_are_found_without_an_import():
    assert torch.ops.c10d.scatter_.default._schema.name == "c10d::scatter_"
    assert torch._C.Tag.pointwise is torch.Tag.pointwise


def test_semi_structured_tensors_live_on_cuda():
    dense = torch.tensor([0.0, 1.0, 0.0, 2.0]).repeat(64, 16).half()
    with pytest.raises(RuntimeError, match="Only CUDA tensors"):
        torch.sparse.to_sparse_semi_structured(dense)


def test_nodes_are_grouped_by_function_name_or_innermost_module():
    from torch.fx.passes.utils.source_matcher_utils import get_source_partitions

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    graph = torch.export.export(model, (torch.randn(2, 4),)).module().graph

    def found(*wanted):
        groups = get_source_partitions(graph, list(wanted))
        return {k: [[n.name for n in p.nodes] for p in v] for k, v in groups.items()}

    assert found(torch.nn.Linear) == {torch.nn.Linear: [["linear"]]}
    assert found(torch.nn.Linear, "linear") == {"linear": [["linear"]]}
    assert found("relu", torch.nn.ReLU) == {"relu": [["relu"]]}
    assert found(torch.nn.Sequential, torch.relu, "Linear") == {}


def test_sizes_and_strides_as_operators():
    x = torch.zeros(2, 3)
    assert torch.ops.aten.sym_size.default(x) == [2, 3]
    assert torch.ops.aten.sym_stride.default(x) == [3, 1]
    assert (torch.ops.aten._efficientzerotensor.default([2]) == 0).all()


def test_attributes_are_assigned_by_kind():
    from torch.export.unflatten import _assign_attr, _AttrKind

    module, one = torch.nn.Module(), torch.ones(1)
    _assign_attr(torch.nn.Parameter(one), module, "a.b.w", _AttrKind.PARAMETER)
    _assign_attr(one, module, "a.buffer", _AttrKind.BUFFER)
    _assign_attr(one, module, "a.kept", _AttrKind.CONSTANT)
    _assign_attr(torch.nn.ReLU(), module, "a.relu", _AttrKind.MODULE)
    assert set(module.state_dict()) == {"a.b.w", "a.buffer"}
    assert module.a.kept is one and isinstance(module.a.relu, torch.nn.ReLU)


def test_patterns_of_frozen_graphs_rewrite_them():
    from torch._inductor import freezing_utils
    from torch._inductor.fx_passes import freezing_patterns, mkldnn_fusion
    from torch._inductor.pattern_matcher import KeywordArg

    def silu(x):
        return x / (torch.exp(-x) + 1)

    seen = []
    pattern = mkldnn_fusion._silu_fusion(KeywordArg("x"))
    count = len(freezing_patterns.pass_patterns[2].patterns)

    @freezing_patterns.register_freezing_graph_pattern(pattern, pass_number=2)
    def note(match, x):
        seen.append(x.name)

    graph = torch.fx.experimental.proxy_tensor.make_fx(silu)(torch.randn(3))
    try:
        freezing_patterns.freezing_passes(graph, [])
    finally:
        freezing_patterns.pass_patterns[2].clear()
    assert seen == ["x_1"] and count == 0
    frozen = torch.ones(1)
    freezing_utils.maybe_set_is_frozen_param(frozen)
    assert not freezing_utils.is_frozen_param(frozen)
    with freezing_utils.enter_freezing():
        freezing_utils.maybe_set_is_frozen_param(frozen)
    assert freezing_utils.is_frozen_param(frozen)


def test_equalization_scales_balance_input_and_weight():
    from torch.ao.quantization.fx import _equalize

    inputs, weights = (
        _equalize.input_equalization_observer(),
        (_equalize.weight_equalization_observer()),
    )
    x = torch.tensor([[0.0, -1.0, 2.0], [4.0, 1.0, 2.0]])
    w = torch.tensor([[1.0, 0.0, 5.0], [2.0, 8.0, 5.0]])
    inputs(x), weights(w)
    scale = _equalize.calculate_equalization_scale(inputs, weights)
    assert scale.tolist() == [0.5, 2.0, 1.0]
    inputs.equalization_scale = scale
    assert [v.item() for v in inputs.calculate_scaled_minmax()] == [-2.0, 2.0]
    with pytest.raises(NotImplementedError, match="observes columns"):
        _equalize.update_obs_for_equalization(None, {"eq": inputs})


def test_kernels_are_launched_in_pieces_of_the_grid():
    from torch.sparse import _triton_ops as ops

    a, b = torch.arange(24).view(4, 3, 2), torch.arange(6).view(3, 2)
    seen = []

    def kernel(grid, *tensors):
        seen.append((grid, [t.flatten()[0].item() for t in tensors], tensors[0].shape))

    ops.launch_kernel(kernel, {a: (0, 1, 2), b: (None, 0, 1)}, (4, 3, 2), (2, 2, 4))
    assert seen == [
        ([2, 2, 2], [0, 0], (2, 2, 2)),
        ([2, 1, 2], [4, 4], (2, 1, 2)),
        ([2, 2, 2], [12, 0], (2, 2, 2)),
        ([2, 1, 2], [16, 4], (2, 1, 2)),
    ]
    blocks = ops.tile_to_blocksize(torch.arange(64).view(8, 8), (2, 4))
    assert blocks.shape == (4, 2, 2, 4) and blocks[0, 1].tolist() == [
        [4, 5, 6, 7],
        [12, 13, 14, 15],
    ]
    bsr, dense = torch.ones(8, 8).to_sparse_bsr((2, 2)), torch.ones(3, 8, 8)
    shapes = [tuple(t.shape) for t in ops.prepare_inputs(bsr, dense)]
    assert shapes == [(3, 5), (3, 16), (3, 16, 2, 2), (3, 8, 8)]
    assert list(ops.ptr_stride_extractor(b))[1:] == [2, 1]
    with pytest.raises(ValueError, match="not broadcastable"):
        ops.broadcast_batch_dims("f", torch.ones(2, 3, 3), torch.ones(4, 3, 3))


def test_convolution_without_padding_is_the_overload_with_numbers():
    class Plain(torch.nn.Module):
        def forward(self, x, w):
            return torch.conv2d(x, w), torch.conv2d(x, w, padding="valid")

    given = (torch.randn(1, 3, 4, 4), torch.randn(2, 3, 1, 1))
    graph = torch.export.export(Plain(), given).module().graph
    called = [str(n.target) for n in graph.nodes if n.op == "call_function"]
    assert called == ["aten.conv2d.default", "aten.conv2d.padding"]
