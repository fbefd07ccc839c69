"""Building C++ extensions against the headers of this package. What works is what exists: operators
registered with TORCH_LIBRARY, and Python modules written to CPython's own interface. There are no
pybind11 converters (torch/extension.h) and no CUDA extensions yet."""

import hashlib
import os
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


def include_paths(device_type="cpu", torch_include_dirs=True):
    """The folders of headers."""
    return [os.path.join(_PACKAGE, "include")] if torch_include_dirs else []


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


def check_compiler_is_gcc(compiler) -> bool:
    """Whether a compiler is g++."""
    return "g++" in os.path.basename(compiler)


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
    kwargs["extra_compile_args"] = [*COMMON_FLAGS, *compile_args]
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
    compiler = os.environ.get("CXX", "c++")
    flags = [*COMMON_FLAGS, *(f"-I{path}" for path in [*includes, *headers])]
    flags += [f"-I{sysconfig.get_paths()['include']}", *cflags]
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
    """load of source texts. Bindings cannot be generated from `functions`: the text registers what
    it offers."""
    if functions:
        raise NotImplementedError("load_inline: bindings for `functions` are not implemented")
    if cuda_sources:
        raise NotImplementedError("load_inline: CUDA sources are not implemented")
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    folder = build_directory or os.path.join(get_default_build_root(), name)
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(folder, "main.cpp")
    with open(source, "w") as file:
        file.write("\n".join(texts))
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
