"""What a report of a fault should say about the machine: versions of the library, Python, the
compiler, the system and the GPU. `python -m torch.utils.collect_env` prints it."""

from __future__ import annotations

import collections
import locale
import os
import platform
import shutil
import subprocess
import sys

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main", "run"]

_FIELDS = (
    ("torch_version", "PyTorch version"),
    ("is_debug_build", "Is debug build"),
    ("cuda_compiled_version", "CUDA used to build PyTorch"),
    ("hip_compiled_version", "ROCM used to build PyTorch"),
    ("os", "\nOS"),
    ("gcc_version", "GCC version"),
    ("clang_version", "Clang version"),
    ("cmake_version", "CMake version"),
    ("libc_version", "Libc version"),
    ("python_version", "\nPython version"),
    ("python_platform", "Python platform"),
    ("is_cuda_available", "Is CUDA available"),
    ("cuda_runtime_version", "CUDA runtime version"),
    ("nvidia_gpu_models", "GPU models and configuration"),
    ("nvidia_driver_version", "Nvidia driver version"),
    ("cudnn_version", "cuDNN version"),
    ("cpu_info", "\nCPU:\n"),
    ("pip_packages", "\nVersions of relevant libraries:\n"),
)
SystemEnv = collections.namedtuple("SystemEnv", [name for name, _ in _FIELDS])


def run(command) -> tuple[int, str, str]:
    """(return code, output, error output) of a command, a list or a line for the shell."""
    done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, check=False)
    encoding = locale.getpreferredencoding(False)
    out, err = (text.decode(encoding, "replace").strip() for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def _first_line(run_lambda, *command) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    code, out, _ = run_lambda([*command])
    return out.splitlines()[0] if code == 0 and out else None


def get_gcc_version(run_lambda) -> str | None:
    """The version of gcc, or None."""
    line = _first_line(run_lambda, "gcc", "--version")
    return line.removeprefix("gcc ") if line else None


def get_clang_version(run_lambda):
    """The version of clang, or None."""
    return _first_line(run_lambda, "clang", "--version")


def get_cmake_version(run_lambda) -> str | None:
    """The version of cmake, or None."""
    line = _first_line(run_lambda, "cmake", "--version")
    return line.removeprefix("cmake ") if line else None


def get_nvidia_driver_version(run_lambda):
    """The version of the NVIDIA driver, or None."""
    return _first_line(
        run_lambda, "nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"
    )


def get_gpu_info(run_lambda):
    """A line per GPU, or None."""
    if shutil.which("nvidia-smi") is None:
        return None
    code, out, _ = run_lambda(["nvidia-smi", "-L"])
    return out if code == 0 else None


def get_running_cuda_version(run_lambda):
    """The version of the CUDA toolkit, or None."""
    if shutil.which("nvcc") is None:
        return None
    code, out, _ = run_lambda(["nvcc", "--version"])
    return (
        next((line for line in out.splitlines() if "release" in line), None) if not code else None
    )


def get_cpu_info(run_lambda):
    """What lscpu says, or the processor's name."""
    if shutil.which("lscpu") is not None:
        code, out, _ = run_lambda(["lscpu"])
        if code == 0:
            return out
    return platform.processor() or platform.machine()


def get_os(run_lambda) -> str:
    """The name and version of the system."""
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.platform()
    return f"{name} ({platform.machine()})"


def get_libc_version() -> str:
    """The C library."""
    return "-".join(platform.libc_ver()) if sys.platform.startswith("linux") else "N/A"


def get_pip_packages(run_lambda, patterns=None) -> tuple[str, str]:
    """Installed packages that matter, as name==version lines."""
    from importlib.metadata import distributions

    wanted = patterns or ("torch", "numpy", "triton", "optree", "mypy", "flake8", "nvidia-")
    found = {
        f"{d.metadata['Name']}=={d.version}"
        for d in distributions()
        if d.metadata["Name"] and any(w in d.metadata["Name"].lower() for w in wanted)
    }
    return "pip", "\n".join(sorted(found))


def get_env_info():
    """Everything, as a SystemEnv."""
    import torch

    cuda = torch.cuda.is_available()
    bits = 64 if sys.maxsize > 2**32 else 32
    return SystemEnv(
        torch_version=str(torch.__version__),
        is_debug_build="False",
        cuda_compiled_version=torch.version.cuda or "None",
        hip_compiled_version="N/A",
        os=get_os(run),
        gcc_version=get_gcc_version(run),
        clang_version=get_clang_version(run),
        cmake_version=get_cmake_version(run),
        libc_version=get_libc_version(),
        python_version=f"{sys.version.replace(os.linesep, ' ')} ({bits}-bit runtime)",
        python_platform=platform.platform(),
        is_cuda_available=str(cuda),
        cuda_runtime_version=get_running_cuda_version(run),
        nvidia_gpu_models=get_gpu_info(run),
        nvidia_driver_version=get_nvidia_driver_version(run),
        cudnn_version="N/A",
        cpu_info=get_cpu_info(run),
        pip_packages=get_pip_packages(run)[1],
    )


def get_pretty_env_info() -> str:
    """Everything, as text."""
    info = get_env_info()
    lines = []
    for name, title in _FIELDS:
        value = getattr(info, name)
        value = "Could not collect" if value in (None, "") else value
        lines.append(f"{title}{value}" if title.endswith("\n") else f"{title}: {value}")
    return "\n".join(lines)


def main() -> None:
    """Prints the report."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
