"""Exported programs: the names. Exporting raises NotImplementedError."""

from torch import _later

__all__ = ["Dim", "ExportedProgram", "export", "load", "register_dataclass", "save"]


class _DimHint:
    """Whether a size may vary: Dim.AUTO, Dim.DYNAMIC or Dim.STATIC."""

    def __init__(self, kind) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"Dim.{self.kind}"


class Dim:
    """A named size of the inputs of a program, with bounds."""

    AUTO = _DimHint("AUTO")
    DYNAMIC = _DimHint("DYNAMIC")
    STATIC = _DimHint("STATIC")

    def __init__(self, name, *, min=None, max=None) -> None:
        low, high = 0 if min is None else min, float("inf") if max is None else max
        if high <= low:
            raise AssertionError(f"Cannot create Dim with inconsistent min={min}, max={max}")
        if not name.isidentifier():
            raise AssertionError(f"Dim name must be a valid identifier, got {name}")
        self.__name__, self.min, self.max = name, low, high

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


def dims(*names, min=None, max=None):
    """Several Dim at once."""
    return tuple(Dim(name, min=min, max=max) for name in names)


def register_dataclass(cls, *, serialized_type_name=None) -> None:
    """Makes a dataclass known as a nested input."""
    import dataclasses

    from torch.utils import _pytree as pytree

    if not dataclasses.is_dataclass(cls):
        raise AssertionError(f"Only dataclasses can be registered with this function: {cls}")
    pytree.register_dataclass(cls)


_SUBMODULES = _later.install(
    __name__,
    """
    exported_program: ExportedProgram ModuleCallEntry ModuleCallSignature default_decompositions
    graph_signature: ExportGraphSignature InputKind OutputKind InputSpec OutputSpec TensorArgument
    dynamic_shapes: refine_dynamic_shapes_from_suggested_fixes
    unflatten: UnflattenedModule unflatten
    passes: move_to_device_pass
    _trace: _export
    """,
)
globals().update(
    _later.names(
        __name__,
        "AdditionalInputs Constraint CustomDecompTable ExportBackwardSignature "
        "ExportGraphSignature ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature "
        "ShapesCollection UnflattenedModule default_decompositions draft_export export "
        "export_for_training load save",
    )
)
__getattr__ = _later.submodules(__name__, _SUBMODULES)
