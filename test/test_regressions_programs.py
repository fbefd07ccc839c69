"""Programs written for PyTorch that behaved differently here: what users' scripts and the libraries
beside them rely on without a document saying so. Each test failed before its repair."""

import importlib.metadata
import math
import pathlib
import subprocess
import sys

import pytest
from tensor_support import OperatorLog

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import grad, vmap
from torch.utils import data
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

ROOT = pathlib.Path(__file__).resolve().parents[1]


# ---- dispatch keys of devices that are not here


def test_keys_of_absent_devices_have_names_and_add_nothing():
    key = torch._C.DispatchKey.AutocastXPU
    assert torch._C._dispatch_key_name(key) == "AutocastXPU"
    assert torch._C._dispatch_key_parse("MPS") == torch._C.DispatchKey.MPS
    assert torch._C._dispatch_key_for_device("xpu") == "XPU"
    cpu = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
    both = cpu | torch._C.DispatchKeySet(key)
    assert both == cpu and not both.has(key)
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
        assert torch.ones(2).add(1).tolist() == [2, 2]


def test_kernel_for_an_absent_device_is_accepted_and_never_called():
    library = torch.library.Library("programs_absent", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.define("seven() -> int")
    library.impl("twice", lambda x: x * 2, "CPU")
    library.impl("twice", lambda x: x * 3, "XPU")
    library.impl("seven", lambda: 7, "CompositeImplicitAutograd")
    library.impl("seven", lambda: 8, "AutogradMPS")
    torch.library.impl("programs_absent::twice", "mps", lambda x: x, lib=library)
    assert torch.ops.programs_absent.twice(torch.ones(1)).item() == 2
    assert torch.ops.programs_absent.seven() == 7
    library._destroy()


def test_unknown_key_is_refused():
    with pytest.raises(RuntimeError, match="could not parse dispatch key"):
        torch._C._dispatch_key_parse("Toaster")


# ---- generic classes


def test_datasets_take_type_parameters():
    assert data.StackDataset[int].__origin__ is data.StackDataset
    assert data.ChainDataset[int].__origin__ is data.ChainDataset
    assert data.IterableDataset[int, str].__args__ == (int, str)

    class Mine(data.IterableDataset[int]):
        def __iter__(self):
            return iter([1, 2])

    assert list(Mine[str]()) == [1, 2]
    assert nn.DataParallel[nn.Linear].__origin__ is nn.DataParallel


# ---- names of public modules


@pytest.mark.parametrize(
    "name",
    """torch.optim torch.nn torch.nn.utils torch.nn.init torch.nn.attention torch.backends.cudnn
    torch.backends.mkl torch.backends.openmp torch.cuda.nvtx torch.quasirandom torch.random
    torch.utils.data.dataset torch.nn.utils.parametrize torch.fft torch.linalg torch.special
    torch.cpu torch.jit torch.library""".split(),
)
def test_public_modules_do_not_show_helpers(name):
    module = __import__(name, fromlist=["_"])
    helpers = {"Any", "install", "nullcontext", "say_once", "find_definition"}
    assert not helpers & set(dir(module))


# ---- what comes along with the package


def test_metadata_names_what_comes_along_and_import_does_not_use_it():
    sys.path.insert(0, str(ROOT / "tools" / "build"))
    try:
        import metadata
    finally:
        sys.path.pop(0)
    text = metadata.metadata()
    along = ["filelock", "fsspec", "jinja2", "networkx", "sympy", "typing_extensions"]
    for name in along:
        assert f"Requires-Dist: {name.replace('_', '-')}" in text
    code = (
        f"import sys; sys.path[:] = {sys.path}; import torch; "
        f"print([n for n in {along} if n in sys.modules])"
    )
    command = [sys.executable, "-S", "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
    assert importlib.metadata.version("torch").startswith("2.")


# ---- numbers out of a narrow type's range


@pytest.mark.parametrize("dtype, name", [(torch.half, "Half"), (torch.bfloat16, "BFloat16")])
def test_factor_out_of_range_raises(dtype, name):
    x = torch.ones(3, dtype=dtype)
    text = f"value cannot be converted to type c10::{name} without overflow"
    for call in (
        lambda: torch.add(x, x, alpha=1e39),
        lambda: torch.sub(x, 2, alpha=1e39),
        lambda: torch.rsub(x, x, alpha=1e39),
        lambda: torch._foreach_add([x], [x], alpha=1e39),
        lambda: torch.add(x[:0], 1, alpha=1e39),
    ):
        with pytest.raises(RuntimeError, match=text):
            call()
    assert torch.add(x, x, alpha=float("inf")).isinf().all()
    assert torch.add(x, x, alpha=1000).tolist() == [float(torch.tensor(1001, dtype=dtype))] * 3


@pytest.mark.parametrize("make", [torch.linspace, torch.logspace])
def test_ends_out_of_range_raise(make):
    with pytest.raises(RuntimeError, match="type c10::Half without overflow"):
        make(0, 1e6, 3, dtype=torch.half)
    with pytest.raises(RuntimeError, match="type uint8_t without overflow"):
        make(0, 300.0, 3, dtype=torch.uint8)
    assert make(0, 1e6, 0, dtype=torch.half).numel() == 0
    assert make(1, 1e6, 1, dtype=torch.half).numel() == 1


def test_linspace_of_unsigned_integers_wraps_its_ends():
    assert torch.linspace(-1, 5, 3, dtype=torch.uint8).tolist() == [255, 130, 5]


@pytest.mark.parametrize(
    "dtype, low, high, text",
    [
        (torch.half, 0, 1e6, "to is out of bounds for c10::Half"),
        (torch.half, -1e6, 0, "from is out of bounds for c10::Half"),
        (torch.half, -60000, 60000, "exceed the limit"),
        (torch.float32, 0, float("inf"), "to is out of bounds for float"),
        (torch.float64, float("nan"), 1, "from is out of bounds for double"),
        (torch.float32, 1, 0, "expects to return a"),
    ],
)
def test_uniform_bounds_out_of_range_raise(dtype, low, high, text):
    with pytest.raises(RuntimeError, match=text):
        torch.ones(3, dtype=dtype).uniform_(low, high)


def test_softshrink_beyond_the_range_raises():
    with pytest.raises(RuntimeError, match=r"range \[0, 65504\] for input dtype Half"):
        F.softshrink(torch.ones(2, dtype=torch.half), 1e6)


# ---- derivatives of batched derivatives


@pytest.mark.parametrize(
    "loss",
    [F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_second_derivative_through_vmap_of_a_loss(loss, reduction):
    torch.manual_seed(0)
    x = torch.randn(3, 5, 2, dtype=torch.double)
    y = torch.randn(3, 5, 4, dtype=torch.double).sign()

    def step(w, x, y):
        return grad(lambda w: loss(F.linear(x, w), y, reduction=reduction))(w)

    w = torch.randn(4, 2, dtype=torch.double, requires_grad=True)
    (ours,) = torch.autograd.grad(vmap(step, (None, 0, 0))(w, x, y).pow(2).sum(), w)
    total = torch.zeros_like(w)
    for a, b in zip(x, y, strict=True):
        (g,) = torch.autograd.grad(
            loss(F.linear(a, w), b, reduction=reduction), w, create_graph=True
        )
        total += torch.autograd.grad(g.pow(2).sum(), w)[0]
    torch.testing.assert_close(ours, total)


# ---- tensors with __torch_dispatch__


class Pair(torch.Tensor):
    """Two tensors; every operator acts on both."""

    @staticmethod
    def __new__(cls, a, b):
        return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, strides=a.stride())

    def __init__(self, a, b):
        self.a, self.b = a, b

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        first = func(*tree_map_only(Pair, lambda p: p.a, args),
                     **tree_map_only(Pair, lambda p: p.a, kwargs))  # fmt: skip
        second = func(*tree_map_only(Pair, lambda p: p.b, args),
                      **tree_map_only(Pair, lambda p: p.b, kwargs))  # fmt: skip
        left, spec = tree_flatten(first)
        right, _ = tree_flatten(second)
        made = [Pair(x, y) if torch.is_tensor(x) else x for x, y in zip(left, right, strict=True)]
        return tree_unflatten(made, spec)


@pytest.mark.parametrize("function", [torch.relu, torch.exp, torch.sigmoid, torch.tanh])
def test_saved_outputs_of_wrapper_tensors_keep_their_class(function):
    a = torch.linspace(-1, 1, 6).reshape(2, 3)
    x = Pair(a.clone(), a * 2).requires_grad_()
    function(x).pow(2).sum().backward()
    for part, values in (("a", a), ("b", a * 2)):
        plain = values.clone().requires_grad_()
        function(plain).pow(2).sum().backward()
        torch.testing.assert_close(getattr(x.grad, part), plain.grad)


def test_wrapper_tensor_as_parameter_trains():
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    start = layer.weight.detach().clone()
    layer.weight = nn.Parameter(Pair(start.clone(), start * 2))
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    F.relu(layer(torch.ones(4, 3))).sum().backward()
    optimizer.step()
    assert isinstance(layer.weight, Pair)
    for part, scale in (("a", 1), ("b", 2)):
        plain = nn.Linear(3, 2)
        plain.load_state_dict({"weight": start * scale, "bias": torch.zeros(2)})
        assert getattr(layer.weight, part).shape == plain.weight.shape


@pytest.mark.parametrize(
    "shape, bias, expected",
    [
        ((2, 3), True, ["t.default", "addmm.default"]),
        ((2, 3), False, ["t.default", "mm.default"]),
        ((4, 2, 3), True, ["view.default", "t.default", "addmm.default", "view.default"]),
        ((3,), True, ["view.default", "t.default", "addmm.default", "view.default"]),
        ((0, 3), True, ["t.default", "addmm.default"]),
        ((4, 2, 3), False, ["t.default", "view.default", "mm.default", "_unsafe_view.default"]),
    ],
)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_linear_reaches_handlers_as_its_parts(shape, bias, expected, needs_grad):
    x = torch.randn(shape, requires_grad=needs_grad)
    weight, b = torch.randn(5, 3), torch.randn(5) if bias else None
    with OperatorLog() as log:
        y = F.linear(x, weight, b)
    order = (lambda names: sorted(names)) if len(shape) != 2 else list
    assert order(log.names) == order([f"aten.{name}" for name in expected])
    torch.testing.assert_close(y, F.linear(x, weight, b))
    assert y.requires_grad == needs_grad


def test_linear_of_strided_input_under_a_mode_agrees():
    x = torch.randn(3, 2, 4).permute(2, 1, 0)
    weight, bias = torch.randn(5, 3), torch.randn(5)
    with OperatorLog():
        y = F.linear(x, weight, bias)
    torch.testing.assert_close(y, F.linear(x, weight, bias))


def test_flop_counter_without_a_depth_lists_every_module():
    from torch.utils.flop_counter import FlopCounterMode

    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Linear(4, 2)))
    with FlopCounterMode(display=False, depth=None) as counter:
        model(torch.ones(1, 3))
    assert counter.get_total_flops() == 2 * (3 * 4 + 4 * 2)
    assert "Sequential.1.0" in counter.get_table()


# ---- control flow under its modules


def test_control_flow_operators_have_modules():
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.cond import cond

    x = torch.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(associative_scan(torch.add, x, 0), x.cumsum(0))
    assert cond is torch.cond


# ---- summaries for plugins of TensorBoard


def fields(message):
    """The fields of a protocol buffer message: number -> values, bytes or integers."""
    found, at = {}, 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(message):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        else:
            size = {1: 8, 5: 4}.get(kind) or varint()
            value, at = message[at : at + size], at + size
        found.setdefault(key >> 3, []).append(value)
    return found


def values_in(folder):
    """tag -> (fields of its value) of the event file in a folder."""
    (path,) = pathlib.Path(folder).glob("events.*")
    content, at, found = path.read_bytes(), 0, {}
    while at < len(content):
        size = int.from_bytes(content[at : at + 8], "little")
        event = fields(content[at + 12 : at + 12 + size])
        at += 16 + size
        for summary in event.get(5, []):
            for value in fields(summary).get(1, []):
                value = fields(value)
                found[value[1][0].decode()] = value
    return found


def numbers_of(value):
    tensor = fields(value[8][0])
    shape = [fields(dim).get(1, [0])[0] for dim in fields(tensor[2][0]).get(2, [])]
    kind = torch.float32 if tensor[1] == [1] else torch.int64
    return torch.frombuffer(bytearray(tensor[4][0]), dtype=kind).reshape(shape)


def plugin_of(value):
    plugin = fields(fields(value[9][0])[1][0])
    return plugin[1][0].decode(), plugin.get(2, [b""])[0]


def test_summaries_of_plugins(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    labels, scores = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([0.1, 0.9, 0.8, 0.6, 0.3])
    with SummaryWriter(tmp_path) as writer:
        writer.add_pr_curve("pr", labels, scores, 0, num_thresholds=5)
        writer.add_tensor("whole", torch.arange(3), 2)
        writer.add_mesh("mesh", torch.ones(1, 4, 3), faces=torch.zeros(1, 2, 3, dtype=torch.long))
        writer.add_audio("sound", torch.tensor([-1.0, 0.0, 1.0]), sample_rate=8000)
        writer.add_custom_scalars_marginchart(["a", "b", "c"])
        writer.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1, 2, 3], [1, 1, 2])
        with pytest.raises(ValueError, match="bucket_limits"):
            writer.add_histogram_raw("raw", 0, 3, 4, 6, 14, [1, 2], [1, 1, 2])
    found = values_in(tmp_path)
    expected = [[3, 3, 2, 2, 0], [2, 1, 1, 0, 0], [0, 1, 1, 2, 2], [0, 0, 1, 1, 3],
                [0.6, 0.75, 2 / 3, 1, 0], [1, 1, 2 / 3, 2 / 3, 0]]  # fmt: skip
    torch.testing.assert_close(numbers_of(found["pr"]), torch.tensor(expected))
    assert plugin_of(found["pr"]) == ("pr_curves", b"\x10\x05")
    assert numbers_of(found["whole"]).tolist() == [0, 1, 2]
    assert plugin_of(found["mesh_VERTEX"]) == (
        "mesh",
        b"\x12\x04mesh\x18\x01*\x02{}2\x03\x01\x04\x038\x06",
    )
    assert numbers_of(found["mesh_FACE"]).shape == (1, 2, 3)
    sound = fields(found["sound"][6][0])
    assert sound[3] == [3] and sound[4][0].endswith(b"\x01\x80\x00\x00\xff\x7f")
    assert plugin_of(found["custom_scalars__config__"])[0] == "custom_scalars"
    assert 5 in found["raw"]


