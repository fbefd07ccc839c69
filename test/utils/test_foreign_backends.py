"""Backends of other packages for kinds of devices that have a name here and no backend
(foreign_device/backend.cpp): compiled once, each test in a process of its own."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.slow

SOURCE = pathlib.Path(__file__).parent / "foreign_device" / "backend.cpp"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("foreign")
    script = (
        "from torch.utils import cpp_extension\n"
        f"cpp_extension.load('foreign', [{str(SOURCE)!r}], extra_cflags=['-O0'], "
        f"build_directory={str(folder)!r}, is_python_module=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("foreign*.so")
    return str(built)


def run(library: str, body: str) -> None:
    """Runs statements with the library loaded; a failing one fails the test."""
    script = (
        f"import pytest, torch\ntorch.ops.load_library({library!r})\n"
        "ops = torch.ops.foreign\n" + textwrap.dedent(body)
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_kernels_of_a_kind_with_a_name_of_its_own_are_called(library) -> None:
    run(
        library,
        """
        a = torch.empty(2, 3, device="maia").fill_(1.5)
        assert a.device == torch.device("maia", 0) and a.dtype == torch.float32
        b = torch.empty(2, 3, device="maia").fill_(2.0)
        total = torch.empty(2, 3, device="maia")
        torch.add(a, b, alpha=2, out=total)
        assert [ops.value(total, i) for i in range(6)] == [5.5] * 6 and ops.additions() == 1
        """,
    )


def test_operator_is_made_of_the_variant_that_writes_into_a_tensor(library) -> None:
    run(
        library,
        """
        a = torch.empty(3, device="maia", requires_grad=True)
        with torch.no_grad():
            a.fill_(1.0)
        b = torch.empty(3, device="maia").fill_(0.25)
        c = a + b
        assert c.device == torch.device("maia", 0) and ops.additions() == 1
        assert ops.value(c, 2) == 1.25 and c.requires_grad and c.grad_fn is not None
        """,
    )


def test_operator_without_a_kernel_says_which_backends_have_one(library) -> None:
    run(
        library,
        """
        a = torch.empty(3, device="maia")
        with pytest.raises(NotImplementedError, match="Could not run 'aten::mm'"):
            torch.mm(a, a)
        with pytest.raises(RuntimeError, match="xpu"):
            torch.empty(3, device="xpu")
        """,
    )


def test_hooks_say_which_device_and_stream_are_current(library) -> None:
    run(
        library,
        """
        assert torch.mtia.is_available() and torch.mtia.device_count() == 2
        first = torch.mtia.current_stream()
        assert first.stream_id == 0 and first.device == torch.device("mtia", 0)
        assert first.device_type == 19
        own = torch.mtia.Stream(device="mtia:1")
        assert own != first and own.device.index == 1
        with torch.mtia.stream(own):
            assert torch.mtia.current_device() == 1 and torch.mtia.current_stream() == own
        assert torch.mtia.current_device() == 0 and torch.mtia.current_stream(1).stream_id == 0
        with torch.mtia.device(1):
            assert torch.mtia.current_device() == 1
        assert torch.mtia.current_device() == 0
        torch.mtia.synchronize()
        assert ops.waits() == 1
        assert torch.Stream().device.type == torch.accelerator.current_accelerator().type == "mtia"
        assert torch.Event().device.type == "mtia"
        with pytest.raises(ValueError, match="kind mtia"):
            torch.mtia.current_stream("cpu")
        """,
    )


def test_kernel_waits_for_the_definition_of_its_operator(library) -> None:
    run(
        library,
        """
        with pytest.raises(AttributeError):
            torch.ops.foreign_later.answer
        later = torch.library.Library("foreign_later", "DEF")
        later.define("answer(int x) -> int")
        assert torch.ops.foreign_later.answer(41) == 42
        """,
    )


def test_module_of_a_kind_without_a_backend_answers_that_there_is_none() -> None:
    script = """
        import pytest, torch
        assert not torch.mtia.is_available() and torch.mtia.device_count() == 0
        with pytest.raises(AssertionError, match="not compiled with MTIA"):
            torch.mtia.current_stream()
        with pytest.raises(RuntimeError, match="dummy base class Stream"):
            torch.mtia.Stream()
        with torch.mtia.device(None):
            pass
        with pytest.raises(AssertionError):
            torch.mtia.device(0)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
