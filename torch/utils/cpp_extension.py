"""Building C++ and CUDA extensions against the headers of this package: operators registered with
TORCH_LIBRARY, and Python modules written with pybind11 (torch/extension.h; its headers come from
the package pybind11) or to CPython's own interface."""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import sysconfig

import torch
from torch.utils import _extension_build as _build

__all__ = [
    "BuildExtension",  # noqa: F822, made by __getattr__
    "CUDAExtension",
    "CppExtension",
    "get_default_build_root",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
    "verify_ninja_availability",
]

_TORCH_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TORCH_LIB_PATH = os.path.join(_TORCH_PATH, "lib")
ROCM_HOME = None
IS_HIP_EXTENSION = False
COMMON_NVCC_FLAGS = _build.NVCC_FLAGS
# What an extension does not use is not asked for when it is loaded.
_FRONT_END = ["-Wl,--push-state,--as-needed", "-ltorch_nn", "-ltorch_c10d", "-Wl,--pop-state"]


def _find_cuda_home():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    if home:
        return home
    if os.path.isdir("/usr/local/cuda"):
        return "/usr/local/cuda"
    nvcc = shutil.which("nvcc")
    return os.path.dirname(os.path.dirname(os.path.realpath(nvcc))) if nvcc else None


CUDA_HOME = _find_cuda_home()


def _join_cuda_home(*paths) -> str:
    if CUDA_HOME is None:
        raise OSError(
            "CUDA_HOME environment variable is not set. Please set it to your CUDA install root."
        )
    return os.path.join(CUDA_HOME, *paths)


def _nvcc() -> str | None:
    """The compiler of CUDA sources; None where there is none."""
    named = os.environ.get("PYTORCH_NVCC")
    if named:
        return named
    if CUDA_HOME is not None and os.path.exists(os.path.join(CUDA_HOME, "bin", "nvcc")):
        return os.path.join(CUDA_HOME, "bin", "nvcc")
    return shutil.which("nvcc")


def _cuda_library_folder() -> str:
    folder = _join_cuda_home("lib64")
    return folder if os.path.isdir(folder) else _join_cuda_home("lib")


def _get_cuda_arch_flags(cflags=None):
    return _build.cuda_arch_flags(list(cflags or []))


def _pybind11_include() -> list[str]:
    """The folder of pybind11's headers; empty where it is not installed."""
    found = importlib.util.find_spec("pybind11")
    if found is None or found.origin is None:
        return []
    return [os.path.join(os.path.dirname(found.origin), "include")]


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """The folders of headers: this package's, pybind11's where it is installed, and for "cuda" the
    toolkit's."""
    own = [os.path.join(_TORCH_PATH, "include")] if torch_include_dirs else []
    cuda = [_join_cuda_home("include")] if device_type == "cuda" else []
    return [*own, *_pybind11_include(), *cuda]


def library_paths(device_type="cpu", torch_include_dirs=True, cross_target_platform=None):
    """The folders of shared libraries."""
    own = [TORCH_LIB_PATH] if torch_include_dirs else []
    return [*own, *([_cuda_library_folder()] if device_type == "cuda" else [])]


def is_ninja_available() -> bool:
    """Whether ninja is installed."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Errors without ninja."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


def get_default_build_root() -> str:
    """The folder for what load builds where TORCH_EXTENSIONS_DIR does not name one."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "torch_extensions")


def _get_build_directory(name: str, verbose: bool) -> str:
    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    if root is None:
        python = f"py{sys.version_info.major}{sys.version_info.minor}{sys.abiflags}"
        root = os.path.join(get_default_build_root(), f"{python}_{torch.__version__}")
    if verbose:
        print(f"Using {root} as PyTorch extensions root...")
    return os.path.join(root, name)