def test_embedding_for_the_projector(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        rows = torch.arange(6.0).reshape(2, 3)
        writer.add_embedding(
            rows,
            metadata=[("a", 1), ("b", 2)],
            metadata_header=["n", "v"],
            label_img=torch.rand(2, 3, 4, 4),
            global_step=7,
            tag="mine",
        )
        with pytest.raises(AssertionError, match="#labels should equal"):
            writer.add_embedding(rows, metadata=["a"])
        with pytest.raises(AssertionError, match="mat should be 2D"):
            writer.add_embedding(rows[0])
    folder = tmp_path / "00007" / "mine"
    assert (folder / "tensors.tsv").read_text() == "0.0\t1.0\t2.0\n3.0\t4.0\t5.0\n"
    assert (folder / "metadata.tsv").read_text() == "n\tv\na\t1\nb\t2\n"
    assert (folder / "sprite.png").read_bytes().startswith(b"\x89PNG")
    assert (
        'tensor_path: "00007/mine/tensors.tsv"' in (tmp_path / "projector_config.pbtxt").read_text()
    )


# ---- other libraries in the same process


def test_library_leaves_room_for_the_thread_local_variables_of_others():
    # Libraries loaded at run time with static thread-local storage (OpenMP's is one, in the wheels
    # of scikit-learn) share about 1600 bytes; above that `import torch, sklearn` fails.
    content = (pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so").read_bytes()
    start = int.from_bytes(content[32:40], "little")
    size, count = (int.from_bytes(content[at : at + 2], "little") for at in (54, 56))
    for i in range(count):
        header = content[start + i * size : start + (i + 1) * size]
        if int.from_bytes(header[:4], "little") == 7:  # PT_TLS
            assert int.from_bytes(header[40:48], "little") <= 1024


def test_modules_that_programs_name_can_be_pickled():
    import pickle

    assert pickle.loads(pickle.dumps(torch.autograd)) is torch.autograd


def test_averages_by_shape_hold_the_shapes_themselves():
    with torch.profiler.profile(record_shapes=True) as recorded:
        torch.ones(4, 8).relu()
    averages = recorded.key_averages(group_by_input_shape=True)
    (average,) = [e for e in averages if e.key == "aten::relu"]
    assert average.input_shapes == [[4, 8]]
    assert "[[4, 8]]" in averages.table()


class StandIn:
    """What other libraries hand to the iterators of a DataLoader in its place."""

    _IterableDataset_len_called = None
    _auto_collation = False
    collate_fn = staticmethod(lambda x: x)
    drop_last = False
    generator = None
    multiprocessing_context = None
    persistent_workers = False
    pin_memory = False
    pin_memory_device = ""
    timeout = 0
    worker_init_fn = None
    _dataset_kind = data.dataloader._DatasetKind.Iterable

    def __init__(self, workers):
        self.dataset, self.num_workers = range(3), workers
        self.prefetch_factor = 2 if workers else None
        self._index_sampler = iter(range(100))


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_take_what_is_like_a_loader(workers):
    kinds = {
        0: data.dataloader._SingleProcessDataLoaderIter,
        1: data.dataloader._MultiProcessingDataLoaderIter,
    }
    assert list(kinds[workers](StandIn(workers))) == [0, 1, 2]


def test_gradients_between_processes_say_whether_they_are_available():
    import torch.distributed.autograd

    assert torch.distributed.autograd.is_available() is False


def test_as_subclass_leaves_the_subclass_without_asking_it():
    asked = []

    class Asked(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

        def clone(self):
            return self.as_subclass(torch.Tensor).clone().as_subclass(type(self))

    x = torch.ones(2).as_subclass(Asked)
    assert type(x.as_subclass(torch.Tensor)) is torch.Tensor
    assert type(x.clone()) is Asked and asked == []
    assert torch.Tensor.as_subclass in torch.overrides.get_ignored_functions()


@pytest.fixture
def vision():
    from torch import _supplied_vision

    _supplied_vision.register()
    return torch.ops.torchvision


def test_overlap_of_rotated_boxes(vision):
    square = torch.tensor([[0.0, 0.0, 1.0, 1.0, 0.0]])
    others = torch.tensor(
        [
            [0.0, 0.0, 1.0, 1.0, 0.0],  # itself
            [0.5, 0.0, 1.0, 1.0, 0.0],  # half of it
            [0.0, 0.0, 1.0, 1.0, 45.0],  # a regular octagon is common
            [0.0, 0.0, 1.0, 2.0, 90.0],  # within a lying one
            [3.0, 0.0, 1.0, 1.0, 30.0],
        ]
    )
    octagon = 2 * (math.sqrt(2) - 1)
    expected = torch.tensor([[1.0, 1 / 3, octagon / (2 - octagon), 0.5, 0.0]])
    torch.testing.assert_close(vision.box_iou_rotated(square, others), expected)
    torch.testing.assert_close(vision.box_iou_rotated(others, square), expected.T)
    assert vision.box_iou_rotated(square[:0], others).shape == (0, 5)
    with pytest.raises(RuntimeError, match=r"should have shape \(N, 5\)"):
        vision.box_iou_rotated(square[:, :4], others)


def test_quantized_boxes_and_regions(vision):
    boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]], dtype=torch.uint8)
    scores = torch.tensor([5, 9, 7], dtype=torch.uint8)
    assert vision.qnms(boxes, scores, 0.5).tolist() == [1, 2]
    # Values (q - 3) * 0.5 of a ramp along x: the mean of a region is that of its middle.
    ramp = torch.arange(8, dtype=torch.uint8).expand(1, 1, 8, 8).contiguous()
    region = torch.tensor([[0, 0, 0, 6, 6]], dtype=torch.uint8)
    found = vision.qroi_align(ramp, region, 0.5, 3, 1.0, 0, 1.0, 1, 1, 2, False)
    assert found.dtype == torch.uint8 and found.flatten().tolist() == [3]
    with pytest.raises(NotImplementedError, match="qnms"):
        vision.qnms(boxes.float(), scores.float(), 0.5)
