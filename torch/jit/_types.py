"""Types of scripted programs. A type is one object per structure, so that types compare by
identity; the C++ interpreter sees them through handles that are made when first needed."""

from __future__ import annotations

import typing
import weakref

import torch

_KINDS = (
    "Tensor Int Float Bool Complex String Number None DeviceObj Generator Storage Any List Dict "
    "Tuple Optional Union Future Class Interface Enum PyObject AnyList AnyTuple StreamObj Function"
).split()
_CODES = {name + "Type": code for code, name in enumerate(_KINDS)}
_CODES["AwaitType"] = _CODES["FutureType"]  # a future that nobody has begun


class Type:
    """The base of all types. `contained` are the types it is made of."""

    _interned: typing.ClassVar[dict[tuple[object, ...], Type]] = {}
    kind_name = "AnyType"

    def __init__(self, *contained: Type) -> None:
        self.contained = contained
        self._handle = None

    @classmethod
    def of(cls, *key: object) -> typing.Self:
        """The one type of this class with these parts."""
        found = Type._interned.get((cls, *key))
        if found is None:
            found = Type._interned[(cls, *key)] = cls(*key)
        return found

    get = of

    def __new__(cls, *key: object) -> typing.Self:
        found = Type._interned.get((cls, *key)) if _hashable(key) else None
        return found if found is not None else super().__new__(cls)

    def kind(self) -> str:
        return self.kind_name

    @property
    def annotation_str(self) -> str:
        return str(self)

    def str(self) -> str:
        return repr(self)

    def __repr__(self) -> str:
        return self.kind_name.removesuffix("Type")

    def isSubtypeOf(self, other: Type) -> bool:
        return is_subtype(self, other)

    isSubtypeOfExt = isSubtypeOf

    def containedTypes(self) -> list[Type]:
        return list(self.contained)

    def scalarType(self) -> None:
        return None

    def handle(self) -> object:
        """What the interpreter knows the type by."""
        if self._handle is None:
            self._handle = self._make_handle()
        return self._handle

    def _make_handle(self, name=None, fields=(), cls=None, methods=(), python=None):
        return torch._C._script_type(
            _CODES[self.kind_name],
            name or self.annotation_str,
            tuple(t.handle() for t in self.contained),
            fields,
            cls,
            methods,
            python,
        )


def _hashable(key: tuple[object, ...]) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _simple(kind: str, graph: str, annotation: str | None = None) -> type[Type]:
    def __repr__(self) -> str:
        return graph

    def annotation_str(self) -> str:
        return annotation or graph

    body = {"kind_name": kind, "__repr__": __repr__, "annotation_str": property(annotation_str)}
    made = type(kind, (Type,), {**body, "__module__": __name__})
    made.__str__ = made.__repr__
    return made


class TensorType(Type):
    """Tensor. A graph may know more of a tensor: see SizedTensor."""

    kind_name = "TensorType"

    def __repr__(self) -> str:
        return "Tensor"

    def sizes(self) -> list[int] | None:
        return None

    strides = sizes

    def symbolic_sizes(self) -> list[int] | None:
        return None

    def varyingSizes(self) -> list[int | None] | None:
        return None

    def dim(self) -> int | None:
        return None

    def dtype(self) -> torch.dtype | None:
        return None

    def device(self) -> torch.device | None:
        return None

    def requiresGrad(self) -> bool | None:
        return None

    requires_grad = requiresGrad

    def undefined(self) -> bool:
        return False

    def with_sizes(self, sizes) -> SizedTensor:
        return SizedTensor(None if sizes is None else tuple(sizes), self.dtype(), self.device())

    def with_dtype(self, dtype: torch.dtype | None) -> SizedTensor:
        return SizedTensor(_tuple_or_none(self.varyingSizes()), dtype, self.device())

    def with_device(self, device: torch.device | None) -> SizedTensor:
        return SizedTensor(_tuple_or_none(self.varyingSizes()), self.dtype(), device)

    @staticmethod
    def create_from_tensor(tensor: torch.Tensor) -> SizedTensor:
        return SizedTensor(tuple(tensor.shape), tensor.dtype, tensor.device, tensor.stride(),
                           tensor.requires_grad)  # fmt: skip

    @staticmethod
    def getInferred() -> TensorType:
        return Tensor


