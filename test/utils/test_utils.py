"""Helpers around the library: DataParallel, hub, benchmark, counters, trackers, event files, weak
mappings and small methods."""

import gc
import hashlib
import http.server
import os
import pickle
import struct
import threading

import pytest

import torch
from torch import nn

# ---- nn.parallel


def test_data_parallel_without_devices():
    layer = nn.Linear(2, 3)
    model = nn.DataParallel(layer)
    if not torch.cuda.is_available():
        assert model.device_ids == []
    assert list(model.state_dict()) == ["module.weight", "module.bias"]


def test_data_parallel_on_cpu_devices():
    torch.manual_seed(0)
    layer = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)).eval()
    x = torch.randn(6, 4)
    for devices in (["cpu"], ["cpu", "cpu"], ["cpu"] * 4):
        layer.zero_grad()
        out = nn.parallel.DataParallel(layer, device_ids=devices)(x)
        torch.testing.assert_close(out, layer(x))
        out.sum().backward()
        split = layer[0].weight.grad.clone()
        layer.zero_grad()
        layer(x).sum().backward()
        torch.testing.assert_close(split, layer[0].weight.grad)
    out = nn.parallel.data_parallel(layer, x, ["cpu", "cpu"])
    torch.testing.assert_close(out, layer(x))


def test_scatter_and_gather():
    nested = {"a": torch.arange(4), "b": [torch.ones(2, 1), 3], "c": (None,)}
    parts = nn.parallel.scatter(nested, ["cpu", "cpu"])
    assert len(parts) == 2 and parts[1]["a"].tolist() == [2, 3] and parts[0]["b"][1] == 3
    joined = nn.parallel.gather([{"x": torch.ones(2)}, {"x": torch.zeros(1)}], "cpu")
    assert joined["x"].tolist() == [1, 1, 0]
    assert nn.parallel.gather([torch.tensor(1), torch.tensor(2)], "cpu").tolist() == [1, 2]
    inputs, kwargs = nn.parallel.scatter_kwargs((torch.ones(2),), {"k": 1}, ["cpu", "cpu"])
    assert len(inputs) == len(kwargs) == 2 and kwargs[1] == {"k": 1}


def test_errors_in_replicas_are_raised():
    class Fails(nn.Module):
        def forward(self, x):
            raise KeyError("inside")

    with pytest.raises(KeyError, match="replica"):
        nn.DataParallel(Fails(), device_ids=["cpu", "cpu"])(torch.ones(4, 1))


def test_sync_batch_norm_of_one_process():
    torch.manual_seed(0)
    plain, sync = nn.BatchNorm1d(3), nn.SyncBatchNorm(3)
    x = torch.randn(5, 3)
    torch.testing.assert_close(sync(x), plain(x))
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(plain))
    assert isinstance(converted[0], nn.SyncBatchNorm)
    assert nn.SyncBatchNorm(3, bias=False).bias is None


# ---- hub


@pytest.fixture
def hub_folder(tmp_path):
    (tmp_path / "helper.py").write_text("SCALE = 3\n")
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['torch']\n"
        "def model(size, bias=True):\n"
        "    'A linear model.'\n"
        "    import torch, helper\n"
        "    return torch.nn.Linear(size, helper.SCALE, bias=bias)\n"
        "def _hidden():\n    pass\n"
    )
    return str(tmp_path)


def test_hub_local(hub_folder, tmp_path):
    model = torch.hub.load(hub_folder, "model", 2, source="local", bias=False)
    assert model.weight.shape == (3, 2) and model.bias is None
    assert torch.hub.list(hub_folder) == ["model"]
    assert torch.hub.help(hub_folder, "model") == "A linear model."
    with pytest.raises(RuntimeError, match="Cannot find callable"):
        torch.hub.load(hub_folder, "nothing", source="local")
    with pytest.raises(ValueError, match="Unknown source"):
        torch.hub.load(hub_folder, "model", source="elsewhere")
    with pytest.raises(RuntimeError, match="not trusted"):
        torch.hub.load("somebody/something", "model")
    (tmp_path / "hubconf.py").write_text("dependencies = ['no_such_package']\nm = len\n")
    with pytest.raises(RuntimeError, match="Missing dependencies: no_such_package"):
        torch.hub.load(hub_folder, "m", source="local")


