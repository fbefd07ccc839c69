"""torch.onnx.export: models compute what programs do, by ONNX Runtime and its own kernels."""

import io
from functools import partial

import numpy as np
import pytest

import torch
from torch import nn
from torch.export import Dim

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxscript = pytest.importorskip("onnxscript", reason="the package onnxscript is not installed")
pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")


def operators(program):
    return [node.op_type for node in program.model.graph.all_nodes()]


def check(program, *args, **kwargs):
    """The model's results are those of the module that was exported."""
    expected = program.exported_program.module()(*args, **kwargs)
    leaves = torch.utils._pytree.tree_leaves(expected)
    for wanted, got in zip(leaves, program(*args, **kwargs), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(
            got.float().numpy(), wanted.detach().float().numpy(), rtol=1e-4, atol=1e-5
        )


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.out = nn.Linear(4, 3)

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().mean((2, 3))).softmax(-1)


def test_network_with_varying_batch_runs_on_other_batches():
    program = torch.onnx.export(
        Net().eval(), (torch.randn(2, 1, 8, 8),), dynamic_shapes=({0: "batch"},)
    )
    assert program.model.opset_imports[""] == 20
    assert [str(s) for s in program.model.graph.inputs[0].shape] == ["batch", "1", "8", "8"]
    check(program, torch.randn(2, 1, 8, 8))
    check(program, torch.randn(5, 1, 8, 8))


