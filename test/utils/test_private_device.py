"""A device of another package (private_device/backend.cpp): compiled once, and each test runs in a
process of its own, because the name of a device kind and its kernels stay for the life of one."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

from torch.utils import cpp_extension

pytestmark = pytest.mark.slow

SOURCE = pathlib.Path(__file__).parent / "private_device" / "backend.cpp"

PREAMBLE = """
import io, types, warnings
import pytest, torch
torch.ops.load_library({path!r})
torch.utils.rename_privateuse1_backend("harbor")
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
module = types.ModuleType("torch.harbor")
module.device_count = lambda: torch._C._backend_device_count("harbor")
module.current_device = lambda: torch._C._backend_current_device("harbor")
module.is_available = lambda: True
module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
torch._register_device_module("harbor", module)
count = torch.ops.harbor
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("harbor")
    script = (
        "from torch.utils import cpp_extension\n"
        f"cpp_extension.load('harbor', [{str(SOURCE)!r}], extra_cflags=['-O0'], "
        f"build_directory={str(folder)!r}, is_python_module=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("harbor*.so")
    return str(built)


def run(library: str, body: str) -> None:
    """Runs statements with the device loaded; a failing one fails the test."""
    script = PREAMBLE.format(path=library) + textwrap.dedent(body)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_headers_of_the_extension_are_found() -> None:
    assert cpp_extension.include_paths()


def test_tensor_is_made_copied_and_added_by_the_registered_kernels(library) -> None:
    run(
        library,
        """
        x = torch.empty(2, 3, device="harbor")
        assert x.device == torch.device("harbor", 0) and x.is_harbor and not x.is_cpu
        y = torch.arange(6.0).reshape(2, 3)
        z = y.to("harbor") + y.harbor()
        assert count.additions() == 1 and z.is_harbor
        assert z.cpu().tolist() == (y * 2).tolist()
        assert z.type() == "torch.harbor.FloatTensor"
        blocks = count.live_blocks()
        del z
        assert count.live_blocks() == blocks - 1
        """,
    )


def test_allocator_gives_memory_without_an_owner(library) -> None:
    run(
        library,
        """
        before = count.live_blocks()
        assert count.bare_block() == (before + 1, before)
        with pytest.raises(RuntimeError, match="its raw_deleter\\(\\) is null"):
            count.bare_block_of_the_cpu()
        """,
    )


def test_views_share_the_memory_of_the_device(library) -> None:
    run(
        library,
        """
        x = torch.arange(6.0).harbor()
        v = x.view(2, 3).t()[1:]
        assert v.data_ptr() == x.data_ptr() + 4 and v.is_harbor
        v.copy_(torch.zeros(2, 2))
        assert x.cpu().tolist() == [0.0, 0.0, 0.0, 3.0, 0.0, 0.0]
        """,
    )


def test_operator_without_a_kernel_runs_on_the_cpu(library) -> None:
    run(
        library,
        """
        x = torch.tensor([1.0, 4.0, 9.0]).harbor()
        before = count.fallbacks()
        assert x.sqrt().cpu().tolist() == [1.0, 2.0, 3.0] and count.fallbacks() == before + 1
        x.mul_(2)
        assert x.cpu().tolist() == [2.0, 8.0, 18.0]
        out = torch.empty(3).harbor()
        assert torch.sub(x, 1, out=out) is out and out.cpu().tolist() == [1.0, 7.0, 17.0]
        a, b = torch._foreach_add([x, x], 1)
        assert a.is_harbor and b.cpu().tolist() == [3.0, 9.0, 19.0]
        assert torch.triu_indices(2, 2, device="harbor").is_harbor
        assert x[torch.tensor([2, 0]).harbor()].cpu().tolist() == [18.0, 2.0]
        assert x.sum().item() == 28.0
        """,
    )


def test_gradients_flow_through_kernels_of_the_device(library) -> None:
    run(
        library,
        """
        x = torch.ones(3).harbor().requires_grad_()
        ((x + x) * 3).sum().backward()
        assert x.grad.is_harbor and x.grad.cpu().tolist() == [6.0, 6.0, 6.0]
        model = torch.nn.Linear(2, 1).harbor()
        model(torch.ones(4, 2).harbor()).sum().backward()
        assert model.weight.grad.is_harbor and model.weight.grad.cpu().tolist() == [[4.0, 4.0]]
        """,
    )


def test_device_index_says_where_memory_is(library) -> None:
    run(
        library,
        """
        assert torch.accelerator.current_accelerator() == torch.device("harbor")
        assert torch.accelerator.device_count() == 2
        assert torch.empty(1, device="harbor:1").device.index == 1
        torch.accelerator.set_device_index(1)
        assert torch.empty(1, device="harbor").device.index == 1
        with torch.accelerator.device_index(0):
            assert torch.accelerator.current_device_index() == 0
        assert torch.accelerator.current_device_index() == 1
        with pytest.raises(RuntimeError, match="no device harbor:2|there are 2 devices"):
            torch.empty(1, device="harbor:2")
        """,
    )


def test_streams_and_events_are_those_of_the_backend(library) -> None:
    run(
        library,
        """
        first, second = torch.Stream("harbor"), torch.Stream(device="harbor:1")
        assert isinstance(first, torch.Stream) and first != second
        assert first.device == torch.device("harbor", 0) and second.device_index == 1
        numbers = {"device_index": 1, "device_type": second.device_type}
        assert torch.Stream(stream_id=second.stream_id, **numbers) == second
        assert torch.accelerator.current_stream().stream_id == 0
        with first:
            assert torch.accelerator.current_stream() == first
        assert torch.accelerator.current_stream().stream_id == 0
        start, end = torch.Event("harbor", enable_timing=True), torch.Event("harbor")
        start.record(first)
        end.record(first)
        assert start.elapsed_time(end) == 1.0 and end.query() and count.live_events() == 2
        second.wait_event(start)
        second.wait_stream(first)
        assert count.blocked() == 2
        first.synchronize()
        del start, end
        assert count.live_events() == 0
        """,
    )


def test_generators_have_streams_of_their_own(library) -> None:
    run(
        library,
        """
        g = torch.Generator(device="harbor:1")
        assert g.device == torch.device("harbor", 1)
        g.manual_seed(3)
        state = g.get_state()
        assert g.initial_seed() == 3 and torch.Generator().manual_seed(3).get_state().equal(state)
        """,
    )


def test_saved_tensor_comes_back_on_its_device_or_where_it_is_sent(library) -> None:
    run(
        library,
        """
        x = torch.arange(4.0).harbor()
        file = io.BytesIO()
        torch.save({"x": x, "y": x[2:]}, file)
        file.seek(0)
        loaded = torch.load(file)
        assert loaded["x"].is_harbor and loaded["x"].cpu().tolist() == [0.0, 1.0, 2.0, 3.0]
        assert loaded["y"].data_ptr() == loaded["x"].data_ptr() + 8
        file.seek(0)
        assert torch.load(file, map_location="cpu")["x"].tolist() == [0.0, 1.0, 2.0, 3.0]
        torch.save(torch.ones(2), file := io.BytesIO())
        file.seek(0)
        assert torch.load(file, map_location="harbor:1").device == torch.device("harbor", 1)
        assert torch.serialization.location_tag(x.untyped_storage()) == "harbor:0"
        """,
    )


def test_storages_move_to_the_device_and_back(library) -> None:
    run(
        library,
        """
        storage = torch.arange(3.0).untyped_storage()
        there = storage.harbor()
        assert there.is_harbor and not storage.is_harbor
        assert there.cpu().tolist() == storage.tolist()
        with pytest.raises(RuntimeError, match="Invalid device"):
            there.harbor("cpu")
        """,
    )


def test_autocast_uses_the_kernels_of_the_backend(library) -> None:
    run(
        library,
        """
        x = torch.eye(2).harbor()
        with torch.autocast("harbor", dtype=torch.bfloat16):
            assert torch.is_autocast_enabled("harbor")
            assert torch.mm(x, x).dtype == torch.bfloat16
            assert (x + x).dtype == torch.float32
        assert torch.mm(x, x).dtype == torch.float32
        with pytest.warns(UserWarning, match="is not supported. Disabling autocast"):
            with torch.autocast("harbor", dtype=torch.float64):
                assert not torch.is_autocast_enabled("harbor")
        """,
    )


def test_pinned_memory_comes_from_the_backend(library) -> None:
    run(
        library,
        """
        x = torch.arange(3.0)
        assert not x.is_pinned("harbor")
        pinned = x.pin_memory("harbor")
        assert pinned.is_pinned("harbor") and pinned.tolist() == [0.0, 1.0, 2.0]
        """,
    )


def test_second_registration_is_an_error_that_says_so(library) -> None:
    run(
        library,
        """
        torch.utils.rename_privateuse1_backend("harbor")
        with pytest.raises(RuntimeError, match="register_privateuse1_backend.*already been set"):
            torch.utils.rename_privateuse1_backend("other")
        with pytest.raises(RuntimeError, match="The custom device module of harbor"):
            torch.utils.generate_methods_for_privateuse1_backend()
        with pytest.raises(RuntimeError, match="The runtime module of 'harbor'"):
            torch._register_device_module("harbor", module)
        with pytest.raises(RuntimeError, match="Expected one of cpu"):
            torch._register_device_module("nowhere", module)
        with pytest.raises(RuntimeError, match="Try to call torch.harbor.unknown"):
            torch.utils.backend_registration._get_custom_mod_func("unknown")
        assert torch._C._get_privateuse1_backend_name() == "harbor"
        """,
    )


@pytest.mark.parametrize("name", ["cuda", "", "A", "with space"])
def test_name_that_no_backend_can_have_is_refused(name) -> None:
    script = f"import torch; torch.utils.rename_privateuse1_backend({name!r})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1 and "RuntimeError" in done.stderr
