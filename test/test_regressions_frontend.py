"""Mistakes of the Python front end that were found by running the same programs on PyTorch, each as
the smallest program that showed it."""

import copy
import glob
import importlib
import json
import pickle
import sys
import warnings

import pytest

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations

# ---- parametrizations.orthogonal


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5), (2, 4, 4)])
@pytest.mark.parametrize("how", ["matrix_exp", "cayley", "householder", None])
@pytest.mark.parametrize("base", [True, False])
def test_orthogonal_weight_is_orthogonal_after_training(shape, how, base):
    torch.manual_seed(0)
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.randn(shape, dtype=torch.float64))
    parametrizations.orthogonal(layer, orthogonal_map=how, use_trivialization=base)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    target = torch.randn(shape, dtype=torch.float64)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (layer.weight - target).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    tall = layer.weight.detach()
    tall = tall.mT if shape[-2] < shape[-1] else tall
    unit = torch.eye(min(shape[-2:]), dtype=torch.float64).expand(*shape[:-2], -1, -1)
    torch.testing.assert_close(tall.mT @ tall, unit)


def test_orthogonal_keeps_an_orthogonal_weight_and_takes_assignments():
    layer = nn.Linear(4, 4, bias=False)
    start = nn.init.orthogonal_(torch.empty(4, 4))
    layer.weight = nn.Parameter(start.clone())
    parametrizations.orthogonal(layer)
    torch.testing.assert_close(layer.weight, start)
    assert list(layer.state_dict()) == [
        "parametrizations.weight.original",
        "parametrizations.weight.0.base",
    ]
    other = nn.init.orthogonal_(torch.empty(4, 4))
    layer.weight = other
    torch.testing.assert_close(layer.weight, other)
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
        layer.weight = torch.ones(2, 2)


def test_orthogonal_refuses_what_it_cannot_do():
    fixed = parametrizations.orthogonal(
        nn.Linear(3, 3), orthogonal_map="cayley", use_trivialization=False
    )
    with pytest.raises(NotImplementedError, match="not possible to assign"):
        fixed.weight = torch.eye(3)
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        parametrizations.orthogonal(nn.Linear(2, 2), orthogonal_map="qr")
    layer = nn.Module()
    layer.weight = nn.Parameter(torch.randn(3, 3, dtype=torch.complex64))
    with pytest.raises(ValueError, match="does not support complex"):
        parametrizations.orthogonal(layer, orthogonal_map="householder")


# ---- modules


def test_cross_map_lrn_has_the_gradient_programs_were_trained_with():
    x = torch.arange(1.0, 8.0, dtype=torch.float64).view(1, 7, 1, 1).requires_grad_()
    layer = nn.CrossMapLRN2d(3, alpha=0.3, beta=0.75, k=1.0)
    y = layer(x)
    scale = (x / y).pow(1 / 0.75).detach().flatten()
    # The window of the value has a channel in its middle, and the first channel.
    sums = ((scale - 1) * 3 / 0.3).round().tolist()
    assert sums == [5, 14, 30, 51, 78, 111, 86]
    (grad,) = torch.autograd.grad(y.sum(), x)
    ratio = (y.detach().flatten() / scale).tolist()
    for j in range(7):
        window = sum(ratio[max(0, j - 2) : j + 1])
        want = scale[j].item() ** -0.75 - 2 * 0.75 * 0.3 / 3 * (j + 1) * window
        assert grad.flatten()[j].item() == pytest.approx(want, rel=1e-12)


def test_lazy_module_can_be_copied():
    layer = copy.deepcopy(nn.LazyLinear(3, dtype=torch.float64))
    assert layer(torch.ones(2, 5, dtype=torch.float64)).shape == (2, 3)


def test_parameter_dict_takes_only_strings():
    with pytest.raises(TypeError, match="not a string"):
        nn.ParameterDict({3: torch.ones(1)})


def test_loading_into_meta_parameters_warns():
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter"):
        layer.load_state_dict(nn.Linear(2, 2).state_dict())


