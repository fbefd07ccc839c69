"""The parser of patterns, under the name functorch gave it."""

from torch._functorch._einops_pattern import (
    AnonymousAxis,
    ParsedExpression,
    _ellipsis,
    parse_pattern,
    validate_rearrange_expressions,
)

__all__ = [
    "AnonymousAxis",
    "ParsedExpression",
    "_ellipsis",
    "parse_pattern",
    "validate_rearrange_expressions",
]
