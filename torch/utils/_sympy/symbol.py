"""Kinds of symbols by the prefix of their names."""

import enum

import sympy


class SymT(enum.Enum):
    """What a symbol stands for."""

    SIZE = 0
    FLOAT = 1
    UNBACKED_INT = 2
    UNBACKED_FLOAT = 3
    TMP = 4
    INDIRECT = 5
    PRECOMPUTED_SIZE = 6
    INDEX = 7
    RINDEX = 8
    TEMPLATE_INDEX = 9
    XBLOCK = 10
    YBLOCK = 11
    ZBLOCK = 12
    VIEW = 13
    HALIDE = 14


prefix_str = {
    SymT.SIZE: "s",
    SymT.UNBACKED_INT: "u",
    SymT.FLOAT: "zf",
    SymT.UNBACKED_FLOAT: "zuf",
    SymT.TMP: "tmp",
    SymT.INDIRECT: "indirect",
    SymT.PRECOMPUTED_SIZE: "ps",
    SymT.INDEX: "i",
    SymT.RINDEX: "r",
    SymT.TEMPLATE_INDEX: "idx",
    SymT.XBLOCK: "x",
    SymT.YBLOCK: "y",
    SymT.ZBLOCK: "z",
    SymT.VIEW: "view",
    SymT.HALIDE: "h",
}


def make_symbol(prefix: SymT, idx: int | str, **assumptions: bool) -> sympy.Symbol:
    """The symbol of a kind with this number."""
    return sympy.Symbol(f"{prefix_str[prefix]}{idx}", **assumptions)


def symbol_is_type(sym: sympy.Basic, prefix: SymT | tuple) -> bool:
    """Whether a symbol is of one of the kinds."""
    kinds = prefix if isinstance(prefix, tuple) else (prefix,)
    return sym.name.lower().rstrip("0123456789") in {prefix_str[kind] for kind in kinds}


def free_symbol_is_type(e: sympy.Basic, prefix: SymT | tuple) -> bool:
    """Whether an expression has a symbol of one of the kinds."""
    return any(symbol_is_type(symbol, prefix) for symbol in e.free_symbols)
