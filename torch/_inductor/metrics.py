"""What the compiler made since the last reset: tests of fusion count kernels and bytes."""

from __future__ import annotations

__all__ = ["reset"]

generated_kernel_count = 0
generated_cpp_vec_kernel_count = 0
num_bytes_accessed = 0
ir_nodes_pre_fusion = 0
num_calls = 0
# Graphs that are run as they are, with the reason.
not_lowered: list[str] = []


def reset() -> None:
    """Starts counting anew."""
    global generated_kernel_count, generated_cpp_vec_kernel_count, num_bytes_accessed
    global ir_nodes_pre_fusion, num_calls
    generated_kernel_count = generated_cpp_vec_kernel_count = num_bytes_accessed = 0
    ir_nodes_pre_fusion = num_calls = 0
    not_lowered.clear()