def get_cxx_compiler() -> str:
    """The compiler of C++: what CXX says, else c++."""
    return os.environ.get("CXX", "c++")


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, tuple[int, ...]]:
    """Whether what a compiler makes fits this package, and its version. A g++ before
    9 does not know all of C++17."""
    command = [*shlex.split(compiler), "-dumpfullversion", "-dumpversion"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return False, ()
    version = tuple(int(part) for part in done.stdout.strip().split(".") if part.isdigit())
    return not check_compiler_is_gcc(compiler) or version >= (9,), version


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler of C++ is there."""
    return shutil.which(shlex.split(compiler)[0]) is not None


def check_compiler_is_gcc(compiler) -> bool:
    """Whether a compiler is g++."""
    path = shutil.which(shlex.split(compiler)[-1])
    return path is not None and "g++" in os.path.basename(os.path.realpath(path))


def _extension_defines(name: str) -> list[str]:
    """What sources ask for: the name of their module, and that they are part of an extension."""
    return [
        "-DTORCH_API_INCLUDE_EXTENSION_H",
        f"-DTORCH_EXTENSION_NAME={name.rsplit('.', 1)[-1]}",
    ]


def _with_paths(kwargs: dict, device_type: str) -> dict:
    """Arguments of setuptools.Extension with the folders and the library of this package."""
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths(device_type)]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), *library_paths(device_type)]
    kwargs["runtime_library_dirs"] = [*kwargs.get("runtime_library_dirs", []), TORCH_LIB_PATH]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "torch"]
    kwargs["extra_link_args"] = [*kwargs.get("extra_link_args", []), *_FRONT_END]
    kwargs["language"] = "c++"
    return kwargs


def CppExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension with the folders and the library of this package."""
    import setuptools

    return setuptools.Extension(name, sources, *args, **_with_paths(kwargs, "cpu"))


def CUDAExtension(name, sources, *args, **kwargs):
    """A setuptools.Extension that also sees the headers and libraries of the CUDA toolkit; its
    sources that end in .cu are compiled by nvcc. With `dlink` the device code of several sources
    is linked; `dlink_libraries` names libraries of device code."""
    import setuptools

    dlink_libraries = kwargs.pop("dlink_libraries", [])
    dlink = kwargs.pop("dlink", False) or bool(dlink_libraries)
    kwargs["libraries"] = [*kwargs.get("libraries", []), "cudart"]
    extension = setuptools.Extension(name, sources, *args, **_with_paths(kwargs, "cuda"))
    extension.cresset_dlink = list(dlink_libraries) if dlink else None
    return extension


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


def _flags_for(extra, which: str) -> list[str]:
    """The flags of one compiler in extra_compile_args, which is a list for both or a dictionary."""
    if isinstance(extra, dict):
        return list(extra.get(which, []))
    return list(extra or [])


def _macro_flags(macros) -> list[str]:
    """Definitions as setuptools keeps them: (NAME,) undefines, (NAME, None), (NAME, VALUE)."""
    flags = []
    for macro in macros or []:
        if len(macro) == 1:
            flags.append(f"-U{macro[0]}")
        else:
            flags.append(f"-D{macro[0]}" if macro[1] is None else f"-D{macro[0]}={macro[1]}")
    return flags


def _object_name(source: str) -> str:
    """cuda_extension.cpp and cuda_extension.cu may stand beside each other."""
    stem = os.path.splitext(source)[0].replace("..", "__").lstrip("/")
    return stem + (".cuda.o" if _build.is_cuda_source(source) else ".o")


def _device_link(objects: list[str], folder: str, flags: list[str], libraries: list[str]):
    """The step that links the device code of several objects."""
    target = os.path.join(folder, "dlink.o")
    nvcc = _nvcc()
    if nvcc is None:
        raise OSError("linking device code needs nvcc: set CUDA_HOME to your CUDA install root")
    command = [nvcc, *objects, "-o", target, "-dlink", "--compiler-options", "-fPIC"]
    command += [f"-L{_cuda_library_folder()}", *(f"-l{each}" for each in libraries), "-lcudadevrt"]
    command += [*flags, *_get_cuda_arch_flags(flags)]
    return _build.Step(command, target, objects, compiles=False)


def _compile_extension(extension, sources, output_dir, macros, include_dirs, preargs, depends):
    """Compiles the sources of a setuptools.Extension and returns the objects."""
    shared, system_paths = [], include_paths()
    for path in dict.fromkeys(map(os.path.abspath, include_dirs)):
        shared += ["-isystem" if path in system_paths else "-I", path]
    shared += [*_macro_flags(macros), *_extension_defines(extension.name), *(preargs or [])]
    extra = extension.extra_compile_args
    system = shlex.split(os.environ.get("CFLAGS", "")) + shlex.split(os.environ.get("CXXFLAGS", ""))
    cxx, nvcc = ["-O2", *system, *_flags_for(extra, "cxx")], _flags_for(extra, "nvcc")
    folder = os.path.abspath(output_dir)
    steps = []
    for source in sources:
        target = os.path.join(folder, _object_name(source))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        step = _build.compile_step(
            os.path.abspath(source),
            target,
            compiler=get_cxx_compiler(),
            nvcc=_nvcc(),
            shared_flags=shared,
            cxx_flags=cxx,
            nvcc_flags=nvcc,
        )
        step.after = [os.path.abspath(path) for path in depends or []]
        steps.append(step)
    dlink = getattr(extension, "cresset_dlink", None)
    if dlink is not None:
        made = [step.target for step in steps if _build.is_cuda_source(step.inputs[0])]
        flags = _flags_for(extra, "nvcc_dlink")
        steps.append(_device_link(made, folder, flags, dlink))
    _build.run_steps(steps, os.path.join(folder, extension.name), verbose=True)
    return [step.target for step in steps]


def _build_extension_class() -> type:
    """The class BuildExtension, made when it is first asked for: setuptools is slow to import and
    not always there."""
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):
        """The setuptools command build_ext for such extensions. Options: no_python_abi_suffix
        leaves Python's version out of the file's name; use_ninja is accepted, since ninja is used
        where it is installed."""

        _options: dict = {}

        @classmethod
        def with_options(cls, **options):
            """The command with options, such as no_python_abi_suffix."""
            return type(cls.__name__, (cls,), {"_options": {**cls._options, **options}})

        def build_extension(self, ext) -> None:
            usual = self.compiler.compile

            def compile_objects(
                sources,
                output_dir=None,
                macros=None,
                include_dirs=None,
                debug=0,
                extra_preargs=None,
                extra_postargs=None,
                depends=None,
            ):
                folders = [*(include_dirs or []), *self.compiler.include_dirs]
                folders.append(_build.python_include())
                return _compile_extension(
                    ext, sources, output_dir, macros, folders, extra_preargs, depends
                )

            for suffix in (*_build.CUDA_SUFFIXES, ".cpp", ".cc", ".cxx", ".c++"):
                if suffix not in self.compiler.src_extensions:
                    self.compiler.src_extensions.append(suffix)
            self.compiler.compile = compile_objects
            try:
                super().build_extension(ext)
            finally:
                self.compiler.compile = usual

        def get_ext_filename(self, ext_name):
            name = super().get_ext_filename(ext_name)
            if self._options.get("no_python_abi_suffix"):
                suffix = sysconfig.get_config_var("EXT_SUFFIX")
                name = name.removesuffix(suffix) + ".so"
            return name

    BuildExtension.__module__ = __name__
    BuildExtension.__qualname__ = "BuildExtension"
    return BuildExtension