def _tuple_or_none(sizes) -> tuple[int | None, ...] | None:
    return None if sizes is None else tuple(sizes)


class SizedTensor(TensorType):
    """A tensor of which a graph knows dtype, device or sizes; a size may be open (None)."""

    def __init__(self, sizes, dtype=None, device=None, strides=None, grad=None) -> None:
        super().__init__()
        self._sizes, self._dtype, self._device = sizes, dtype, device
        self._strides, self._grad = strides, grad

    def sizes(self) -> list[int] | None:
        known = self._sizes is not None and None not in self._sizes
        return list(self._sizes) if known else None

    def strides(self) -> list[int] | None:
        return None if self._strides is None else list(self._strides)

    def varyingSizes(self) -> list[int | None] | None:
        return None if self._sizes is None else list(self._sizes)

    def symbolic_sizes(self) -> list[int] | None:
        if self._sizes is None:
            return None
        return [-1 - i if n is None else n for i, n in enumerate(self._sizes)]

    def dim(self) -> int | None:
        return None if self._sizes is None else len(self._sizes)

    def dtype(self) -> torch.dtype | None:
        return self._dtype

    def scalarType(self) -> str | None:
        return _DTYPE_NAMES.get(self._dtype)

    def device(self) -> torch.device | None:
        return self._device

    def requiresGrad(self) -> bool | None:
        return self._grad

    requires_grad = requiresGrad

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizedTensor) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self._sizes, self._dtype, self._device, self._strides, self._grad

    @property
    def annotation_str(self) -> str:
        return "Tensor"

    def __repr__(self) -> str:
        parts = [] if self._sizes is None else ["*" if n is None else str(n) for n in self._sizes]
        if self._strides is not None:
            parts.append(f"strides=[{', '.join(map(str, self._strides))}]")
        if self._grad is not None:
            parts.append(f"requires_grad={int(self._grad)}")
        if self._device is not None:
            parts.append(f"device={self._device}")
        return f"{_DTYPE_NAMES.get(self._dtype, 'Tensor')}({', '.join(parts)})"


_DTYPE_NAMES = {
    torch.float32: "Float", torch.float64: "Double", torch.float16: "Half",
    torch.bfloat16: "BFloat16", torch.int64: "Long", torch.int32: "Int", torch.int16: "Short",
    torch.int8: "Char", torch.uint8: "Byte", torch.bool: "Bool", torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}  # fmt: skip
TensorType.__str__ = TensorType.__repr__
SizedTensor.__str__ = SizedTensor.__repr__
IntType = _simple("IntType", "int")
FloatType = _simple("FloatType", "float")
BoolType = _simple("BoolType", "bool")
ComplexType = _simple("ComplexType", "complex")
StringType = _simple("StringType", "str")
NumberType = _simple("NumberType", "Scalar", "number")
NoneType = _simple("NoneType", "NoneType")
DeviceObjType = _simple("DeviceObjType", "Device")
GeneratorType = _simple("GeneratorType", "Generator")
StorageType = _simple("StorageType", "Storage")
StreamObjType = _simple("StreamObjType", "Stream")
AnyType = _simple("AnyType", "Any")
PyObjectType = _simple("PyObjectType", "PyObject")
AnyListType = _simple("AnyListType", "list")
AnyTupleType = _simple("AnyTupleType", "tuple")
FunctionType = _simple("FunctionType", "Function")

