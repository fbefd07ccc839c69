"""Where the values of a traced program come from: the expressions that guards are written over."""

import dataclasses
import enum

from torch._guards import ChainedSource, GuardSource, Source


class TensorProperty(enum.Enum):
    """A part of a tensor's geometry that a symbol may stand for."""

    SIZE = 0
    STRIDE = 1
    STORAGE_OFFSET = 2

    def method_name(self) -> str:
        """The method of a tensor that returns it."""
        return {0: "size", 1: "stride", 2: "storage_offset"}[self.value]


@dataclasses.dataclass(frozen=True)
class LocalSource(Source):
    """A local variable."""

    local_name: str
    is_input: bool = False

    def name(self) -> str:
        """L['x']"""
        return f"L[{self.local_name!r}]"

    def guard_source(self) -> GuardSource:
        """Local."""
        return GuardSource.LOCAL


@dataclasses.dataclass(frozen=True)
class GlobalSource(Source):
    """A global variable."""

    global_name: str

    def name(self) -> str:
        """G['x']"""
        return f"G[{self.global_name!r}]"

    def guard_source(self) -> GuardSource:
        """Global."""
        return GuardSource.GLOBAL


@dataclasses.dataclass(frozen=True)
class TorchFunctionModeStackSource(Source):
    """A function mode that is open, by its place from the outermost."""

    ind: int

    def name(self) -> str:
        """___get_torch_function_mode_stack_at(0)"""
        return f"___get_torch_function_mode_stack_at({self.ind})"

    def guard_source(self) -> GuardSource:
        """Global."""
        return GuardSource.GLOBAL


@dataclasses.dataclass(frozen=True)
class ConstantSource(Source):
    """A value known by a name of its own."""

    source_name: str

    def name(self) -> str:
        """The name itself."""
        return self.source_name


@dataclasses.dataclass(frozen=True)
class EphemeralSource(Source):
    """A value of the tracer's own making."""

    desc: str | None = None

    def name(self) -> str:
        """A text for messages; no expression."""
        return f"<ephemeral{': ' + self.desc if self.desc is not None else ''}>"

    def is_ephemeral(self) -> bool:
        """Always."""
        return True


@dataclasses.dataclass(frozen=True)
class AttrSource(ChainedSource):
    """An attribute; a dotted `member` is several."""

    member: str = ""

    def name(self) -> str:
        """base.member"""
        return f"{self.base.name()}.{self.member}"


@dataclasses.dataclass(frozen=True)
class GetItemSource(ChainedSource):
    """An item of a container."""

    index: object = None

    def __hash__(self) -> int:
        try:
            return hash((self.base, self.index))
        except TypeError:  # a slice
            return hash((self.base, str(self.index)))

    def name(self) -> str:
        """base[index]"""
        return f"{self.base.name()}[{self.index!r}]"


@dataclasses.dataclass(frozen=True)
class ContainedItemSource(GetItemSource):
    """An item of the builtin container that an object is, whose class has another __getitem__."""

    cls: type = dict

    def __hash__(self) -> int:
        return super().__hash__()

    def name(self) -> str:
        """dict.__getitem__(base, index)"""
        return f"{self.cls.__name__}.__getitem__({self.base.name()}, {self.index!r})"


@dataclasses.dataclass(frozen=True)
class TensorPropertySource(ChainedSource):
    """A size, a stride or the storage offset of a tensor."""

    prop: TensorProperty = TensorProperty.SIZE
    idx: int | None = None

    def name(self) -> str:
        """base.size()[0], base.storage_offset()"""
        call = f"{self.base.name()}.{self.prop.method_name()}()"
        return call if self.prop is TensorProperty.STORAGE_OFFSET else f"{call}[{self.idx}]"


@dataclasses.dataclass(frozen=True)
class TypeSource(ChainedSource):
    """The class of a value."""

    def name(self) -> str:
        """type(base)"""
        return f"type({self.base.name()})"


@dataclasses.dataclass(frozen=True)
class ClassDictSource(ChainedSource):
    """What the class at a place of a method resolution order has in its dictionary."""

    member: str = ""
    place: int = 0

    def name(self) -> str:
        """type(x).__mro__[0].__dict__['f']"""
        return f"{self.base.name()}.__mro__[{self.place}].__dict__[{self.member!r}]"


@dataclasses.dataclass(frozen=True)
class NumpyTensorSource(ChainedSource):
    """An array of NumPy as a tensor that shares its memory."""

    def name(self) -> str:
        """___from_numpy(base)"""
        return f"___from_numpy({self.base.name()})"


@dataclasses.dataclass(frozen=True)
class WeakRefCallSource(ChainedSource):
    """What a weak reference refers to."""

    def name(self) -> str:
        """base()"""
        return f"{self.base.name()}()"


@dataclasses.dataclass(frozen=True)
class ClosureSource(Source):
    """A cell of the function's closure."""

    cell_name: str

    def name(self) -> str:
        """C['x']"""
        return f"C[{self.cell_name!r}]"

    def guard_source(self) -> GuardSource:
        """Local."""
        return GuardSource.LOCAL


@dataclasses.dataclass(frozen=True)
class GradSource(AttrSource):
    """The gradient of a tensor."""

    member: str = "grad"


@dataclasses.dataclass(frozen=True)
class TupleIteratorGetItemSource(GetItemSource):
    """What an iterator over a tuple will give, counted from its next value."""

    def name(self) -> str:
        """___tuple_iterator_getitem(base, 0)"""
        return f"___tuple_iterator_getitem({self.base.name()}, {self.index!r})"


@dataclasses.dataclass(frozen=True)
class DictKeySource(ChainedSource):
    """A key of a dictionary, by its place."""

    index: int = 0

    def name(self) -> str:
        """list(base.keys())[0]"""
        return f"list(dict.keys({self.base.name()}))[{self.index}]"

    def is_dict_key(self) -> bool:
        """Always."""
        return True


def is_of_class(source: Source) -> bool:
    """Whether a value belongs to a class or is the default of a parameter: its numbers are
    settings, which seldom change."""
    while isinstance(source, ChainedSource):
        if isinstance(source, TypeSource):
            return True
        if isinstance(source, AttrSource) and source.member in ("__defaults__", "__kwdefaults__"):
            return True
        source = source.base
    return False


def is_of_module(source: Source) -> bool:
    """Whether a value belongs to a module, to the object whose method runs, or to a class."""
    if is_of_class(source):
        return True
    while isinstance(source, ChainedSource):
        if isinstance(source, AttrSource) and source.member == "_modules":
            return True
        source = source.base
    return isinstance(source, LocalSource) and source.local_name == "self"


def is_from_local_source(source: Source, *, only_allow_input: bool = False) -> bool:
    """Whether a value is found through a local variable, or through a parameter alone."""
    while isinstance(source, ChainedSource):
        source = source.base
    if not isinstance(source, LocalSource):
        return False
    return source.is_input or not only_allow_input