def test_names_of_modules_have_no_dots():
    with pytest.raises(KeyError, match=r'contain "\.", got: a\.b'):
        nn.Module().add_module("a.b", nn.ReLU())


def test_functional_call_names_tied_weights():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    given = {"0.weight": torch.eye(2), "1.weight": torch.ones(2, 2)}
    with pytest.raises(ValueError, match=r"keys \['0.weight', '1.weight'\], which are tied"):
        torch.func.functional_call(model, given, (torch.ones(1, 2),))
    with pytest.raises(TypeError, match="is not an instance of"):
        torch.func.functional_call(model, {"0.weight": 1}, (torch.ones(1, 2),))
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Sequential"):
        torch.func.functional_call(model, {"q": torch.ones(1)}, (torch.ones(1, 2),), strict=True)


def test_convolution_weights_change_their_memory_format():
    model = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Linear(2, 2))
    nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last)
    assert model[0].weight.is_contiguous(memory_format=torch.channels_last)
    deep = nn.Conv3d(2, 3, 2)
    nn.utils.convert_conv3d_weight_memory_format(deep, torch.channels_last_3d)
    assert deep.weight.is_contiguous(memory_format=torch.channels_last_3d)


@pytest.mark.parametrize(
    ("settings", "heads", "drops"),
    [
        ({}, 2, True),
        ({"activation": "gelu"}, 2, True),
        ({"activation": F.silu}, 2, False),
        ({"norm_first": True}, 2, False),
        ({"bias": False}, 2, False),
        ({}, 1, False),
    ],
)
def test_encoder_leaves_padding_out_only_where_programs_expect_it(settings, heads, drops):
    layer = nn.TransformerEncoderLayer(8, heads, 16, batch_first=True, **settings)
    encoder = nn.TransformerEncoder(layer, 1).eval()
    padding = torch.tensor([[False, False, True], [False, False, False]])
    with torch.no_grad():
        out = encoder(torch.randn(2, 3, 8), src_key_padding_mask=padding)
    assert encoder.use_nested_tensor is drops
    assert bool((out[0, 2] == 0).all()) is drops


# ---- messages


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (
            lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.float64),
            RuntimeError,
            "expected m1 and m2 to have the same dtype, but got: float != double",
        ),
        (
            lambda: torch.ones(2, 2) @ torch.ones(2, dtype=torch.int32),
            RuntimeError,
            "addmv input tensors must have the same dtype, but got Int, Float, and Int",
        ),
        (
            lambda: torch.addmm(*[torch.ones(2, 2)] * 2, torch.ones(2, 2).half()),
            RuntimeError,
            "self and mat2 must have the same dtype, but got Float and Half",
        ),
        (
            lambda: F.linear(torch.ones(2, 2), torch.ones(2, 2).bfloat16()),
            RuntimeError,
            "but got: float != c10::BFloat16",
        ),
        (
            lambda: F.linear(torch.ones(2, 3), torch.ones(4, 3), torch.ones(5)),
            RuntimeError,
            r"The expanded size of the tensor \(4\) must match the existing size \(5\) at "
            r"non-singleton dimension 1.  Target sizes: \[2, 4\].  Tensor sizes: \[5\]",
        ),
        (
            lambda: torch.ones(2, 3) + torch.ones(4, 4),
            RuntimeError,
            r"tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1",
        ),
        (
            lambda: nn.Conv2d(1, 1, 1)(torch.ones(1, 1, 2, 2, dtype=torch.uint8)),
            RuntimeError,
            r"Input type \(unsigned char\) and bias type \(float\)",
        ),
        (
            lambda: torch.ones(2).masked_fill(torch.ones(2), 0.0),
            RuntimeError,
            "but got mask with dtype float",
        ),
        (
            lambda: F.nll_loss(torch.ones(3), torch.tensor([0, 1])),
            ValueError,
            "For 1D input, 1D target must have size 1, but got target size: 2",
        ),
        (lambda: nn.RNN(2, 3)(torch.ones(1, 2, 2, 2)), ValueError, "got 4D tensor instead"),
    ],
)
def test_messages_have_the_phrases_programs_look_for(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_unused_input_is_named_by_its_place():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 1 appears to not"):
        torch.autograd.grad(a * 2, [a, b])


def test_modules_raise_only_attribute_error_for_unknown_names():
    # pickle looks a function without a module up in every module there is.
    for name in ("torch._VF", "torch.distributed", "torch.fx", "torch.onnx", "torch.cuda.nccl"):
        importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("torch", "functorch"):
            # Anything but AttributeError comes through here.
            getattr(module, "<no such name>", None)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(lambda: 1)


# ---- products with a result of another dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_products_keep_a_wider_result(dtype):
    a, b = torch.randn(3, 4).to(dtype), torch.randn(4, 5).to(dtype)
    c = torch.randn(3, 5).to(dtype)
    wide = a.float() @ b.float()
    assert torch.equal(torch.mm(a, b, out_dtype=torch.float32), wide)
    assert torch.equal(torch.mm(a, b, torch.float32), wide)
    assert torch.equal(torch.bmm(a[None], b[None], out_dtype=torch.float32), wide[None])
    summed = torch.addmm(c.float(), a.float(), b.float(), beta=2, alpha=0.5)
    got = torch.addmm(c, a, b, out_dtype=torch.float32, beta=2, alpha=0.5)
    assert torch.equal(got, summed)
    got = torch.baddbmm(c[None].float(), a[None], b[None], torch.float32)
    torch.testing.assert_close(got[0], c.float() + wide)
    assert torch.mm(a, b, out_dtype=dtype).dtype == dtype


def test_products_refuse_other_result_dtypes():
    a = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="out_dtype must be the same as input dtype or fp32"):
        torch.mm(a, a, out_dtype=torch.float64)
    with pytest.raises(RuntimeError, match="input dtypes must be the same"):
        torch.mm(a, a.half(), out_dtype=torch.float32)
    with pytest.raises(RuntimeError, match="self dtype must match"):
        torch.addmm(a.double(), a.half(), a.half(), out_dtype=torch.float32)