Tensor, Int, Float, Bool = TensorType.of(), IntType.of(), FloatType.of(), BoolType.of()
Complex, String, Number, NoneT = ComplexType.of(), StringType.of(), NumberType.of(), NoneType.of()
Device, Any, PyObject = DeviceObjType.of(), AnyType.of(), PyObjectType.of()
Generator, AnyList, AnyTuple = GeneratorType.of(), AnyListType.of(), AnyTupleType.of()


class _Generic(Type):
    def getElementType(self) -> Type:
        return self.contained[0]

    @property
    def element(self) -> Type:
        return self.contained[0]


class ListType(_Generic):
    """List[T]."""

    kind_name = "ListType"

    def __init__(self, element: Type | None = None) -> None:
        if element is None:
            raise RuntimeError("Can not create ListType with None type")
        super().__init__(element)

    def __repr__(self) -> str:
        return f"{self.element}[]"

    @property
    def annotation_str(self) -> str:
        return f"List[{self.element.annotation_str}]"

    @staticmethod
    def ofTensors() -> ListType:
        return ListType.of(Tensor)

    @staticmethod
    def ofInts() -> ListType:
        return ListType.of(Int)


class OptionalType(_Generic):
    """Optional[T]."""

    kind_name = "OptionalType"

    def __repr__(self) -> str:
        return f"{self.element}?"

    @property
    def annotation_str(self) -> str:
        return f"Optional[{self.element.annotation_str}]"


class FutureType(_Generic):
    """Future[T]."""

    kind_name = "FutureType"

    def __repr__(self) -> str:
        return f"Future[{self.element}]"

    @property
    def annotation_str(self) -> str:
        return f"Future[{self.element.annotation_str}]"


class AwaitType(_Generic):
    """Await[T]: a call that is made when its result is needed."""

    kind_name = "AwaitType"

    def __repr__(self) -> str:
        return f"Await({self.element})"

    @property
    def annotation_str(self) -> str:
        return f"Await[{self.element.annotation_str}]"


class DictType(Type):
    """Dict[K, V]."""

    kind_name = "DictType"

    @property
    def key(self) -> Type:
        return self.contained[0]

    @property
    def value(self) -> Type:
        return self.contained[1]

    def getKeyType(self) -> Type:
        return self.key

    def getValueType(self) -> Type:
        return self.value

    def __repr__(self) -> str:
        return f"Dict({self.key}, {self.value})"

    @property
    def annotation_str(self) -> str:
        return f"Dict[{self.key.annotation_str}, {self.value.annotation_str}]"


class UnionType(Type):
    """Union[...] of types of which none is a subtype of another."""

    kind_name = "UnionType"

    def __repr__(self) -> str:
        return f"Union({', '.join(map(str, self.contained))})"

    @property
    def annotation_str(self) -> str:
        return f"Union[{', '.join(t.annotation_str for t in self.contained)}]"


class TupleType(Type):
    """Tuple[...]; with names it is a NamedTuple."""

    kind_name = "TupleType"

    def __init__(self, elements, names=None, qualified_name=None, defaults=()) -> None:
        super().__init__(*elements)
        self.names = names
        self.qualified_name = qualified_name
        self.defaults = dict(defaults)
        self.open_fields: set[str] = set()  # that no annotation gives a type
        self.python = None

    def elements(self) -> list[Type]:
        return list(self.contained)

    def __repr__(self) -> str:
        if self.names:
            fields = zip(self.names, self.contained, strict=True)
            shown = {n: f" = {v}" for n, v in self.defaults.items()}
            inner = ", ".join(f"{n} : {t}{shown.get(n, '')}" for n, t in fields)
            return f"NamedTuple({inner})"
        return f"({', '.join(map(str, self.contained))})"

    @property
    def annotation_str(self) -> str:
        if self.names:
            return self.qualified_name
        if not self.contained:
            return "Tuple[()]"
        return f"Tuple[{', '.join(t.annotation_str for t in self.contained)}]"

    def _make_handle(self, **_):
        return super()._make_handle(fields=tuple(self.names or ()), python=self.python)


