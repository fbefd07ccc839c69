"""Errors that programs catch around compiled functions, and those that steer a trace."""

from __future__ import annotations

import contextlib
import os
import traceback
import zlib
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from torch._dynamo.symbolic_convert import Frame
    from torch._dynamo.variables.base import VariableTracker


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class TorchDynamoException(RuntimeError):
    """What all of them are."""


class ForbiddenCallable(TorchDynamoException, AssertionError):
    """A function was called that must not be called in compiled code."""


class InvalidBackend(TorchDynamoException):
    """torch.compile was given the name of a backend that nobody registered."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Invalid backend: {name!r}, see `torch._dynamo.list_backends()` for available "
            "backends."
        )


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the tracer."""


class TorchRuntimeError(TorchDynamoException):
    """An operator raised while it was traced."""


class RestartAnalysis(TorchDynamoException):
    """A trace has to begin again."""

    def __init__(self, *args: object, restart_reason: str | None = None) -> None:
        super().__init__(*args)
        self.restart_reason = restart_reason


class SpeculationRestartAnalysis(RestartAnalysis):
    """A trace has to begin again and break the graph earlier."""


class UnspecializeRestartAnalysis(RestartAnalysis):
    """A trace has to begin again with a number as a symbol."""


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """A trace has to begin again with numbers as tensors."""


class CompileCollectiveRestartAnalysis(RestartAnalysis):
    """A trace has to begin again after the processes agreed."""


class SkipFrame(TorchDynamoException):
    """The function is run as it is."""


class SkipCodeRecursiveException(TorchDynamoException):
    """The function and all it calls are run as they are."""


class RecompileLimitExceeded(TorchDynamoException):
    """A function was compiled too often."""


class CacheLimitExceeded(SkipCodeRecursiveException):
    """A function was compiled too often and is run as it is."""


# Kinds of breaks that PyTorch's registry has a page for, and their numbers there.
_NUMBERS = {
    "Attempted to call function marked as skipped": 7,
    "Call to `torch._dynamo.graph_break()`": 25,
    "Observed exception": 88,
    "Data-dependent branching": 170,
}
_PAGES = "https://meta-pytorch.github.io/compile-graph-break-site/gb"
_HINT = (
    "`torch.compiler.disable` on a function around this keeps it out of the graph at one known "
    "place."
)


