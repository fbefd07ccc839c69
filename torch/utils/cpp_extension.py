"""Building C++ extensions against the headers of this package: operators registered with
TORCH_LIBRARY, and Python modules written with pybind11 (torch/extension.h; its headers come from
the package pybind11) or to CPython's own interface. CUDA sources are not compiled yet."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sysconfig

import torch

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH_LIB_PATH = os.path.join(_PACKAGE, "lib")
ROCM_HOME = None
COMMON_FLAGS = ["-std=c++17", "-O2", "-fPIC"]


def _find_cuda_home():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return home
    nvcc = shutil.which("nvcc")
    if nvcc:
        return os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))
    return "/usr/local/cuda" if os.path.isdir("/usr/local/cuda") else None


CUDA_HOME = _find_cuda_home()


def _pybind11_include() -> list[str]:
    """The folder of pybind11's headers; empty where it is not installed."""
    import importlib.util

    found = importlib.util.find_spec("pybind11")
    if found is None or found.origin is None:
        return []
    return [os.path.join(os.path.dirname(found.origin), "include")]


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers: this package's, and pybind11's where it is installed."""
    own = [os.path.join(_PACKAGE, "include")] if torch_include_dirs else []
    return [*own, *_pybind11_include()]


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """The folders of shared libraries."""
    return [TORCH_LIB_PATH]


def is_ninja_available() -> bool:
    """Whether ninja is installed."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Errors without ninja."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_default_build_root():
    """The folder for what load builds."""
    import tempfile

    return os.path.join(tempfile.gettempdir(), "torch_extensions")


def get_cxx_compiler() -> str:
    """The compiler of C++: what CXX says, else c++."""
    return os.environ.get("CXX", "c++")


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, tuple[int, ...]]:
    """Whether what a compiler makes fits this package, and its version. A g++ before
    9 does not know all of C++17."""
    command = [compiler, "-dumpfullversion", "-dumpversion"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False, ()
    version = tuple(int(part) for part in done.stdout.strip().split(".") if part.isdigit())
    return not check_compiler_is_gcc(compiler) or version >= (9,), version


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler of C++ is there."""
    return shutil.which(compiler) is not None


def check_compiler_is_gcc(compiler) -> bool:
    """Whether a compiler is g++."""
    return "g++" in os.path.basename(compiler)


def _names_standard(flags: list[str]) -> bool:
    return any(flag.startswith("-std=") for flag in flags)


def _extension_defines(name: str) -> list[str]:
    """What sources ask for: the name of their module, and that they are part of an extension."""
    return [
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        f"-DTORCH_EXTENSION_NAME={name.rsplit('.', 1)[-1]}",
    ]


def CppExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension with the folders and the library of this package."""
    import setuptools

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *library_paths()]
    kwargs["runtime_library_dirs"] = [*kwargs.get("runtime_library_dirs", []), TORCH_LIB_PATH]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "torch"]
    kwargs["language"] = "c++"
    compile_args = kwargs.get("extra_compile_args", [])
    compile_args = compile_args.get("cxx", []) if isinstance(compile_args, dict) else compile_args
    # Flags that name a standard replace ours.
    common = [f for f in COMMON_FLAGS if not (f[:5] == "-std=" and _names_standard(compile_args))]
    kwargs["extra_compile_args"] = [*common, *compile_args, *_extension_defines(name)]
    return setuptools.Extension(name, sources, *args, **kwargs)


def CUDAExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension that also sees the headers and libraries of the CUDA toolkit. Sources
    that need its compiler are refused when they are built."""
    if CUDA_HOME is None:
        raise OSError(
            "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
        )
    kwargs["include_dirs"] = [
        *kwargs.get("include_dirs", []),
        os.path.join(CUDA_HOME, "include"),
    ]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), os.path.join(CUDA_HOME, "lib64")]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "cudart"]
    return CppExtension(name, sources, *args, **kwargs)


def SyclExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension for Intel GPUs, where the SYCL toolkit is found."""
    home = os.environ.get("SYCL_HOME") or os.environ.get("CMPLR_ROOT")
    if home is None:
        raise OSError(
            "SYCL runtime is not detected: set SYCL_HOME to the folder of the toolkit. This build "
            "of torch has no support for Intel GPUs; such an extension can only bring its own."
        )
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), os.path.join(home, "include")]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), os.path.join(home, "lib")]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "sycl"]
    return CppExtension(name, sources, *args, **kwargs)


class _LazyBuildExtension(type):
    """Makes BuildExtension a real setuptools command when it is used: setuptools is slow to import
    and not always there."""

    def __call__(cls, *args, **kwargs):
        return cls._command()(*args, **kwargs)