def tuple_of(*elements: Type) -> TupleType:
    return TupleType.of(tuple(elements))


class EnumType(Type):
    """A Python enumeration."""

    kind_name = "EnumType"

    def __init__(self, name: str, value_type: Type, members, python=None) -> None:
        super().__init__(value_type)
        self.name, self.members, self.python = name, members, python

    def __repr__(self) -> str:
        return f"Enum<{self.name}>"

    @property
    def annotation_str(self) -> str:
        return self.name

    def _make_handle(self, **_):
        return super()._make_handle(python=self.python)


class InterfaceType(Type):
    """A class of which only the methods are known. `schemas` are by name."""

    kind_name = "InterfaceType"
    by_name: typing.ClassVar[weakref.WeakValueDictionary[str, InterfaceType]] = (
        weakref.WeakValueDictionary()
    )

    def __init__(self, name: str, is_module: bool = False) -> None:
        super().__init__()
        InterfaceType.by_name[name] = self
        self.name, self.is_module, self.schemas = name, is_module, {}

    def __repr__(self) -> str:
        return self.name

    def _make_handle(self, **_):
        return super()._make_handle(methods=tuple(self.schemas))


class ClassType(Type):
    """A scripted class or the class of a scripted module: slots, constants and methods."""

    kind_name = "ClassType"

    def __init__(self, name: str, is_module: bool = False) -> None:
        super().__init__()
        self.qualified_name, self.is_module = name, is_module
        self.attributes: dict[str, Type] = {}
        self.roles: dict[str, str] = {}  # parameter, buffer; others are plain
        self.constants: dict[str, tuple[object, Type]] = {}
        self.methods: dict[str, typing.Any] = {}
        self.properties: dict[str, tuple[typing.Any, typing.Any]] = {}
        self.statics: dict[str, typing.Any] = {}
        self.python = None
        self.info = torch._C._script_class(name, is_module)
        self.slots: dict[str, int] = {}
        self.hooks: list[typing.Any] = []
        self.pre_hooks: list[typing.Any] = []
        self.complete = True
        self.ignored: dict[str, typing.Any] = {}
        self.class_attributes: set[str] = set()  # that Python has and scripted code has not

    def name(self) -> str:
        return self.qualified_name.rpartition(".")[2]

    def add_attribute(self, name: str, type: Type, role: str = "") -> int:
        slot = self.slots[name] = self.info.add_slot(name)
        self.attributes[name] = type
        if role:
            self.roles[name] = role
        return slot

    def add_method(self, name: str, function) -> None:
        self.methods[name] = function
        self.info.add_method(name, function)

    def __repr__(self) -> str:
        return self.qualified_name

    def _make_handle(self, **_):
        made = torch._C._script_type(
            _CODES["ClassType"],
            self.qualified_name,
            () if self.is_module else tuple(t.handle() for t in self.attributes.values()),
            (),
            self.info,
            (),
            self.python,
        )
        if not self.complete:
            return made
        self._handle = made
        return made

    def handle(self) -> object:
        return self._handle or self._make_handle()


class CustomClassType(Type):
    """A class written in C++ (torch::class_), by its qualified name."""

    kind_name = "ClassType"
    is_module = False

    def __init__(self, name: str) -> None:
        super().__init__()
        self.qualified_name = name

    def name(self) -> str:
        return self.qualified_name.rpartition(".")[2]

    def __repr__(self) -> str:
        return self.qualified_name

    def _make_handle(self, **_):
        # The interpreter hands such objects on as they are; methods and operators check them.
        return torch._C._script_type(_CODES["AnyType"], self.qualified_name, (), (), None, (), None)


CUSTOM_CLASSES = "__torch__.torch.classes."