class Varied(nn.Module):
    """A module of one function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


CALLS = {
    "integer_and_float": (lambda a, b: a + b, (torch.arange(3), torch.randn(3))),
    "integer_division": (lambda a: a / 2, (torch.arange(5),)),
    "sum_of_bool": (lambda a: (a > 0).sum(1), (torch.randn(3, 4),)),
    # Numbers without rounding: the other engine may keep what lies between in single precision.
    "half": (lambda a: a * 2.5 + 1, (torch.tensor([0.5, -1.25, 3.0]).half(),)),
    "where_promotes": (lambda a: torch.where(a > 0, a, 1), (torch.randn(4),)),
    "cat_promotes": (lambda a, b: torch.cat([a, b]), (torch.arange(3), torch.randn(2))),
    "attention": (
        lambda q: nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True),
        (torch.randn(1, 2, 5, 4),),
    ),
    "indexing": (lambda a, i: a[:, i] + a[1:2, 0], (torch.randn(3, 4), torch.tensor([2, 0]))),
    "writes": (lambda a: a.clone().mul_(2).add_(a), (torch.randn(3),)),
    "several_results": (lambda a: a.topk(2), (torch.randn(3, 5),)),
    "returned_input": (lambda a: (a, a, a + 1), (torch.randn(2),)),
    "interpolate": (
        lambda a: nn.functional.interpolate(a, scale_factor=2, mode="bilinear"),
        (torch.randn(1, 2, 4, 4),),
    ),
    "split": (lambda a: a.split([1, 2]), (torch.randn(3, 2),)),
    "layer_norm": (lambda a: nn.functional.layer_norm(a, (4,)), (torch.randn(2, 4),)),
    "masked_fill": (lambda a: a.masked_fill(a < 0, float("-inf")).softmax(-1), (torch.ones(2, 3),)),
    "einsum": (lambda a: torch.einsum("ij,kj->ik", a, a), (torch.randn(2, 3),)),
}


@pytest.mark.parametrize("name", CALLS)
def test_function_as_model_computes_the_same(name):
    function, args = CALLS[name]
    check(torch.onnx.export(Varied(function), args), *args)


@pytest.mark.parametrize("plane", [(8, 6), (7, 5), (1, 1)])
def test_adaptive_pooling_averages_windows_of_any_length(plane):
    program = torch.onnx.export(nn.AdaptiveAvgPool2d((4, 3)), (torch.randn(1, 3, *plane),))
    check(program, torch.randn(1, 3, *plane))


def test_sizes_computed_from_sizes_follow_the_input():
    def reshaped(x):
        rows, columns = x.shape
        return x.reshape(rows * columns // 2, 2) + torch.arange(rows * columns // 2)[:, None]

    program = torch.onnx.export(
        Varied(reshaped), (torch.randn(3, 4),), dynamic_shapes=(({0: Dim("r")},),)
    )
    check(program, torch.randn(3, 4))
    check(program, torch.randn(7, 4))


def test_dynamic_axes_of_older_programs_name_sizes():
    program = torch.onnx.export(
        nn.Linear(3, 2),
        (torch.randn(2, 3),),
        input_names=["data"],
        output_names=["scores"],
        dynamic_axes={"data": {0: "n"}, "scores": {0: "n"}},
    )
    assert program.model.graph.inputs[0].name == "data"
    assert program.model.graph.outputs[0].name == "scores"
    assert str(program.model.graph.inputs[0].shape[0]) == "n"
    check(program, torch.randn(6, 3))


def test_dictionary_at_the_end_of_args_holds_keywords():
    class TwoInputs(nn.Module):
        def forward(self, x, y=None):
            return x if y is None else x + y

    program = torch.onnx.export(TwoInputs(), (torch.ones(2), {"y": torch.ones(2)}))
    assert program(torch.ones(2), y=torch.ones(2))[0].tolist() == [2.0, 2.0]


# ---- control flow


def test_branch_becomes_if_and_both_sides_run():
    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1.0, lambda x: x - 42.0, [x])

    program = torch.onnx.export(Varied(branch), (torch.tensor([1.0, 2.0]),))
    assert "If" in operators(program)
    check(program, torch.tensor([1.0, 2.0]))
    check(program, torch.tensor([-1.0, -2.0]))


def test_while_loop_becomes_loop():
    from torch._higher_order_ops.while_loop import while_loop

    def doubled(i, x):
        return while_loop(lambda i, x: i < 5, lambda i, x: (i + 1, x * 2), (i, x))

    program = torch.onnx.export(Varied(doubled), (torch.tensor(0), torch.ones(2)))
    assert "Loop" in operators(program)
    check(program, torch.tensor(2), torch.ones(2))
    check(program, torch.tensor(7), torch.ones(2))


def test_scan_becomes_scan():
    from torch._higher_order_ops.scan import scan

    def running(start, xs):
        return scan(lambda c, x: (c + x, (c * x).clone()), start, xs)

    args = (torch.zeros(2), torch.randn(4, 2))
    program = torch.onnx.export(Varied(running), args)
    assert "Scan" in operators(program)
    check(program, *args)


# ---- newer operators


def test_attention_and_rms_norm_are_single_operators_in_opset_23():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.RMSNorm(4)

        def forward(self, q):
            return self.norm(nn.functional.scaled_dot_product_attention(q, q, q))

    program = torch.onnx.export(Block(), (torch.randn(1, 2, 3, 4),), opset_version=23)
    assert {"Attention", "RMSNormalization"} <= set(operators(program))
    check(program, torch.randn(1, 2, 3, 4))


def test_symbolic_operator_becomes_a_node_of_its_domain():
    def custom(x):
        return torch.onnx.ops.symbolic(
            "my.domain::Twice", (x,), {"scale": 2.0}, dtype=x.dtype, shape=x.shape, version=3
        )

    program = torch.onnx.export(Varied(custom), (torch.ones(2),), optimize=False)
    (node,) = [n for n in program.model.graph if n.op_type == "Twice"]
    assert (node.domain, node.attributes["scale"].value) == ("my.domain", 2.0)
    assert program.model.opset_imports["my.domain"] == 3


# ---- translations


def test_custom_translation_is_preferred():
    op = onnxscript.opset18
    program = torch.onnx.export(
        Varied(lambda x, y: x + y),
        (torch.ones(2), torch.ones(2)),
        custom_translation_table={torch.ops.aten.add.Tensor: lambda a, b: op.Sub(a, b)},
    )
    assert operators(program) == ["Sub"]


def test_operator_without_translation_raises_and_names_it():
    @torch.library.custom_op("onnx_export_test::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    unknown.register_fake(lambda x: torch.empty_like(x))
    with pytest.raises(torch.onnx.OnnxExporterError, match="unknown"):
        torch.onnx.export(Varied(unknown), (torch.ones(2),))


# ---- files


def test_saved_model_is_read_by_onnx_and_weights_lie_beside_it(tmp_path):
    path = tmp_path / "net.onnx"
    torch.onnx.export(Net().eval(), (torch.randn(1, 1, 8, 8),), path)
    assert (tmp_path / "net.onnx.data").exists()
    onnx.checker.check_model(str(path))
    buffer = io.BytesIO()
    torch.onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),)).save(buffer)
    onnx.checker.check_model(onnx.load_from_string(buffer.getvalue()))


def test_weights_can_be_left_out_or_be_inputs(tmp_path):
    program = torch.onnx.export(nn.Linear(2, 2), (torch.ones(1, 2),))
    program.save(tmp_path / "inputs.onnx", keep_initializers_as_inputs=True)
    graph = onnx.load(str(tmp_path / "inputs.onnx")).graph
    assert {"weight", "bias"} <= {i.name for i in graph.input}
    program.save(tmp_path / "none.onnx", include_initializers=False)
    assert len(onnx.load(str(tmp_path / "none.onnx")).graph.initializer) == 0
    assert len(program.model.graph.inputs) == 1


def test_weights_can_be_replaced():
    program = torch.onnx.export(nn.Linear(2, 1, bias=False), (torch.ones(1, 2),))
    program.apply_weights({"weight": torch.tensor([[3.0, 4.0]])})
    assert program(torch.ones(1, 2))[0].item() == 7.0


# ---- reports and checks


def test_report_is_written_also_when_an_export_fails(tmp_path):
    torch.onnx.export(
        nn.Linear(2, 2), (torch.ones(1, 2),), report=True, verify=True, artifacts_dir=tmp_path
    )
    (report,) = tmp_path.glob("*_success.md")
    assert "Gemm" in report.read_text() and "Verification" in report.read_text()

    def data_dependent(x):
        return x + 1 if x.sum() > 0 else x

    with pytest.raises(torch.onnx.OnnxExporterError, match="Failed to export"):
        torch.onnx.export(
            Varied(data_dependent), (torch.ones(2),), report=True, artifacts_dir=tmp_path
        )
    assert list(tmp_path.glob("*_failed.md"))


def test_verification_measures_differences():
    from torch.onnx.verification import VerificationInfo, verify_onnx_program

    info = VerificationInfo.from_tensors("y", torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    assert (info.max_abs_diff, info.max_rel_diff) == (0.5, 0.25)
    assert info.abs_diff_hist[0].sum() == 2
    program = torch.onnx.export(Net().eval(), (torch.randn(1, 1, 8, 8),))
    found = verify_onnx_program(program, compare_intermediates=True)
    assert found and all(i.max_abs_diff < 1e-4 for i in found)


def test_observer_finds_arguments_and_sizes_that_vary():
    net = nn.Linear(3, 2)
    observer = torch.onnx.InputObserver()
    with observer(net):
        net(torch.randn(2, 3))
        net(torch.randn(5, 3))
    assert observer.num_obs() == 2
    assert observer.infer_dynamic_shapes() == ({0: Dim.DYNAMIC},)
    program = torch.onnx.export(
        net, observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes()
    )
    assert all(row["SUCCESS"] for row in observer.check_discrepancies(program))


def test_exportable_module_says_how_it_is_exported():
    class Mine(torch.onnx.ExportableModule):
        def forward(self, x):
            return x * 2

        def example_arguments(self):
            return (torch.ones(2, 3),), None

        def dynamic_shapes(self):
            return ({0: "n"},)

        def output_names(self):
            return ["twice"]

    program = Mine().to_onnx()
    assert program.model.graph.outputs[0].name == "twice"
    assert program(torch.ones(4, 3))[0].shape == (4, 3)


class Recurrent(nn.Module):
    """Tokens through a recurrent network of two layers in two directions."""

    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.network = kind(6, 5, 2, batch_first=True, bidirectional=True)
        self.LayerNorm = nn.LayerNorm(10)

    def forward(self, tokens):
        return self.LayerNorm(self.network(self.embedding(tokens))[0])


RELU = partial(nn.RNN, nonlinearity="relu")


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN, RELU])
def test_recurrent_networks_compute_the_same(kind):
    program = torch.onnx.export(Recurrent(kind).eval(), (torch.randint(0, 20, (2, 4)),))
    check(program, torch.randint(0, 20, (2, 4)))


def test_sizes_of_two_inputs_that_depend_on_each_other_are_translated():
    class Views(nn.Module):
        def forward(self, x, y):
            return y.view(x.shape[0], -1) * 2

    free = {0: Dim.DYNAMIC, 1: Dim.DYNAMIC}
    program = torch.onnx.export(
        Views(), (torch.ones(2, 8), torch.ones(2, 8)), dynamic_shapes={"x": free, "y": free}
    )
    check(program, torch.randn(3, 4), torch.randn(6, 2))
