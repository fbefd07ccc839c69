"""Which operators stay whole in a graph of core operators, though a decomposition is known."""

from __future__ import annotations

from torch._ops import OperatorBase, OpOverload

__all__ = ["kept_whole"]

# Core operators, and those whose composition loses something: a fused kernel, the stream of random
# numbers, one read of each element. A compiler that wants them decomposed asks by name.
_KEPT = frozenset(
    """
    _log_softmax _native_batch_norm_legit _native_batch_norm_legit_functional
    _native_batch_norm_legit_no_training _softmax _to_copy addbmm addbmm_ addmm addmv addmv_
    as_strided_copy clamp_max_ clamp_min_ dist elu embedding gelu hardshrink_backward hardtanh
    index_select lcm leaky_relu lift linalg_vector_norm masked_scatter narrow_copy native_batch_norm
    native_dropout native_group_norm native_layer_norm permute_copy relu relu_
    replication_pad1d_backward replication_pad2d_backward replication_pad3d_backward
    rrelu_with_noise_backward select_copy selu_ slice_copy softshrink_backward split_with_sizes
    tril_indices triu_indices unbind_copy uniform view_copy
    """.split()
)


def kept_whole(op: OperatorBase) -> bool:
    """Whether the core table leaves an operator as it is."""
    return isinstance(op, OpOverload) and op.overloadpacket.__name__ in _KEPT