def test_hub_folders(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    assert torch.hub.get_dir() == str(tmp_path / "hub")
    torch.hub.set_dir(str(tmp_path / "other"))
    assert torch.hub.get_dir() == str(tmp_path / "other")
    monkeypatch.setattr(torch.hub, "_hub_dir", None)


@pytest.fixture
def server(tmp_path):
    """Serves tmp_path/served; a file named short says that it is longer than it is."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            data = (folder / self.path.strip("/")).read_bytes()
            self.send_response(200)
            extra = 5 if "short" in self.path else 0
            self.send_header("Content-Length", str(len(data) + extra))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args):
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{httpd.server_address[1]}"
    httpd.shutdown()
    httpd.server_close()


def test_downloads_are_checked_and_atomic(server, tmp_path, monkeypatch):
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder, url = server
    torch.save({"w": torch.arange(3)}, folder / "plain.pth")
    data = (folder / "plain.pth").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    named = f"model-{digest[:8]}.pth"
    (folder / named).write_bytes(data)
    (folder / "wrong-00000000.pth").write_bytes(data)
    (folder / "short.pth").write_bytes(data)
    cache = tmp_path / "cache"
    state = torch.hub.load_state_dict_from_url(
        f"{url}/{named}", str(cache), progress=False, check_hash=True
    )
    assert torch.equal(state["w"], torch.arange(3))
    (folder / named).unlink()
    torch.hub.load_state_dict_from_url(f"{url}/{named}", str(cache), progress=False)
    with pytest.raises(RuntimeError, match="invalid hash value"):
        torch.hub.load_state_dict_from_url(
            f"{url}/wrong-00000000.pth", str(cache), progress=False, check_hash=True
        )
    with pytest.raises(Exception):  # noqa: B017
        torch.hub.download_url_to_file(f"{url}/short.pth", cache / "short.pth", progress=False)
    assert os.listdir(cache) == [named]


# ---- torch.utils


def test_timer_and_measurement():
    from torch.utils import benchmark

    timer = benchmark.Timer("x + 1", globals={"x": 1}, label="L", sub_label="S", description="D")
    measured = timer.timeit(100)
    assert measured.number_per_run == 100 and measured.median > 0 and measured.title == "L: S"
    assert "1 measurement, 100 runs , 1 thread" in repr(measured)
    several = timer.blocked_autorange(min_run_time=0.01)
    assert several.median > 0 and several.mean > 0 and several.iqr >= 0
    assert benchmark.select_unit(2e-5) == ("us", 1e-6)
    assert benchmark.trim_sigfig(0.00123456, 3) == pytest.approx(0.00123)
    with pytest.raises(ZeroDivisionError):
        benchmark.Timer("1 / 0").timeit(1)


def test_compare_table():
    from torch.utils.benchmark import Compare, Measurement, TaskSpec

    results = [
        Measurement(
            1,
            [n * 1e-5, n * 1.1e-5],
            TaskSpec("x", "", label="L", sub_label=name, description=f"n{n}", num_threads=n),
        )
        for n in (1, 2)
        for name in "ab"
    ]
    assert str(Compare(results)) == (
        "[---------- L ----------]\n"
        "         |   n1   |   n2 \n"
        "1 threads: --------------\n"
        "      a  |  10.5  |      \n"
        "      b  |  10.5  |      \n"
        "2 threads: --------------\n"
        "      a  |        |  21.0\n"
        "      b  |        |  21.0\n"
        "\nTimes are in microseconds (us).\n"
    )


def test_flop_counter_and_module_tracker():
    from torch.utils.flop_counter import FlopCounterMode
    from torch.utils.module_tracker import ModuleTracker

    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with FlopCounterMode(display=False) as counter:
        net(torch.ones(3, 4)).sum().backward()
    assert counter.get_total_flops() == 672
    counts = counter.get_flop_counts()
    assert sum(counts["Sequential.0"].values()) == 384
    assert sum(counts["Sequential.2"].values()) == 288
    assert "Sequential.2" in counter.get_table()
    with FlopCounterMode(display=False) as counter:
        nn.functional.conv2d(torch.ones(2, 3, 8, 8), torch.ones(4, 3, 3, 3))
    assert counter.get_total_flops() == 15552
    tracker = ModuleTracker()
    seen = []
    net[1].register_forward_pre_hook(
        lambda *args: seen.append((set(tracker.parents), tracker.is_bw))
    )
    with tracker:
        net(torch.ones(3, 4))
    assert seen == [({"Global", "Sequential", "Sequential.1"}, False)]
    assert tracker.parents == {"Global"}


def test_event_files(tmp_path):
    from torch.utils.tensorboard import SummaryWriter
    from torch.utils.tensorboard._events import masked_crc

    assert masked_crc(b"123456789") == 0xC78AB0E5
    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", torch.tensor(1.5), 3)
        writer.add_histogram("weights", torch.randn(100), 1)
        writer.add_text("note", "hello", 1)
        writer.add_image("image", torch.rand(3, 4, 5))
    (name,) = os.listdir(tmp_path)
    data = (tmp_path / name).read_bytes()
    messages, place = [], 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        message = data[place + 12 : place + 12 + length]
        assert struct.unpack_from("<I", data, place + 8)[0] == masked_crc(data[place : place + 8])
        assert struct.unpack_from("<I", data, place + 12 + length)[0] == masked_crc(message)
        messages.append(message)
        place += 16 + length
    assert len(messages) == 5 and b"brain.Event:2" in messages[0]
    assert b"loss" in messages[1] and struct.pack("<f", 1.5) in messages[1]
    assert b"hello" in messages[3] and b"\x89PNG" in messages[4]


@pytest.mark.parametrize("tag", ["../../x", "/x", "..", "a/../../../x", ""])
def test_tags_that_climb_stay_in_the_folder_of_the_run(tmp_path, tag):
    from torch.utils.tensorboard import SummaryWriter

    run = tmp_path / "a" / "b" / "run"
    with SummaryWriter(str(run)) as writer:
        writer.add_embedding(torch.rand(3, 2), tag=tag)
        writer.add_scalars("main", {tag: 1.0})
    outside = [f for f in tmp_path.rglob("*") if f.is_file() and run not in f.parents]
    assert outside == [] and list(run.rglob("tensors.tsv"))


def test_tag_with_quotation_marks_stays_one_text_in_the_settings(tmp_path):
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_embedding(torch.rand(3, 2), tag='a"\nb')
    lines = (tmp_path / "projector_config.pbtxt").read_text().splitlines()
    assert lines[0] == "embeddings {" and lines[-1] == "}" and len(lines) == 4
    assert lines[1] == '  tensor_name: "a\\"\\nb:00000"'


def test_weak_mapping():
    from torch.utils.weak import TensorWeakRef, WeakIdKeyDictionary, WeakTensorKeyDictionary

    a, b = torch.ones(2), torch.ones(2)
    table = WeakTensorKeyDictionary()
    table[a], table[b] = 1, 2
    assert table[a] == 1 and table[b] == 2 and len(table) == 2 and a in table
    ref = TensorWeakRef(b)
    del b
    gc.collect()
    assert len(table) == 1 and ref() is None and next(iter(table)) is a
    other = table | WeakIdKeyDictionary()
    assert other == table and other.pop(a) == 1 and len(table) == 1


def test_swap_tensors():
    a, b = nn.Parameter(torch.ones(2)), nn.Parameter(torch.zeros(3), requires_grad=False)
    a.note = "a"
    torch.utils.swap_tensors(a, b)
    assert a.tolist() == [0, 0, 0] and b.tolist() == [1, 1] and b.note == "a"
    assert not a.requires_grad and b.requires_grad and not hasattr(a, "note")
    c = a * b.new_ones(1).requires_grad_()
    with pytest.raises(RuntimeError, match="leaves"):
        torch.utils.swap_tensors(a, c)


def test_small_functions(tmp_path):
    with pytest.warns(UserWarning, match="resize is deprecated"):
        assert torch.arange(6).resize(2, 3).shape == (2, 3)
    with pytest.warns(UserWarning, match="resize_as"):
        assert torch.arange(6).resize_as(torch.ones(3, 2)).shape == (3, 2)
    assert torch.get_device_module("cpu") is torch.cpu
    torch._assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="got zero"):
        torch._assert_async(torch.tensor(0))
    path = tmp_path / "numbers"
    path.write_bytes(bytes(16))
    torch.from_file(str(path), True, 4).fill_(1)
    assert path.read_bytes() == struct.pack("<4f", 1, 1, 1, 1)
    assert torch._C._nn._parse_to("cpu", torch.half) == (
        torch.device("cpu"), torch.float16, False, None,
    )  # fmt: skip
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")
    with pytest.raises(RuntimeError, match="does not exist"):
        torch.classes.some.thing  # noqa: B018
    assert len(list(nn.Sequential(*[nn.ReLU()] * 1).modules(remove_duplicate=False))) == 2


def test_collect_env():
    from torch.utils import collect_env

    text = collect_env.get_pretty_env_info()
    assert text.startswith(f"PyTorch version: {torch.__version__}") and "CPU:" in text
    assert collect_env.run("echo hi") == (0, "hi", "")


def test_grouped_products():
    torch.manual_seed(0)
    grouped_mm = nn.functional.grouped_mm
    offs = torch.tensor([2, 3, 6], dtype=torch.int32)
    parts = [slice(0, 2), slice(2, 3), slice(3, 6)]
    a, b = torch.randn(6, 4), torch.randn(3, 4, 5)
    expected = torch.cat([a[p] @ b[i] for i, p in enumerate(parts)])
    torch.testing.assert_close(grouped_mm(a, b, offs=offs), expected)
    left, right = torch.randn(5, 6), torch.randn(6, 7)
    expected = torch.stack([left[:, p] @ right[p] for p in parts])
    torch.testing.assert_close(grouped_mm(left, right, offs=offs), expected)
    stack = torch.randn(3, 5, 4)
    expected = torch.cat([stack[i] @ a.t()[:, p] for i, p in enumerate(parts)], 1)
    torch.testing.assert_close(grouped_mm(stack, a.t(), offs=offs), expected)
    torch.testing.assert_close(grouped_mm(stack, b), stack @ b)
    with pytest.raises(RuntimeError, match="Have to provide offsets"):
        grouped_mm(a, b)
    with pytest.raises(RuntimeError, match="int32"):
        grouped_mm(a, b, offs=offs.long())


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_convolution_gradients_as_functions(rank):
    torch.manual_seed(rank)
    x = torch.randn(2, 4, *[6] * rank, dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, *[3] * rank, dtype=torch.float64, requires_grad=True)
    settings = {"stride": 2, "padding": 1, "dilation": 1, "groups": 2}
    out = getattr(nn.functional, f"conv{rank}d")(x, w, **settings)
    grad = torch.randn_like(out)
    expected = torch.autograd.grad(out, (x, w), grad)
    by_input = getattr(nn.grad, f"conv{rank}d_input")(x.shape, w, grad, **settings)
    by_weight = getattr(nn.grad, f"conv{rank}d_weight")(x, w.shape, grad, **settings)
    torch.testing.assert_close((by_input, by_weight), expected)


def test_set_device_decorates_functions_and_generators():
    from torch.utils._device import set_device

    @set_device("meta")
    def make():
        return torch.empty(2)

    @set_device("meta")
    def several():
        yield torch.empty(1)
        yield torch.empty(2)

    assert make().device.type == "meta"
    assert [t.device.type for t in several()] == ["meta", "meta"]
    assert torch.empty(1).device.type == "cpu"


def test_deepcopy_of_a_weak_mapping_keeps_the_keys_and_copies_the_values():
    import copy

    from torch.utils.weak import WeakIdKeyDictionary

    key, value = torch.ones(1), [1]
    again = copy.deepcopy(WeakIdKeyDictionary({key: value}))
    assert again[key] == [1] and again[key] is not value


def test_a_device_module_is_registered_once_and_for_known_devices(monkeypatch):
    import sys
    import types

    module = types.ModuleType("some")
    with pytest.raises(RuntimeError, match="The runtime module of 'cuda'"):
        torch._register_device_module("cuda", module)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch._register_device_module("nothing", module)
    torch._register_device_module("privateuseone", module)
    try:
        assert torch.privateuseone is module
        with pytest.raises(RuntimeError, match="The runtime module of"):
            torch._register_device_module("privateuseone", module)
    finally:
        delattr(torch, "privateuseone")
        del sys.modules["torch.privateuseone"]


def test_module_tracker_follows_tensors_in_dicts():
    from torch.utils.module_tracker import ModuleTracker

    seen = []

    class Inner(torch.nn.Module):
        def forward(self, x):
            out = x["a"].sin()
            out.register_hook(lambda grad: seen.append(set(tracker.parents)))
            return {"a": out * 2}

    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    with ModuleTracker() as tracker:
        Outer()({"a": torch.randn(2, requires_grad=True).clone()})["a"].sum().backward()
    assert seen == [{"Global", "Outer", "Outer.inner"}]


def test_futures_report_errors_of_callbacks_and_refuse_what_is_no_future():
    future = torch.futures.Future()

    def fail(done):
        raise ValueError("expected")

    chained = future.then(fail)
    future.set_result(1)
    with pytest.raises(RuntimeError, match="ValueError: expected"):
        chained.wait()
    with pytest.raises(RuntimeError, match="Can not pickle torch"):
        pickle.dumps(future)
    for call in (torch.jit.wait, lambda f: torch.futures.wait_all((f,))):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            call(None)


def test_tensor_of_an_exporter_of_dlpack_copies_its_memory():
    class Exporter:
        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, *args, **kwargs):
            return self.tensor.__dlpack__(*args, **kwargs)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    source = torch.arange(3)
    made = torch.tensor(Exporter(source))
    assert made.tolist() == [0, 1, 2] and made.dtype == torch.int64
    source[0] = 9
    assert made[0] == 0


def test_hash_of_a_storage_is_that_of_its_bytes():
    from torch.utils._content_store import hash_storage

    t = torch.arange(5, dtype=torch.int32)
    expected = hashlib.sha1(t.numpy().tobytes(), usedforsecurity=False).hexdigest()
    assert hash_storage(t.untyped_storage()) == expected
    assert hash_storage(t.clone().untyped_storage(), stable_hash=True) == expected