def __getattr__(name: str):
    if name == "BuildExtension":
        globals()[name] = _build_extension_class()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# ---- loading at run time


class _Versions:
    """Which build of a name this process has loaded. A library that is in memory cannot be
    replaced, so a changed source becomes a module with another name."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def name_for(self, name: str, digest: str) -> str:
        known, version = self._known.get(name, (digest, 0))
        if known != digest:
            version += 1
        self._known[name] = (digest, version)
        return f"{name}_v{version}" if version else name


_versions = _Versions()


def _digest(*parts) -> str:
    made = hashlib.sha256()
    for part in parts:
        made.update(repr(part).encode())
    return made.hexdigest()


@contextlib.contextmanager
def _locked(folder: str):
    """One process at a time builds in a folder; a lock of the system's ends with its process."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _header_step(folder: str, flags: list[str]):
    """The step that parses torch/extension.h once for all sources."""
    header = os.path.join(folder, "precompiled.h")
    if not os.path.exists(header):
        pathlib.Path(header).write_text("#include <torch/extension.h>\n")
    target = f"{header}.gch"
    command = [*shlex.split(get_cxx_compiler()), "-MMD", "-MF", f"{target}.d", "-fPIC", *flags]
    return _build.Step([*command, "-x", "c++-header", header, "-o", target], target, [header])


def _link_step(objects, target: str, ldflags, with_cuda: bool, is_standalone: bool):
    ends = [f"-L{TORCH_LIB_PATH}", f"-Wl,-rpath,{TORCH_LIB_PATH}", "-ltorch", *_FRONT_END]
    if with_cuda:
        ends += [f"-L{_cuda_library_folder()}", "-lcudart"]
    kind = [] if is_standalone else ["-shared"]
    command = [*shlex.split(get_cxx_compiler()), *objects, *kind, *ldflags, *ends, "-o", target]
    return _build.Step(command, target, list(objects), compiles=False)


