"""What programs reach as `module._c`: the module seen as slots and methods."""

from __future__ import annotations

from torch.jit import _types as T


class CModule:
    """Attributes and methods of a scripted module by name."""

    def __init__(self, module) -> None:
        self._module = module

    def _type(self) -> T.ClassType:
        return self._module._script_type

    def qualified_name(self) -> str:
        return self._module._script_type.qualified_name

    def _get_method(self, name: str):
        return self._module._method(name)

    def _has_method(self, name: str) -> bool:
        return name in self._module._script_type.methods

    def _method_names(self) -> list[str]:
        return list(self._module._script_type.methods)

    def hasattr(self, name: str) -> bool:
        return name in self._module._script_type.slots

    def getattr(self, name: str):
        return getattr(self._module, name)

    def setattr(self, name: str, value: object) -> None:
        setattr(self._module, name, value)

    @property
    def name(self) -> str:
        return self._module.original_name

    @property
    def code(self) -> str:
        return self._module.code

    def __getattr__(self, name: str):
        return getattr(self._module, name)
