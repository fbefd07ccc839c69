"""Annotations as types: from Python's typing objects, and from syntax where nothing may be run."""

from __future__ import annotations

import ast
import collections
import enum
import types
import typing
import warnings

import torch
from torch.jit import _types as T
from torch.jit._scope import Scope

_SIMPLE = {
    torch.Tensor: T.Tensor, int: T.Int, float: T.Float, bool: T.Bool, complex: T.Complex,
    str: T.String, None: T.NoneT, type(None): T.NoneT, typing.Any: T.Any, torch.device: T.Device,
    torch.dtype: T.Int, torch.layout: T.Int, torch.memory_format: T.Int, torch.Generator:
    T.Generator,
    torch.Size: T.ListType.of(T.Int), torch.nn.Parameter: T.Tensor, object: T.Any,
    typing.Generator: T.Generator,
}  # fmt: skip
_BARE = {list: T.ListType.of(T.Tensor), dict: T.DictType.of(T.String, T.Tensor)}


def from_python(annotation: object) -> T.Type:
    """The type that a Python annotation means; TypeError where scripted code has none."""
    if isinstance(annotation, T.Type):
        return annotation
    if isinstance(annotation, torch._C.ScriptClass):
        return T.CustomClassType.of(annotation.qualified_name())
    if isinstance(annotation, str):
        raise TypeError(f"the annotation '{annotation}' could not be resolved")
    if _hashable(annotation) and annotation in _SIMPLE:
        return _SIMPLE[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation in (typing.List, list):  # noqa: UP006
        raise TypeError(
            "Attempted to use List without a contained type. Please add a contained type, "
            "e.g. List[int]"
        )
    if annotation in (typing.Dict, dict):  # noqa: UP006
        raise TypeError(
            "Attempted to use Dict without contained types. Please add contained type, "
            "e.g. Dict[int, int]"
        )
    if annotation in (typing.Tuple, tuple):  # noqa: UP006
        raise TypeError(
            "Attempted to use Tuple without a contained type. Please add a contained type, "
            "e.g. Tuple[int]"
        )
    if annotation is typing.Optional:
        raise TypeError(
            "Attempted to use Optional without a contained type. Please add a contained "
            "type, e.g. Optional[int]"
        )
    if origin is list or origin is collections.abc.Sequence:
        return T.ListType.of(from_python(args[0]))
    if origin in (dict, collections.OrderedDict):
        made = T.DictType.of(*map(from_python, args))
        if isinstance(made.key, T.UnionType | T.ListType | T.DictType | T.OptionalType):
            raise TypeError(
                f"Cannot create dict for key type '{made.key.annotation_str}', only int, float, "
                "complex, Tensor, device and string keys are supported"
            )
        return made
    if origin is tuple:
        return T.tuple_of(*(from_python(a) for a in args if a != ()))
    if origin in (typing.Union, types.UnionType):
        return T.union(*map(from_python, args))
    if origin in (typing.Final, typing.Annotated):
        return from_python(args[0])
    if origin in (torch.futures.Future, torch.jit.Future):
        return T.FutureType.of(from_python(args[0]))
    if origin is not None and args and getattr(origin, "__name__", "") == "Future":
        return T.FutureType.of(from_python(args[0]))
    if origin is torch.jit._Await or annotation is torch.jit._Await:
        return T.AwaitType.of(from_python(args[0]) if args else T.Any)
    if getattr(annotation, "__module__", "") == "torch" and _is_typed_tensor(annotation):
        warnings.warn(
            "TorchScript will treat type annotations of Tensor dtype-specific subtypes as if they "
            "are normal Tensors. dtype constraints are not enforced in compilation either.",
            stacklevel=2,
        )
        return T.Tensor
    if isinstance(annotation, type):
        return type_of_class(annotation)
    supertype = getattr(annotation, "__supertype__", None)
    if supertype is not None:
        return from_python(supertype)
    raise TypeError(f"Unknown type annotation: '{annotation}'")


def _is_typed_tensor(annotation: object) -> bool:
    """Whether this is torch.LongTensor or one of its kind."""
    name = getattr(annotation, "__name__", "")
    return name.endswith("Tensor") and name != "Tensor" and hasattr(annotation, "dtype")


def _hashable(thing: object) -> bool:
    try:
        hash(thing)
    except TypeError:
        return False
    return True


_classes: dict[type, T.Type] = {}


def qualified_name(thing: object, name: str | None = None) -> str:
    """The name under which archives know a Python function or class."""
    module = getattr(thing, "__module__", None) or "__main__"
    label = name or getattr(thing, "__qualname__", None) or thing.__name__
    label = label.replace("<locals>", "_locals").replace("<lambda>", "_lambda").replace(".", "_")
    if "<locals>" in getattr(thing, "__qualname__", ""):
        label = thing.__name__.replace("<lambda>", "_lambda")
    if module == "__main__":
        return f"__torch__.{label}"
    if module.startswith("<torch_package_"):
        module = module.partition(".")[2]
    return f"__torch__.{module}.{label}"


def type_of_class(cls: type) -> T.Type:
    """The type of the instances of a Python class."""
    found = _classes.get(cls) or getattr(cls, "__script_interface__", None)
    if found is not None:
        return found
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        made = _named_tuple(cls)
    elif issubclass(cls, enum.Enum):
        made = _enumeration(cls)
    elif issubclass(cls, torch.Tensor):
        return T.Tensor
    elif issubclass(cls, torch.nn.Module):
        raise TypeError(f"Unknown type name '{cls.__name__}': modules cannot be annotations")
    else:
        from torch.jit._classes import compile_class

        return compile_class(cls)
    _classes[cls] = made
    return made


def _named_tuple(cls: type) -> T.TupleType:
    hints = _hints(cls)
    elements = tuple(from_python(hints[f]) if f in hints else T.Tensor for f in cls._fields)
    defaults = tuple(getattr(cls, "_field_defaults", {}).items())
    for known in _classes.values():
        if isinstance(known, T.TupleType) and known.qualified_name == qualified_name(cls):
            if (known.names, known.contained) != (tuple(cls._fields), elements):
                raise RuntimeError(
                    f"Can't redefine NamedTuple: {known.qualified_name} has the fields "
                    f"{', '.join(known.names)}"
                )
    made = T.TupleType(elements, tuple(cls._fields), qualified_name(cls), defaults)
    made.python = cls
    made.open_fields = {f for f in cls._fields if f not in hints}
    return made


def _hints(cls: type) -> dict[str, object]:
    try:
        return typing.get_type_hints(cls)
    except Exception:  # a name that only the function's scope knows
        return dict(getattr(cls, "__annotations__", {}))


def _enumeration(cls: type[enum.Enum]) -> T.EnumType:
    kinds = {T.infer(member.value) for member in cls}
    if len(kinds) != 1 or None in kinds:
        raise TypeError(f"Expected all enum values of '{cls.__name__}' to have the same type")
    if next(iter(kinds)) not in (T.Int, T.Float, T.String):
        raise RuntimeError(
            f"Cannot create Enum with value type '{next(iter(kinds)).annotation_str}', only int, "
            "float and string are supported"
        )
    members = tuple((name, member.value) for name, member in cls.__members__.items())
    return T.EnumType(qualified_name(cls), kinds.pop(), members, cls)


class PythonTypes:
    """Types of annotations in live code: an annotation is an expression of the user's scope."""

    live = True

    def __init__(self, scope: Scope | dict[str, object]) -> None:
        self.scope = (
            Scope(*scope.layers, _EXTRA) if isinstance(scope, Scope) else Scope(scope, _EXTRA)
        )

    def of_python(self, annotation: object) -> T.Type:
        """The type of an annotation that Python has evaluated."""
        try:
            return from_python(annotation)
        except TypeError as e:
            raise RuntimeError(str(e)) from None

    def of_ast(self, node: ast.expr, c, several: bool = False) -> T.Type | tuple[T.Type, ...]:
        try:
            found = self.python_of(node)
            if several and isinstance(found, tuple):
                return tuple(from_python(f) for f in found)
            return from_python(found)
        except TypeError as e:
            raise_in(c, e)
        except NameError as e:
            raise_in(c, f"Unknown type name '{e.name or ast.unparse(node)}'")
        except RecursionError:
            raise_in(c, "a type is nested too deeply")

    def python_of(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.python_of(ast.parse(node.value.strip(), mode="eval").body)
        body = _Unquoted().visit(node)
        code = compile(ast.fix_missing_locations(ast.Expression(body)), "<annotation>", "eval")
        return eval(code, {}, self.scope)


class _Unquoted(ast.NodeTransformer):
    """List['Foo'] means List[Foo]."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str):
            return ast.parse(node.value, mode="eval").body
        return node


_EXTRA = {"Tensor": torch.Tensor, "List": typing.List, "Dict": typing.Dict,  # noqa: UP006
          "Tuple": typing.Tuple, "Optional": typing.Optional, "Union": typing.Union,  # noqa: UP006
          "Any": typing.Any, "number": int, "Final": typing.Final, "Device": torch.device,
          "Generator": torch.Generator, "NoneType": type(None)}  # fmt: skip


def raise_in(c, why: object) -> typing.NoReturn:
    if c is None:
        raise RuntimeError(str(why))
    c.fail(str(why))


class SyntaxTypes:
    """Types of annotations in archives: read, never run. `names` gives types of dotted names."""

    live = False

    _PLAIN: typing.ClassVar[dict[str, T.Type]] = {
        "Tensor": T.Tensor, "int": T.Int, "float": T.Float, "bool": T.Bool, "complex": T.Complex,
        "str": T.String, "number": T.Number, "Scalar": T.Number, "NoneType": T.NoneT,
        "None": T.NoneT, "Device": T.Device, "Any": T.Any, "Generator": T.Generator,
        "Storage": T.StorageType.of(),
        "Stream": T.StreamObjType.of(), "Layout": T.Int, "ScalarType": T.Int, "MemoryFormat": T.Int,
        "list": T.AnyList, "tuple": T.AnyTuple,
    }  # fmt: skip

    def __init__(self, names) -> None:
        self.names = names

    def of_ast(self, node: ast.expr, c=None, several: bool = False) -> T.Type | tuple[T.Type, ...]:
        if isinstance(node, ast.Tuple | ast.List) and several:
            return tuple(self.of_ast(n, c) for n in node.elts)
        if isinstance(node, ast.Constant) and node.value is None:
            return T.NoneT
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.of_ast(ast.parse(node.value, mode="eval").body, c)
        if isinstance(node, ast.Name):
            if node.id in self._PLAIN:
                return self._PLAIN[node.id]
        if isinstance(node, ast.Subscript):
            return self.generic(node, c)
        dotted = ast.unparse(node)
        found = self.names(dotted)
        if not isinstance(found, T.Type):
            raise_in(c, f"Unknown type name '{dotted}'")
        return found

    def generic(self, node: ast.Subscript, c) -> T.Type:
        name = ast.unparse(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        inner = [self.of_ast(p, c) for p in parts]
        single = {"List": T.ListType, "Future": T.FutureType, "Await": T.AwaitType}
        if name in single and len(inner) == 1:
            return single[name].of(inner[0])
        if name == "Optional" and len(inner) == 1:
            return T.optional(inner[0])
        if name == "Final" and len(inner) == 1:
            return inner[0]
        if name == "Dict" and len(inner) == 2:
            return T.DictType.of(*inner)
        if name == "Tuple":
            return T.tuple_of(*inner)
        if name == "Union" and inner:
            return T.union(*inner)
        raise_in(c, f"Unknown type constructor {name}")