class Unsupported(TorchDynamoException):
    """Code that cannot be traced."""

    # The parts of the message, where the tracer found the break.
    gb_type: str | None = None
    gb_id: str | None = None
    context: str | None = None
    explanation: str | None = None
    hints: tuple[str, ...] = ()

    def __init__(self, msg: str = "", *, case_name: str | None = None) -> None:
        super().__init__(msg)
        self.msg = msg
        self.case_name = case_name
        self.real_stack: traceback.StackSummary | None = None

    @classmethod
    def of(
        cls, gb_type: str, context: str, explanation: str, hints: tuple[str, ...] = ()
    ) -> Unsupported:
        """A break of a kind, with what is known of it and what helps."""
        # A short name of the kind of break, the same in every version and process.
        number = _NUMBERS.get(gb_type)
        gb_id = f"GB{zlib.crc32(gb_type.encode()):08x}" if number is None else f"GB{number:04}"
        hints = hints or (_HINT,)
        lines = [gb_type, f"  Explanation: {explanation}"]
        lines += [f"  Hint: {hint}" for hint in hints]
        lines += ["", f"  Developer debug context: {context}", "", f"  Registry id: {gb_id}"]
        if number is not None:
            lines.append(f"  More about it: {_PAGES}/gb{number:04}.html")
        made = cls("\n".join([*lines, ""]), case_name=gb_type)
        made.gb_type, made.gb_id, made.context = gb_type, gb_id, context
        made.explanation, made.hints = explanation, hints
        return made

    def remove_from_stats(self) -> None:
        """The break is not counted."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised."""

    def __init__(self, backend_fn: object, inner_exception: Exception | None = None) -> None:
        name = getattr(backend_fn, "__name__", str(backend_fn))
        self.backend_name = name
        self.inner_exception = inner_exception
        kind = type(inner_exception).__name__
        super().__init__(f"backend={name!r} raised:\n{kind}: {inner_exception}\n{_more()}")


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function would be compiled too often."""


class RecompileError(TorchDynamoException):
    """A function would be compiled again where that is forbidden."""


class ResetRequired(TorchDynamoException):
    """torch._dynamo.reset() is needed first."""

    def __init__(self) -> None:
        super().__init__(
            "Must call `torch._dynamo.reset()` before changing backends. Detected two calls to "
            "`torch.compile()` with a different backend compiler arguments."
        )


class ArgsMismatchError(Unsupported):
    """A traced function is called with arguments that do not fit it."""


class AttributeMutationError(Unsupported):
    """An attribute that cannot be set while tracing."""


class UncapturedHigherOrderOpError(TorchDynamoException):
    """The body of a higher-order operator cannot be traced."""


class IncorrectUsage(Exception):
    """A function of torch._dynamo was used where it has no meaning."""


class UserErrorType:
    """Kinds of UserError."""

    DYNAMIC_CONTROL_FLOW = "dynamic_control_flow"
    ANTI_PATTERN = "anti_pattern"
    STANDARD_LIBRARY = "standard_library"
    CONSTRAINT_VIOLATION = "constraint_violation"
    DYNAMIC_DIM = "dynamic_dim"
    INVALID_INPUT = "invalid_input"
    INVALID_OUTPUT = "invalid_output"
    UNSUPPORTED_ALIASED_MUTATED_DYNAMIC_INPUTS = "unsupported_aliased_mutated_dynamic_inputs"


class UserError(Unsupported):
    """Code that breaks the rules of tracing."""

    def __init__(
        self, error_type: str = "anti_pattern", msg: str = "", case_name: str | None = None
    ) -> None:
        super().__init__(msg, case_name=case_name)
        self.error_type = error_type
        self.message = msg


class ObservedException(TorchDynamoException):
    """An exception of the traced program on its way to its handler."""

    def __init__(self, value: VariableTracker) -> None:
        super().__init__(value.describe())
        self.value = value
        if hasattr(value, "raised"):
            value.raised = True


def unimplemented(
    gb_type: str, context: str, explanation: str, hints: tuple[str, ...] = ()
) -> NoReturn:
    """Breaks the graph: the code cannot be traced."""
    raise Unsupported.of(gb_type, context, explanation, hints)


def raise_observed(tx: Frame, error: BaseException) -> NoReturn:
    """Raises an exception inside the traced program."""
    from torch._dynamo.variables.exceptions import exception_from_value

    raise_value(tx, exception_from_value(tx, error))


def raise_value(tx: Frame, value: VariableTracker) -> NoReturn:
    """Raises an exception object inside the traced program, in the context of the one that is being
    handled."""
    tx.chain_context(value)
    raise ObservedException(value)


def raise_error(tx: Frame, cls: type[BaseException], *args: object) -> NoReturn:
    """Raises a new exception inside the traced program."""
    raise_observed(tx, cls(*args))


def raise_key_error(tx: Frame, key: VariableTracker) -> NoReturn:
    """Raises KeyError with the key itself inside the traced program."""
    from torch._dynamo.variables.exceptions import ExceptionVariable

    raise_value(tx, ExceptionVariable(KeyError, [key]))


def is_of_signal(error: BaseException) -> bool:
    """Whether the handler of a signal raised an exception, which is the program's own."""
    import signal

    handlers = (signal.getsignal(number) for number in signal.valid_signals())
    codes = {getattr(getattr(h, "__func__", h), "__code__", None) for h in handlers if callable(h)}
    link = error.__traceback__
    while link is not None:
        if link.tb_frame.f_code in codes:
            return True
        link = link.tb_next
    return False


def is_of_tracer(error: BaseException) -> bool:
    """Whether code of this package raised an exception, and not a function of the program that the
    trace called."""
    link = error.__traceback__
    while link is not None and link.tb_next is not None:
        link = link.tb_next
    return link is not None and link.tb_frame.f_code.co_filename.startswith(_PACKAGE)


def forget_frames(error: BaseException | None, handled: BaseException | None) -> None:
    """Takes the tracebacks from an exception that is kept, and from those that led to it up to the
    one that the program was handling."""
    while error is not None and error is not handled and error.__traceback__ is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


_OF_CONTEXTS = {
    getattr(contextlib._GeneratorContextManager, name).__code__
    for name in ("__enter__", "__exit__")
}


def close_contexts(error: BaseException) -> None:
    """Ends generators of contexts that an exception left halfway, as the handler of a signal may.
    Otherwise each would put back what it changed when the exception is freed: long after."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        found = pending.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        pending += [found.__cause__, found.__context__]
        link = found.__traceback__
        while link is not None:
            if link.tb_frame.f_code in _OF_CONTEXTS:
                link.tb_frame.clear()
            link = link.tb_next


def format_user_stack(frames: list[traceback.FrameSummary]) -> str:
    """The user's lines, as a traceback shows them."""
    return "".join(traceback.StackSummary.from_list(frames).format())


_MORE = (
    "\nSet TORCHDYNAMO_VERBOSE=1 for the internal stack trace (please do this especially if "
    "you're reporting a bug to PyTorch). For even more developer context, set "
    'TORCH_LOGS="+dynamo"\n'
)


def _more() -> str:
    """How to see more of an error, for those who do not see all yet."""
    return "" if os.environ.get("TORCHDYNAMO_VERBOSE") else _MORE


def with_user_code(error: Exception, frames: list[traceback.FrameSummary]) -> None:
    """Adds the user's lines to the message of an error."""
    if not getattr(error, "real_stack", None):
        error.real_stack = traceback.StackSummary.from_list(frames)
        text = str(error.args[0]) if error.args else ""
        if not text.endswith("\n"):
            text += "\n"
        lines = " " + format_user_stack(frames)
        error.args = (f"{text}\nfrom user code:\n{lines}{_more()}", *error.args[1:])
