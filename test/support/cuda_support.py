"""CUDA for tests, with or without a GPU.

    from cuda_support import cuda        # skips the whole module where there is neither
    x = torch.ones(3, device=cuda)       # cuda is torch.device("cuda")

`cuda_support` must be imported at the top of a test module, before anything asks for CUDA. On a
machine with a GPU it does nothing. Without one it loads the emulator of test/cuda_emulator (built
into <build>/lib/emulator) into this process: the library's own dlopen then finds it under the names
libcuda.so.1, libnvrtc.so.13, libcublasLt.so.13 and libcupti.so.13. From then on CUDA is available
in this process with two devices; a test of behaviour without CUDA therefore starts a new
interpreter (`run_python`, which by default sees no CUDA at all).

`EMULATED` says which of the two it is: do not time anything and keep problems small when it is
true. `emulator_environment(**settings)` gives the environment for a subprocess that shall see the
emulator, e.g. emulator_environment(DEVICES=1, MEMORY=64 << 20), with the settings of its README.
"""

import ctypes
import os
import pathlib
import subprocess
import sys

import pytest

import torch

LIBRARIES = ("libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcupti.so.13")


def _gpu_present():
    return os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def _emulator_folder():
    library = pathlib.Path(torch.__file__).parent / "lib" / "libtorch.so"
    folder = library.resolve().parent / "emulator"
    return folder if (folder / LIBRARIES[0]).exists() else None


EMULATED = not _gpu_present()
_folder = _emulator_folder()


def _cache_settings(folder, dry):
    # What the emulator compiles is no machine code of a GPU: it must not meet the user's own cache.
    # Without computing it compiles nothing, and those empty programs must not meet the others.
    return {
        "CRESSET_EMULATOR_CACHE": str(folder / "programs"),
        "CRESSET_CACHE_DIR": str(folder / ("cache-dry" if dry else "cache")),
    }


def _is_dry():
    return bool(os.environ.get("CRESSET_EMULATOR_DRY"))


def emulator_environment(**settings):
    environment = dict(os.environ)
    paths = [str(_folder), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = ":".join(p for p in paths if p)
    environment |= _cache_settings(_folder, settings.get("DRY") or _is_dry())
    environment |= {f"CRESSET_EMULATOR_{name}": str(value) for name, value in settings.items()}
    return environment


def run_python(code, environment=None, timeout=120):
    """Runs `code` in a new interpreter with this tree; without CUDA unless told otherwise."""
    environment = dict(environment or os.environ)
    if environment.get("LD_LIBRARY_PATH", "").find("emulator") < 0:
        environment.setdefault("CUDA_VISIBLE_DEVICES", "")
    root = str(pathlib.Path(torch.__file__).parent.parent)
    environment["PYTHONPATH"] = root + ":" + environment.get("PYTHONPATH", "")
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )


if EMULATED:
    if _folder is None:
        pytest.skip(
            "needs a GPU, or the emulator of a build with BUILD_TEST=1",
            allow_module_level=True,
        )
    # A process that was given folders of its own, by `emulator_environment`, keeps them.
    if "CRESSET_EMULATOR_CACHE" not in os.environ:
        os.environ.update(_cache_settings(_folder, _is_dry()))
    for _name in LIBRARIES:
        ctypes.CDLL(str(_folder / _name))

if not torch.cuda.is_available():
    pytest.skip("this build has no CUDA part", allow_module_level=True)

cuda = torch.device("cuda")


def launched_kernels(call):
    """Names of what a call starts on the device."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as record:
        call()
        torch.cuda.synchronize()
    return [e.name for e in record.events() if e.device_type == torch.autograd.DeviceType.CUDA]
