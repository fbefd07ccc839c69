"""All decompositions by name, as programs call them: `torch._decomp.decompositions.NAME`. They are
written in the files of their families."""

from torch._decomp import (
    activations,
    algebra,
    indexing,
    losses,
    normalization,
    random,
    sampling,
    shape,
)

for _family in (activations, algebra, indexing, losses, normalization, random, sampling, shape):
    for _name, _value in vars(_family).items():
        if callable(_value) and not _name.startswith("__"):
            globals().setdefault(_name, _value)
