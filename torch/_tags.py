"""torch.Tag: what an operator's definition says about it beyond its schema."""

import enum

_NAMES = (
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated "
    "inplace inplace_view maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides "
    "needs_fixed_stride_order nondeterministic_bitwise nondeterministic_seeded out out_variant "
    "pointwise pt2_compliant_tag reduction view_copy"
).split()

Tag = enum.IntEnum("Tag", {name: i for i, name in enumerate(_NAMES)}, module="torch")
Tag.__str__ = lambda self: f"Tag.{self.name}"


def parse(names):
    """The tags of the given names; names that are no tags are left out."""
    return [
        Tag[name.removeprefix("Tag.")]
        for name in names
        if name.removeprefix("Tag.") in Tag.__members__
    ]
