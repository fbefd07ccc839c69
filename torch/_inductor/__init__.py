"""The kernel generator's names: its settings can be set; compiling raises NotImplementedError."""

from torch import _later
from torch._inductor import config
from torch.compiler import cudagraph_mark_step_begin  # noqa: F401

__all__ = ["aoti_compile_and_package", "aoti_load_package", "compile", "config"]

globals().update(
    _later.names(
        __name__,
        "aoti_compile_and_package aoti_load_package compile list_mode_options list_options "
        "standalone_compile",
    )
)
_SUBMODULES = _later.install(
    __name__,
    """
    codecache: extract_tensor_metadata_for_cache_key
    cpp_builder: get_cpp_compiler
    cpu_vec_isa: pick_vec_isa
    package: load_package package_aoti
    runtime.cache_dir_utils: cache_dir
    utils: fresh_inductor_cache fresh_cache
    """,
)
__getattr__ = _later.submodules(__name__, _SUBMODULES | {"exc"})
