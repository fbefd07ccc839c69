"""What a compiler keeps while it traces. Nothing traces: there is no context."""

from torch import _later


def detect_fake_mode(inputs=None) -> None:
    """The mode in which tensors have no data: none."""
    return None


def active_fake_mode() -> None:
    """The mode in force in which tensors have no data: none."""
    return None


globals().update(
    _later.names(__name__, "CompileContext Guard Source TracingContext compile_context")
)
