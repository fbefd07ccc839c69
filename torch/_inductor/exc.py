"""Errors of the compiler of graphs."""

from __future__ import annotations

__all__ = [
    "CUDACompileError",
    "CppCompileError",
    "CppWrapperCodegenError",
    "InductorError",
    "InvalidCxxCompiler",
    "LoweringException",
    "MissingOperatorWithDecomp",
    "MissingOperatorWithoutDecomp",
    "OperatorIssue",
    "SubgraphLoweringException",
]


class InductorError(RuntimeError):
    """The compiler of graphs failed."""


class OperatorIssue(RuntimeError):
    """An operator cannot be lowered."""

    @staticmethod
    def operator_str(target: object, args: tuple, kwargs: dict[str, object]) -> str:
        """The call, one argument a line."""
        lines = [f"target: {target}"]
        lines += [f"args[{i}]: {arg}" for i, arg in enumerate(args)]
        if kwargs:
            lines.append(f"kwargs: {kwargs}")
        return "\n  ".join(lines)


class LoweringException(OperatorIssue):
    """The lowering of an operator raised."""

    def __init__(
        self, exc: Exception, target: object, args: tuple, kwargs: dict[str, object]
    ) -> None:
        super().__init__(
            f"{type(exc).__name__}: {exc}\n  {self.operator_str(target, args, kwargs)}"
        )


class SubgraphLoweringException(RuntimeError):
    """The lowering of a graph inside of a graph failed."""


class MissingOperatorWithDecomp(OperatorIssue):
    """An operator has no lowering, though it could be decomposed."""

    def __init__(self, target: object, args: tuple, kwargs: dict[str, object]) -> None:
        super().__init__(
            f"missing lowering\n  {self.operator_str(target, args, kwargs)}\n"
            f"There is a decomposition available for {target}: add it with "
            "torch._inductor.decomposition.register_decomposition"
        )


class MissingOperatorWithoutDecomp(OperatorIssue):
    """An operator has no lowering."""

    def __init__(self, target: object, args: tuple, kwargs: dict[str, object]) -> None:
        super().__init__(f"missing lowering\n  {self.operator_str(target, args, kwargs)}")


class InvalidCxxCompiler(RuntimeError):
    """No C++ compiler can be run."""

    def __init__(self) -> None:
        from torch._inductor import config

        super().__init__(f"No working C++ compiler found in cpp.cxx = {config.cpp.cxx}")


class CppWrapperCodegenError(RuntimeError):
    """A graph cannot be written as a C++ program."""

    def __init__(self, msg: str) -> None:
        super().__init__(f"C++ wrapper codegen error: {msg}")


class CppCompileError(RuntimeError):
    """A C++ compiler refused generated code."""

    def __init__(self, cmd: list[str], output: str | bytes) -> None:
        text = output.decode() if isinstance(output, bytes) else output
        super().__init__(f"C++ compile error\n\nCommand:\n{' '.join(cmd)}\n\nOutput:\n{text}")
        self.cmd, self.output = cmd, text

    def __reduce__(self) -> tuple:
        return type(self), (self.cmd, self.output)


class CUDACompileError(CppCompileError):
    """The CUDA compiler refused generated code."""
