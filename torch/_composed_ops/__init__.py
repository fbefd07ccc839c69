"""Operators of `torch.ops.aten` that are written in terms of others: rarely called, so defined in
Python and only when a program asks for one. Each family is a module; registry.py declares them."""

from torch._composed_ops import (  # noqa: F401
    arithmetic,
    attention,
    checks,
    conv,
    derivatives,
    elsewhere,
    engines,
    fake_quantise,
    forward_mode,
    leftovers,
    nested,
    normalise,
    optimisers,
    recurrent,
    self_tests,
    sparse,
    sparse_outs,
    state,
)