def custom_class(name: str) -> CustomClassType | None:
    """The type of a class of C++, if one of this qualified name is registered."""
    if not name.startswith(CUSTOM_CLASSES):
        return None
    if name.startswith((CUSTOM_CLASSES + "quantized.", CUSTOM_CLASSES + "rnn.")):
        torch._C._register_quantized_operators()
    return CustomClassType.of(name) if name in torch._C._all_custom_classes() else None


for _cls in (
    CustomClassType,
    ListType,
    OptionalType,
    FutureType,
    AwaitType,
    DictType,
    UnionType,
    TupleType,
    EnumType,
    InterfaceType,
    ClassType,
):
    _cls.__str__ = _cls.__repr__


def optional(type: Type) -> Type:
    """Optional[type], or type itself where None is one of its values already."""
    if type is NoneT or type is Any or isinstance(type, OptionalType):
        return type
    if isinstance(type, UnionType):
        return union(*type.contained, NoneT)
    return OptionalType.of(type)


def union(*types: Type) -> Type:
    """The smallest type that holds all of these."""
    flat: list[Type] = []
    for t in types:
        if isinstance(t, OptionalType):
            parts = [t.element, NoneT]
        elif isinstance(t, UnionType):
            parts = list(t.contained)
        else:
            parts = [t]
        for part in parts:
            if part not in flat:
                flat.append(part)
    kept = [t for t in flat if not any(o is not t and is_subtype(t, o) for o in flat)]
    if len(kept) == 1:
        return kept[0]
    if len(kept) == 2 and NoneT in kept:
        return optional(kept[0] if kept[1] is NoneT else kept[1])
    return UnionType.of(*sorted(kept, key=lambda t: str(t).lower()))


def members(type: Type) -> tuple[Type, ...]:
    """The types a value of this type can have."""
    if isinstance(type, OptionalType):
        return (*members(type.element), NoneT)
    return type.contained if isinstance(type, UnionType) else (type,)


def is_subtype(a: Type, b: Type) -> bool:
    """Whether every value of `a` is one of `b`."""
    if a is b or b is Any or (b is Tensor and isinstance(a, SizedTensor)):
        return True
    if isinstance(a, TensorType) and isinstance(b, SizedTensor):
        return _knows_as_much(a, b)
    if isinstance(a, UnionType | OptionalType):
        return all(is_subtype(t, b) for t in members(a)) and b is not NoneT
    if isinstance(b, OptionalType):
        return a is NoneT or is_subtype(a, b.element)
    if isinstance(b, UnionType):
        return any(is_subtype(a, t) for t in b.contained)
    if b is Number:
        return a in (Int, Float, Complex)
    if b is AnyList:
        return isinstance(a, ListType)
    if b is AnyTuple:
        return isinstance(a, TupleType)
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if b.names and a.qualified_name != b.qualified_name:
            return False
        return len(a.contained) == len(b.contained) and all(
            map(is_subtype, a.contained, b.contained)
        )
    if isinstance(a, FutureType | AwaitType) and type(a) is type(b):
        return is_subtype(a.element, b.element)
    if isinstance(b, InterfaceType):
        return isinstance(a, ClassType | InterfaceType) and not why_no_interface(a, b)
    if isinstance(a, EnumType) and isinstance(b, EnumType):
        return a.name == b.name
    return False


def why_no_interface(a: Type, b: Type) -> str:
    """What keeps values of the class or interface `a` from being values of the interface `b`;
    empty when nothing does, or `b` is no interface."""
    if isinstance(b, OptionalType):
        b = b.element
    if not isinstance(b, InterfaceType) or not isinstance(a, ClassType | InterfaceType):
        return ""
    if b.is_module and not a.is_module:
        return f"\n'{a}': only a ScriptModule class can be subtype of module interface '{b}'"
    own = a.methods if isinstance(a, ClassType) else a.schemas
    for name, wanted in b.schemas.items():
        found = own.get(name)
        if found is None and isinstance(a, ClassType) and hasattr(a, "make_method"):
            found = a.make_method(name)
        if found is None and not (isinstance(a, ClassType) and name in a.ignored):
            return f"\nClass '{a}' does not have method '{name}' but interface '{b}' requires it"
        if hasattr(found, "declare") and not _compatible(found, wanted):
            return (
                f"\nMethod '{name}' of '{a}' is not compatible with interface '{b}': it is "
                f"{found.schema} but should be {wanted.schema}"
            )
    return ""