def _steps(name, sources, cflags, cuda_cflags, ldflags, includes, folder, with_cuda, **kind):
    """All that makes the library of an extension, and the library's path."""
    shared: list[str] = []
    for path in includes:
        shared += ["-I", os.path.abspath(path)]
    device = "cuda" if with_cuda else "cpu"
    for path in [*include_paths(device), _build.python_include()]:
        shared += ["-isystem", path]
    shared += _extension_defines(name)
    cxx_flags, steps, after = ["-O2", *cflags], [], []
    if kind["use_pch"]:
        standard = [] if _build.names_standard(cflags) else ["-std=c++17"]
        header = _header_step(folder, [*standard, *shared, *cxx_flags])
        steps.append(header)
        after = [header.target]
        cxx_flags += ["-include", header.inputs[0]]
    for source in sources:
        step = _build.compile_step(
            os.path.abspath(source),
            os.path.join(folder, os.path.basename(_object_name(source))),
            compiler=get_cxx_compiler(),
            nvcc=_nvcc(),
            shared_flags=shared,
            cxx_flags=cxx_flags,
            nvcc_flags=cuda_cflags,
        )
        step.after = after
        steps.append(step)
    objects = [step.target for step in steps if step.target not in after]
    target = os.path.join(folder, name + ("" if kind["is_standalone"] else ".so"))
    steps.append(_link_step(objects, target, ldflags, with_cuda, kind["is_standalone"]))
    return steps, target


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
    """Compiles C++ and CUDA sources, those that changed, and loads the library: as a Python
    module, or for its operators. With `is_standalone` it is a program, whose path is returned."""
    return _load(
        name,
        [sources] if isinstance(sources, str) else list(sources),
        [extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths],
        build_directory,
        verbose,
        with_cuda,
        with_sycl,
        is_python_module=is_python_module and not is_standalone,
        is_standalone=is_standalone,
        use_pch=False,
    )


def _load(
    name,
    sources,
    options,
    build_directory,
    verbose,
    with_cuda,
    with_sycl,
    *,
    is_python_module,
    is_standalone,
    use_pch,
):
    if with_sycl or any(source.endswith(".sycl") for source in sources):
        raise NotImplementedError("cpp_extension.load: SYCL sources are not implemented")
    cflags, cuda_cflags, ldflags, includes = (
        [each] if isinstance(each, str) else list(each or []) for each in options
    )
    if with_cuda is None:
        with_cuda = any(map(_build.is_cuda_source, sources))
    folder = os.path.abspath(build_directory or _get_build_directory(name, verbose))
    texts = [pathlib.Path(source).read_bytes() for source in sources]
    versioned = _versions.name_for(name, _digest(sources, texts, options, with_cuda))
    with _locked(folder):
        steps, target = _steps(
            versioned,
            sources,
            cflags,
            cuda_cflags,
            ldflags,
            includes,
            folder,
            with_cuda,
            is_standalone=is_standalone,
            use_pch=use_pch,
        )
        try:
            _build.run_steps(steps, folder, verbose)
        except RuntimeError as error:
            raise RuntimeError(f"Error building extension '{name}': {error}") from error
    if is_standalone:
        return target
    if not is_python_module:
        torch.ops.load_library(target)
        return target
    if verbose:
        print(f"Loading extension module {versioned}...")
    spec = importlib.util.spec_from_file_location(versioned, target)
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
    if not isinstance(functions, (list, dict)):
        raise ValueError(f"Expected 'functions' to be a list or dict, but was {type(functions)}")
    documented = functions if isinstance(functions, dict) else {name: name for name in functions}
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, doc in documented.items():
        quoted = doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'  m.def("{name}", &{name}, "{quoted}");')
    return "\n".join([*lines, "}"])


def _write_source(folder: str, file: str, texts: list[str]) -> str:
    """Unchanged text keeps its date, so that it is not compiled again."""
    path = pathlib.Path(folder, file)
    text = "\n".join(texts)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return str(path)


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
    list of names, or a dictionary from names to documentation. With `use_pch` the headers are
    parsed once for all builds in the folder."""
    if sycl_sources:
        raise NotImplementedError("load_inline: SYCL sources are not implemented")
    texts = [cpp_sources] if isinstance(cpp_sources, str) else list(cpp_sources)
    folder = os.path.abspath(build_directory or _get_build_directory(name, verbose))
    os.makedirs(folder, exist_ok=True)
    if not no_implicit_headers:
        texts.insert(0, "#include <torch/extension.h>")
    if functions is not None:
        texts.append(_bindings(functions))
    sources = [_write_source(folder, "main.cpp", texts)]
    if cuda_sources:
        device = [cuda_sources] if isinstance(cuda_sources, str) else list(cuda_sources)
        if not no_implicit_headers:
            headers = ["torch/types.h", "cuda.h", "cuda_runtime.h"]
            device = [*(f"#include <{header}>" for header in headers), *device]
        sources.append(_write_source(folder, "cuda.cu", device))
    return _load(
        name,
        sources,
        [extra_cflags, extra_cuda_cflags, extra_ldflags, extra_include_paths],
        folder,
        verbose,
        with_cuda,
        with_sycl,
        is_python_module=is_python_module,
        is_standalone=False,
        use_pch=use_pch,
    )
