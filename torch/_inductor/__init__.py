"""The kernel generator's names: its settings can be set; compiling raises NotImplementedError."""

from torch import _later
from torch._inductor import config

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
    package: load_package package_aoti
    utils: fresh_inductor_cache fresh_cache
    """,
)
__getattr__ = _later.submodules(__name__, _SUBMODULES)
