"""Errors that programs catch around compiled functions."""


class TorchDynamoException(RuntimeError):
    """What all of them are."""


class InvalidBackend(TorchDynamoException):
    """torch.compile was given the name of a backend that nobody registered."""

    def __init__(self, name) -> None:
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


class TensorifyScalarRestartAnalysis(RestartAnalysis):
    """A trace has to begin again with numbers as tensors."""


class Unsupported(TorchDynamoException):
    """Code that cannot be traced."""


class BackendCompilerFailed(TorchDynamoException):
    """A backend raised."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function would be compiled too often."""


class ResetRequired(TorchDynamoException):
    """torch._dynamo.reset() is needed first."""


class UserError(Unsupported):
    """Code that breaks the rules of tracing."""
