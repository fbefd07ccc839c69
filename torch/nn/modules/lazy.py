"""Modules whose input sizes are found at the first call. Until then their parameters are
UninitializedParameter; the first forward gives them shapes, draws their initial values and turns
the module into its ordinary class."""

from __future__ import annotations

import itertools

from torch.nn.modules.module import Module
from torch.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """Goes before the ordinary class among the bases. The subclass defines
    `initialize_parameters(*args, **kwargs)`, called with the arguments of the first forward, and
    `cls_to_become`, the class the module then has. A Module itself, because Python changes an
    object's class only between classes with a common base of the same layout."""

    cls_to_become = None

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _lazy_members(self):
        return itertools.chain(self._parameters.items(), self._buffers.items())

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Gives the parameters the shapes that are about to be loaded."""
        for name, value in self._lazy_members():
            loaded = state_dict.get(prefix + name)
            if loaded is None or value is None:
                continue
            if is_lazy(value) and not is_lazy(loaded):
                value.materialize(loaded.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Gives every parameter its shape from the arguments of the first forward."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def _give_shapes(self, shapes) -> None:
        """Gives tensors that have none yet their shapes, by name, and draws initial values."""
        for name, shape in shapes.items():
            if is_lazy(getattr(self, name)):
                getattr(self, name).materialize(shape)
        self.reset_parameters()

    def has_uninitialized_params(self) -> bool:
        """Whether any parameter or buffer has no shape yet."""
        return any(is_lazy(value) for _, value in self._lazy_members())

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        for handle in ("_initialize_hook", "_load_hook"):
            vars(module).pop(handle).remove()
        module.__class__ = module.cls_to_become or type(module)
