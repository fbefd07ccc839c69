"""How torch.utils.cpp_extension turns sources into objects and libraries: which compiler a file
goes to, with which flags, and one list of build steps that ninja runs in parallel and
incrementally, or that is run as it is where ninja is not installed."""

import concurrent.futures
import dataclasses
import os
import re
import shlex
import shutil
import subprocess
import sysconfig

CUDA_SUFFIXES = (".cu", ".cuh")
# Operators of the toolkit's 16-bit types would be ambiguous beside those of c10::Half.
NVCC_FLAGS = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
    # What our headers have for the host only: thread-local models, and members that a later
    # specialization completes.
    "--diag-suppress=1835,845,2388,3357",
]
_ARCH_NAMES = {
    "Turing": "7.5",
    "Ampere": "8.0;8.6",
    "Ada": "8.9",
    "Hopper": "9.0",
    "Blackwell": "10.0;12.0",
}
_DEFAULT_ARCHES = "8.0;9.0+PTX"


@dataclasses.dataclass
class Step:
    """One command that makes `target` of `inputs`. A compilation writes `target.d`, from which
    ninja learns the headers."""

    command: list[str]
    target: str
    inputs: list[str]
    compiles: bool = True
    after: list[str] = dataclasses.field(default_factory=list)


def is_cuda_source(path: str) -> bool:
    """Whether nvcc compiles the file."""
    return path.endswith(CUDA_SUFFIXES)


def names_standard(flags: list[str]) -> bool:
    """Whether flags choose a version of C++."""
    return any(flag.startswith("-std=") for flag in flags)


def _arch_flags_of(wanted: str) -> list[str]:
    """nvcc's flags for a list such as "8.0 9.0+PTX" or "Hopper"."""
    for name, numbers in _ARCH_NAMES.items():
        wanted = wanted.replace(name, numbers)
    flags: list[str] = []
    for entry in wanted.replace(" ", ";").split(";"):
        if not entry:
            continue
        found = re.fullmatch(r"(\d+)\.(\d+)([af]?)(\+PTX)?", entry)
        if found is None:
            raise ValueError(f"Unknown CUDA arch ({entry}) or GPU not supported")
        number = f"{found[1]}{found[2]}{found[3]}"
        flags.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if found[4]:
            flags.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return list(dict.fromkeys(flags))


def cuda_arch_flags(flags: list[str]) -> list[str]:
    """The -gencode flags for nvcc: none where `flags` name an architecture, else what
    TORCH_CUDA_ARCH_LIST says, else the GPUs of this machine."""
    if any("arch" in flag for flag in flags):
        return []
    wanted = os.environ.get("TORCH_CUDA_ARCH_LIST")
    if wanted and wanted != "all":
        return _arch_flags_of(wanted)
    import torch

    found = sorted({torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())})
    if not found or wanted == "all":
        return _arch_flags_of(_DEFAULT_ARCHES)
    return _arch_flags_of(";".join(f"{a}.{b}" for a, b in found) + "+PTX")


def compile_step(
    source: str,
    target: str,
    *,
    compiler: str,
    nvcc: str | None,
    shared_flags: list[str],
    cxx_flags: list[str],
    nvcc_flags: list[str],
) -> Step:
    """From a source to an object. `shared_flags` (folders, definitions) go to both compilers."""
    if not is_cuda_source(source):
        standard = [] if names_standard(cxx_flags) else ["-std=c++17"]
        # CXX may name a compiler with its cache: "ccache g++".
        command = [*shlex.split(compiler), "-MMD", "-MF", f"{target}.d", "-fPIC"]
        command += [*standard, *shared_flags]
        return Step([*command, *cxx_flags, "-c", source, "-o", target], target, [source])
    if nvcc is None:
        raise OSError(
            f"compiling {source} needs nvcc: CUDA_HOME environment variable is not set. "
            "Please set it to your CUDA install root."
        )
    standard = [] if names_standard(nvcc_flags) else ["-std=c++17"]
    # nvcc has no -isystem of the same meaning for all its passes, and takes the host compiler's
    # options behind a flag of its own.
    shared = ["-I" if flag == "-isystem" else flag for flag in shared_flags]
    host = (shlex.split(os.environ.get("CC") or os.environ.get("CXX") or "") or [""])[-1]
    chosen = ["-ccbin", host] if host and not any("ccbin" in f for f in nvcc_flags) else []
    command = [nvcc, "-MD", "-MF", f"{target}.d", "--compiler-options", "-fPIC", *chosen]
    command += [*standard, *NVCC_FLAGS, *shared, *nvcc_flags, *cuda_arch_flags(nvcc_flags)]
    return Step([*command, "-c", source, "-o", target], target, [source])


def worker_count(verbose: bool = False) -> int | None:
    """How many compilers run at once: MAX_JOBS, or as many as ninja thinks best."""
    wanted = os.environ.get("MAX_JOBS")
    if wanted is not None and wanted.isdigit() and int(wanted) > 0:
        if verbose:
            print(f"Using environment variable MAX_JOBS ({wanted}) as the number of workers...")
        return int(wanted)
    return None


def _ninja_text(path: str) -> str:
    """A path in a build statement."""
    return path.replace("$", "$$").replace(" ", "$ ").replace(":", "$:")


def write_ninja_file(path: str, steps: list[Step]) -> None:
    """The steps as ninja reads them. A file that would not change is left alone: a new date
    would make ninja build again."""
    lines = ["ninja_required_version = 1.3", "rule step", "  command = $run"]
    lines += ["rule compile", "  command = $run", "  depfile = $out.d", "  deps = gcc"]
    for step in steps:
        rule = "compile" if step.compiles else "step"
        inputs = " ".join(map(_ninja_text, step.inputs))
        order = f" | {' '.join(map(_ninja_text, step.after))}" if step.after else ""
        lines.append(f"build {_ninja_text(step.target)}: {rule} {inputs}{order}")
        lines.append(f"  run = {shlex.join(step.command).replace('$', '$$')}")
    text = "\n".join(lines) + "\n"
    if os.path.exists(path):
        with open(path) as file:
            if file.read() == text:
                return
    with open(path, "w") as file:
        file.write(text)


def _run(command: list[str], folder: str, verbose: bool) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if verbose and done.stdout:
        print(done.stdout, end="", flush=True)
    if done.returncode:
        raise RuntimeError(done.stdout.strip())


def run_steps(steps: list[Step], folder: str, verbose: bool = False) -> None:
    """Runs what is out of date, in `folder`. RuntimeError with the compiler's text when a step
    fails."""
    os.makedirs(folder, exist_ok=True)
    jobs = worker_count(verbose)
    ninja = shutil.which("ninja")
    if ninja is not None:
        write_ninja_file(os.path.join(folder, "build.ninja"), steps)
        command = [ninja, *(["-v"] if verbose else []), *(["-j", str(jobs)] if jobs else [])]
        return _run(command, folder, verbose)
    first = [step for step in steps if step.compiles and not step.after]
    with concurrent.futures.ThreadPoolExecutor(jobs or os.cpu_count()) as pool:
        for _ in pool.map(lambda step: _run(step.command, folder, verbose), first):
            pass
    for step in steps:
        if step not in first:
            _run(step.command, folder, verbose)
    return None


def python_include() -> str:
    """The folder of Python.h."""
    return sysconfig.get_paths()["include"]
