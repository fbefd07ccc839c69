"""How this torch was built and which threads it uses, as text."""

import torch


def show():
    """A readable account of the build."""
    return torch._C._show_config()


def _cxx_flags() -> str:
    """The flags of the C++ compiler, as far as the build tells them."""
    return torch._C._show_config()


def parallel_info() -> str:
    """A readable account of the threads."""
    return (
        "ATen/Parallel:\n"
        f"\tat::get_num_threads() : {torch.get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {torch.get_num_interop_threads()}\n"
        "ATen parallel backend: native thread pool\n"
    )