def test_products_with_a_wider_result_have_gradients():
    a = torch.randn(2, 3).half().requires_grad_()
    torch.mm(a, torch.ones(3, 2).half(), out_dtype=torch.float32).sum().backward()
    assert torch.equal(a.grad, torch.full((2, 3), 2.0).half())


# ---- profiler and TensorBoard


def test_profiler_recording_can_be_interrupted():
    cpu = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=cpu) as recorded:
        torch.ones(2).exp()
        recorded.toggle_collection_dynamic(False, cpu)
        torch.ones(2).cos()
        recorded.toggle_collection_dynamic(True, cpu)
        torch.ones(2).sin()
    names = [event.name for event in recorded.events()]
    assert "aten::exp" in names and "aten::sin" in names and "aten::cos" not in names


def test_memory_timeline_is_written(tmp_path):
    with pytest.raises(ValueError, match="required for memory profiling"):
        torch.profiler.profile().export_memory_timeline(str(tmp_path / "a.json"))
    settings = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with torch.profiler.profile(**settings) as recorded:
        kept = torch.ones(1000)
        kept = kept + 1
    recorded.export_memory_timeline(str(tmp_path / "a.json"), "cpu")
    moments, held = json.loads((tmp_path / "a.json").read_text())
    assert len(moments) == len(held) and max(row[1] for row in held) >= 4000
    recorded.export_memory_timeline(str(tmp_path / "a.html"), "cpu")
    assert "<svg" in (tmp_path / "a.html").read_text()


def test_execution_trace_has_a_node_for_each_operator(tmp_path):
    path = tmp_path / "trace.json"
    observer = torch.profiler.ExecutionTraceObserver().register_callback(str(path))
    observer.start()
    torch.ones(2, 3).exp()
    observer.stop()
    observer.unregister_callback()
    nodes = json.loads(path.read_text())["nodes"]
    found = [node for node in nodes if node["name"] == "aten::exp"]
    assert len(found) == 1 and found[0]["inputs"]["shapes"][0] == [2, 3]
    assert {node["ctrl_deps"] for node in nodes} <= {node["id"] for node in nodes}