class BuildExtension(metaclass=_LazyBuildExtension):
    """The setuptools command build_ext for such extensions."""

    @classmethod
    def _command(cls, **options):
        from setuptools.command.build_ext import build_ext

        class command(build_ext):
            def build_extensions(self) -> None:
                for extension in self.extensions:
                    for source in extension.sources:
                        if source.endswith((".cu", ".cuh", ".sycl")):
                            raise NotImplementedError(
                                f"compiling {source} needs a device compiler, which "
                                "torch.utils.cpp_extension does not drive in this version"
                            )
                super().build_extensions()

            def get_ext_filename(self, ext_name):
                name = super().get_ext_filename(ext_name)
                if options.get("no_python_abi_suffix"):
                    suffix = sysconfig.get_config_var("EXT_SUFFIX")
                    name = name.removesuffix(suffix) + ".so"
                return name

        return command

    @classmethod
    def with_options(cls, **options):
        """The command with options, such as no_python_abi_suffix."""
        return cls._command(**options)


def _compile(name, sources, cflags, ldflags, includes, folder, verbose):
    headers = include_paths()
    if not os.path.isdir(headers[0]) and not includes:
        raise RuntimeError(
            f"the headers of torch are not installed in {headers[0]}: install the package, or name "
            "the folders in extra_include_paths"
        )
    os.makedirs(folder, exist_ok=True)
    compiler = get_cxx_compiler()
    common = [f for f in COMMON_FLAGS if not (f[:5] == "-std=" and _names_standard(cflags))]
    flags = [*common, *(f"-I{path}" for path in [*includes, *headers])]
    flags += [f"-I{sysconfig.get_paths()['include']}", *_extension_defines(name), *cflags]
    ends = [f"-L{TORCH_LIB_PATH}", f"-Wl,-rpath,{TORCH_LIB_PATH}", "-ltorch", *ldflags]
    digest = hashlib.sha256(repr((compiler, flags, ends)).encode())
    for source in sources:
        with open(source, "rb") as file:
            digest.update(file.read())
    target = os.path.join(folder, f"{name}-{digest.hexdigest()[:16]}.so")
    if os.path.exists(target):
        return target
    partial = f"{target}.{os.getpid()}.partial"
    command = [compiler, "-shared", *flags, *sources, "-o", partial, *ends]
    if verbose:
        print(" ".join(command))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Error building extension '{name}':\n{done.stdout}{done.stderr}")
    os.replace(partial, target)
    return target


def load(
    name,
    sources,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    is_standalone=False,
    keep_intermediates=True,
):
    """Compiles C++ sources into a library, unless that exists already, and loads it: as a Python
    module, or for its operators."""
    sources = [sources] if isinstance(sources, str) else list(sources)
    if with_cuda or any(source.endswith((".cu", ".cuh")) for source in sources):
        raise NotImplementedError("cpp_extension.load: CUDA sources are not implemented")
    if is_standalone:
        raise NotImplementedError("cpp_extension.load: programs of their own are not implemented")
    folder = build_directory or os.path.join(get_default_build_root(), name)
    path = _compile(
        name,
        sources,
        extra_cflags or [],
        extra_ldflags or [],
        extra_include_paths or [],
        folder,
        verbose,
    )
    if not is_python_module:
        torch.ops.load_library(path)
        return path
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _bindings(functions: str | list[str] | dict[str, str]) -> str:
    """A module of pybind11 with these functions."""
    if not _pybind11_include():
        raise RuntimeError(
            "load_inline: `functions` needs the headers of pybind11 (pip install pybind11)"
        )
    if isinstance(functions, str):
        functions = [functions]
    documented = functions if isinstance(functions, dict) else {name: name for name in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, doc in documented.items():
        quoted = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  m.def("{name}", &{name}, "{quoted}");')
    return "\n".join([*lines, "}"])


def load_inline(
    name,
    cpp_sources,
    cuda_sources=None,
    sycl_sources=None,
    functions=None,
    extra_cflags=None,
    extra_cuda_cflags=None,
    extra_sycl_cflags=None,
    extra_ldflags=None,
    extra_include_paths=None,
    build_directory=None,
    verbose=False,
    with_cuda=None,
    with_sycl=None,
    is_python_module=True,
    with_pytorch_error_handling=True,
    keep_intermediates=True,
    use_pch=False,
    no_implicit_headers=False,
):
    """load of source texts. `functions` names those that become functions of the module: a name, a
    list of names, or a dictionary from names to documentation."""
    if cuda_sources:
        raise NotImplementedError("load_inline: CUDA sources are not implemented")
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    folder = build_directory or os.path.join(get_default_build_root(), name)
    os.makedirs(folder, exist_ok=True)
    if not no_implicit_headers:
        texts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        texts.append(_bindings(functions))
    source = os.path.join(folder, "main.cpp")
    text = "\n".join(texts)
    # Unchanged text keeps its date, for build tools that look at it.
    if not os.path.exists(source) or pathlib.Path(source).read_text() != text:
        pathlib.Path(source).write_text(text)
    return load(
        name,
        [source],
        extra_cflags=extra_cflags,
        extra_ldflags=extra_ldflags,
        extra_include_paths=extra_include_paths,
        build_directory=folder,
        verbose=verbose,
        is_python_module=is_python_module,
    )
