"""What the package shows: metadata, public names, names of threads, room for thread-locals."""

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys

import pytest

import torch


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


ROOT = pathlib.Path(__file__).resolve().parents[2]


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


def test_control_flow_operators_have_modules():
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.cond import cond

    x = torch.arange(6.0).reshape(3, 2)
    torch.testing.assert_close(associative_scan(torch.add, x, 0), x.cumsum(0))
    assert cond is torch.cond


def test_library_leaves_room_for_the_thread_local_variables_of_others():
    # Libraries loaded at run time with static thread-local storage (OpenMP's is one, in the wheels
    # of scikit-learn) share about 1600 bytes; above that `import torch, sklearn` fails.
    content = (pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so").read_bytes()
    start = int.from_bytes(content[32:40], "little")
    size, count = (int.from_bytes(content[offset : offset + 2], "little") for offset in (54, 56))
    for i in range(count):
        header = content[start + i * size : start + (i + 1) * size]
        if int.from_bytes(header[:4], "little") == 7:  # PT_TLS
            assert int.from_bytes(header[40:48], "little") <= 1024


def test_library_keeps_the_cpp_runtime_to_itself():
    # Some toolchains link libstdc++ from an archive. Exported, the numbers of its facets would be
    # taken by libraries that bring the system's copy: cuDNN crashed when it wrote a number.
    nm = shutil.which("nm")
    if nm is None:
        pytest.skip("nm is not installed")
    library = pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so"
    listed = subprocess.run([nm, "-D", "--defined-only", library], capture_output=True, text=True)
    assert listed.stdout and "num_putIc" not in listed.stdout


def test_modules_that_programs_name_can_be_pickled():
    import pickle

    assert pickle.loads(pickle.dumps(torch.autograd)) is torch.autograd


def test_gradients_between_processes_say_whether_they_are_available():
    import torch.distributed.autograd

    assert torch.distributed.autograd.is_available() is False


def test_a_thread_has_a_name():
    import torch.multiprocessing as multiprocessing

    before = multiprocessing._get_thread_name()
    multiprocessing._set_thread_name("a name longer than fifteen")
    try:
        assert multiprocessing._get_thread_name() == "a name longer t"
    finally:
        multiprocessing._set_thread_name(before)
