"""Types of values from the signatures of what makes them."""

import inspect
import typing
from typing import Any

import torch
import torch.fx
from torch.fx import Transformer
from torch.fx.node import Target
from torch.fx.operator_schemas import get_signature_for_torch_op

__all__ = ["AnnotateTypesWithSchema"]

_ANNOTATED_FUNCTIONAL = dict.fromkeys(
    "relu gelu silu softmax linear conv1d conv2d conv3d batch_norm dropout".split(), torch.Tensor
)


class AnnotateTypesWithSchema(Transformer):
    """Notes on nodes the types that functions, modules and attributes say they give."""

    def __init__(
        self,
        module: torch.nn.Module,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call, with the type on which all signatures agree."""
        kind = None
        if self.annotate_functionals:
            if getattr(target, "__module__", None) == "torch.nn.functional":
                kind = _returned_by(target)
            else:
                signatures = get_signature_for_torch_op(target) or []
                kinds = {repr(s.return_annotation): s.return_annotation for s in signatures}
                if len(kinds) == 1:
                    kind = next(iter(kinds.values()))
        return self._annotated(super().call_function(target, args, kwargs), kind)

    def call_module(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call, with the type that forward of a module of torch.nn says."""
        kind = None
        if self.annotate_modules and hasattr(self.module.get_submodule(target), "forward"):
            module = self.module.get_submodule(target)
            if type(module).__module__.startswith("torch.nn"):
                kind = _returned_by(module.forward) or torch.Tensor
        return self._annotated(super().call_module(target, args, kwargs), kind)

    def get_attr(self, target: Target, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute, with its type."""
        made = super().get_attr(target, args, kwargs)
        if not self.annotate_get_attrs:
            return made
        value = self.fetch_attr(target)
        kind = torch.nn.Parameter if isinstance(value, torch.nn.Parameter) else None
        if kind is None and isinstance(value, torch.Tensor):
            kind = torch.Tensor
        return self._annotated(made, kind)

    def _annotated(self, made: Any, kind: Any) -> Any:
        if kind is not None and not made.node.type:
            made.node.type = kind
        return made


def _returned_by(fn: Any) -> Any:
    try:
        kind = inspect.signature(fn).return_annotation
    except (TypeError, ValueError):
        kind = inspect.Signature.empty
    if kind is inspect.Signature.empty or isinstance(kind, str | typing.TypeVar):
        return _ANNOTATED_FUNCTIONAL.get(getattr(fn, "__name__", ""))
    return kind
