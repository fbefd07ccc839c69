"""What programs reach as `module._c`: the module seen as slots and methods."""

from __future__ import annotations

from torch.jit import _types as T


class CModule:
    """Attributes and methods of a scripted module by name."""

    def __init__(self, module) -> None:
        self._module = module

    def _type(self) -> T.ClassType:
        return self._module._script_type

    @property
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CModule) and self._module is other._module

    def __hash__(self) -> int:
        return hash(id(self._module))

    def __repr__(self) -> str:
        return f"ScriptObject <{self.qualified_name}>"

    def dump_to_str(self, code: bool, attributes: bool, parameters: bool) -> str:
        """The module as text."""
        parts = [f"module {self.qualified_name} {{"]
        if parameters:
            parts += [f"  {n} = {v}" for n, v in self._module.named_parameters(recurse=False)]
        if attributes:
            parts += [f"  {n} = {getattr(self._module, n)}" for n in self._type().slots]
        if code:
            parts += [m.code for m in map(self._get_method, self._method_names()) if m is not None]
        return "\n".join([*parts, "}"])

    def _get_methods(self) -> list[object]:
        found = map(self._get_method, self._method_names())
        return [m for m in found if m is not None]

    @property
    def name(self) -> str:
        return self._module.original_name

    @property
    def code(self) -> str:
        return self._module.code

    def __getattr__(self, name: str):
        found = getattr(self._module, name)
        return CModule(found) if hasattr(found, "_script_handle") else found
