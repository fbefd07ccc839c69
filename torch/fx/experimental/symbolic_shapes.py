"""Questions about sizes that may be symbolic. Sizes are plain numbers here, so the questions are
returned at once; what makes symbols raises NotImplementedError."""

import enum

from torch import _later


class DimDynamic(enum.Enum):
    """How a size may vary."""

    DYNAMIC = 0
    DUCK = 1
    STATIC = 2
    SIZE_LIKE_UNBACKED = 3
    INFER_STRIDE = 4
    UNBACKED = 5
    OBLIVIOUS_SIZE = 6


def free_symbols(val):
    """The symbols in a value: none."""
    return set()


free_unbacked_symbols = free_symbols


def is_symbolic(val) -> bool:
    """Whether a number is symbolic: no."""
    return False


def has_free_symbols(val) -> bool:
    """Whether a value holds symbols: no."""
    return False


def is_concrete_int(a) -> bool:
    """Whether a size is known: always."""
    return True


is_concrete_bool = is_concrete_float = is_concrete_int


def statically_known_true(x) -> bool:
    """Whether x holds for all sizes."""
    return bool(x)


guard_or_false = guard_or_true = guard_size_oblivious = statically_known_true


def sym_eq(x, y):
    """Whether two values, or two sequences of them, are equal."""
    return x == y


sym_and = statically_known_true


def guard_int(a):
    """a as an int."""
    return int(a)


hint_int = optimization_hint = guard_int


def guard_bool(a) -> bool:
    """a as a bool."""
    return bool(a)


def guard_scalar(a):
    """a itself."""
    return a


globals().update(
    _later.names(
        __name__,
        "Constraint ConstraintViolationError DivideByKey GuardOnDataDependentSymNode "
        "RelaxedUnspecConstraint ShapeEnv StatefulSymbolicContext StatelessSymbolicContext "
        "StrictMinMaxConstraint SymIntSymbolicContext canonicalize_bool_expr "
        "compute_unbacked_bindings definitely_true resolve_unbacked_bindings",
    )
)