def test_graph_of_a_model_names_modules_and_edges(tmp_path):
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard._graph import graph_of

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 3)
            self.rest = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))

        def forward(self, x):
            h = self.first(x)
            return self.rest(h * 2) + h

    message, nodes = graph_of(Residual(), torch.ones(2, 3))
    edges = {name: sources for name, _, sources, _ in nodes}
    assert edges["Residual/rest/0"] == ["Residual/first"]
    assert sorted(edges["output/output.1"]) == ["Residual/first", "Residual/rest/1"]
    assert b"Residual/rest/1" in message and b"Linear" in message
    writer = SummaryWriter(str(tmp_path))
    writer.add_graph(Residual(), torch.ones(2, 3))
    writer.close()
    (file,) = glob.glob(str(tmp_path / "*"))
    with open(file, "rb") as events:
        assert b"Residual/first" in events.read()


def test_packed_sequences_convert_to_small_integers():
    packed = nn.utils.rnn.pack_sequence([torch.tensor([1.0, 2.0])])
    kinds = [packed.byte(), packed.char(), packed.short()]
    assert [p.data.dtype for p in kinds] == [torch.uint8, torch.int8, torch.int16]


def test_flattening_rnn_weights_makes_them_dense():
    layer = nn.LSTM(3, 4)
    layer.weight_ih_l0.data = layer.weight_ih_l0.data.t().contiguous().t()
    before = layer(torch.ones(2, 1, 3))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.flatten_parameters()
    assert layer.weight_ih_l0.is_contiguous()
    torch.testing.assert_close(layer(torch.ones(2, 1, 3))[0], before)


# ---- counts of instructions

PROFILE = """\
version: 1
events: Ir
fn=(1) main
0 5
+3 10
cfn=(2) helper
calls=2 0
0 40
fn=(2)
0 30
* 10
"""


def test_callgrind_files_are_read(tmp_path):
    from torch.utils.benchmark.utils.callgrind import _read_profile

    (tmp_path / "out").write_text(PROFILE)
    exclusive, inclusive = _read_profile(tmp_path / "out")
    assert exclusive == {"main": 15, "helper": 40}
    assert inclusive == {"main": 55, "helper": 40}


def test_function_counts_add_subtract_and_filter():
    from torch.utils.benchmark import FunctionCount, FunctionCounts

    a = FunctionCounts([FunctionCount(5, "f"), FunctionCount(2, "g:dictobject.c")], False)
    b = FunctionCounts([FunctionCount(3, "f"), FunctionCount(4, "h")], False)
    assert list(a + b) == [(8, "f"), (4, "h"), (2, "g:dictobject.c")]
    assert list(a - b) == [(-4, "h"), (2, "f"), (2, "g:dictobject.c")]
    assert a.sum() == 7 and a.denoise().sum() == 5 and len(a[:1]) == 1
    assert list((a * 2).transform(lambda name: name[0])) == [(10, "f"), (4, "g")]
    with pytest.raises(AssertionError, match="inclusive and exclusive"):
        a + FunctionCounts([], True)


def test_counting_refuses_values_it_cannot_hand_over():
    timer = torch.utils.benchmark.Timer("x", globals={"x": object()})
    with pytest.raises((ValueError, OSError), match=r"CopyIfCallgrind|valgrind"):
        timer.collect_callgrind()


@pytest.mark.parametrize("kind", ["RNN", "LSTM"])
def test_autocast_runs_recurrent_networks_in_low_precision(kind):
    layer = getattr(nn, kind)(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, state = layer(torch.ones(2, 1, 4))
        slope = F.prelu(torch.ones(2, 4), torch.ones(1))
        gated = nn.GRU(4, 4)(torch.ones(2, 1, 4))[0]
    assert out.dtype == slope.dtype == torch.bfloat16 and gated.dtype == torch.float32
    assert all(part.dtype == torch.bfloat16 for part in (state if kind == "LSTM" else [state]))
    out.float().sum().backward()
    assert layer.weight_ih_l0.grad.dtype == torch.float32