def _compatible(found: typing.Any, wanted: typing.Any) -> bool:
    """Whether a method takes all that the interface allows and returns what it promises."""
    found.declare()
    if len(found.arguments) != len(wanted.arguments):
        return False
    pairs = zip(found.arguments[1:], wanted.arguments[1:], strict=True)
    if not all(is_subtype(theirs.type, ours.type) for ours, theirs in pairs):
        return False
    if found.returns is None:
        found.ensure_compiled()
    return found.returns is None or is_subtype(found.returns, wanted.returns)


def _knows_as_much(a: TensorType, b: SizedTensor) -> bool:
    """Whether everything that `b` says of a tensor holds for one of type `a`."""
    wanted, sizes = b.varyingSizes(), a.varyingSizes()
    if wanted is not None:
        if sizes is None or len(sizes) != len(wanted):
            return False
        if any(n is not None and m != n for m, n in zip(sizes, wanted, strict=True)):
            return False
    return b.dtype() in (None, a.dtype()) and b.device() in (None, a.device())


def unify(a: Type, b: Type) -> Type | None:
    """The type of a variable that two paths give values of these types; None when there is none."""
    if is_subtype(a, b):
        return b
    if is_subtype(b, a):
        return a
    if a is NoneT or b is NoneT:
        return optional(b if a is NoneT else a)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        plain = [t.element if isinstance(t, OptionalType) else t for t in (a, b)]
        inner = unify(*plain)
        return optional(inner) if inner else None
    if isinstance(a, TupleType) and isinstance(b, TupleType):
        if len(a.contained) != len(b.contained):
            return None
        parts = [unify(x, y) for x, y in zip(a.contained, b.contained, strict=True)]
        return tuple_of(*parts) if all(parts) else None
    return None


def infer(value: object) -> Type | None:
    """The type of a Python value, or None when scripted code cannot hold it."""
    if isinstance(value, torch.Tensor):
        return Tensor
    simple = {bool: Bool, int: Int, float: Float, complex: Complex, str: String, type(None): NoneT}
    if type(value) in simple:
        return simple[type(value)]
    if isinstance(value, torch.device):
        return Device
    if isinstance(value, torch.dtype | torch.layout | torch.memory_format):
        return Int
    if isinstance(value, torch.Generator):
        return Generator
    if isinstance(value, tuple):
        from torch.jit._annotations import type_of_class

        if hasattr(value, "_fields"):
            return type_of_class(type(value))
        parts = [infer(v) for v in value]
        return tuple_of(*parts) if all(parts) else None
    if isinstance(value, list):
        parts = [infer(v) for v in value]
        common = _common(parts)
        return ListType.of(common) if common else None
    if isinstance(value, dict):
        key, item = _common([infer(k) for k in value]), _common([infer(v) for v in value.values()])
        return DictType.of(key, item) if key and item else None
    return _infer_object(value)


def _infer_object(value: object) -> Type | None:
    import enum

    from torch.jit._annotations import type_of_class

    if isinstance(value, torch.ScriptObject):
        return CustomClassType.of(value._type().qualified_name())
    handle = getattr(value, "_script_type", None)
    if isinstance(handle, Type):
        return handle
    if isinstance(value, enum.Enum):
        return type_of_class(type(value))
    if isinstance(value, int | float) and not isinstance(value, enum.Enum):
        return Int if isinstance(value, int) else Float
    return None


def _common(parts: list[Type | None]) -> Type | None:
    if not parts:
        return Tensor
    out = parts[0]
    for part in parts[1:]:
        out = unify(out, part) if out and part else None
    return out
