"""Parser of the operator schema language, `add.Tensor(Tensor self, Tensor other) -> Tensor`.

One hand-written recursive-descent parser over a small token list. It checks everything that can be
checked without knowing the other operators (types, defaults that fit their type, order of
arguments, alias sets), because a mistake found here is one sentence with a line number, and the
same mistake found by the C++ compiler is a page.
"""

from __future__ import annotations

import dataclasses
import re

from .errors import GenError

BASE_TYPES = frozenset(
    """Tensor Scalar int SymInt float bool SymBool str ScalarType Layout Device MemoryFormat
    Generator Storage Stream Dimname QScheme""".split()
)

# C++ words that cannot be argument names; the generated code appends an underscore.
_CPP_KEYWORDS = frozenset(
    """alignas alignof and asm auto bool break case catch char class const constexpr continue
    default delete do double else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new not operator or private protected public register return short
    signed sizeof static struct switch template this throw true try typedef typename union unsigned
    using virtual void volatile while xor""".split()
)

SCALAR_TYPE_NAMES = {
    "uint8": "Byte",
    "int8": "Char",
    "short": "Short",
    "int": "Int",
    "long": "Long",
    "half": "Half",
    "float": "Float",
    "double": "Double",
    "bool": "Bool",
    "bfloat16": "BFloat16",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}
MEMORY_FORMAT_NAMES = {
    "contiguous_format": "Contiguous",
    "preserve_format": "Preserve",
    "channels_last": "ChannelsLast",
    "channels_last_3d": "ChannelsLast3d",
}
REDUCTION_NAMES = {"Mean": "1", "Sum": "2"}


@dataclasses.dataclass(frozen=True)
class Type:
    """A schema type. `Tensor?[]` is a list whose items may be None, `int[1]?` an optional list of
    size 1."""

    base: str
    optional: bool = False
    is_list: bool = False
    size: int = 0  # N of `int[N]`, 0 when not given
    item_optional: bool = False

    def __str__(self) -> str:
        text = self.base + ("?" if self.item_optional else "")
        if self.is_list:
            text += f"[{self.size or ''}]"
        return text + ("?" if self.optional else "")

    @property
    def is_tensor_like(self) -> bool:
        return self.base == "Tensor"

    @property
    def is_plain_tensor(self) -> bool:
        return self.base == "Tensor" and not self.is_list and not self.optional


@dataclasses.dataclass(frozen=True)
class Annotation:
    """The alias set of `Tensor(a!)`: its letters, whether it is written, and the wildcard of `(a ->
    *)`."""

    names: str
    write: bool = False
    wildcard: bool = False

    def __str__(self) -> str:
        arrow = " -> *" if self.wildcard else ""
        return f"({self.names}{'!' if self.write else ''}{arrow})"


def _typed(type_: Type, annotation: Annotation | None) -> str:
    text = str(type_)
    return text.replace("Tensor", f"Tensor{annotation}", 1) if annotation else text


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str
    type: Type
    annotation: Annotation | None = None
    default: str | None = None  # the text of the schema
    kwarg_only: bool = False

    @property
    def is_write(self) -> bool:
        return self.annotation is not None and self.annotation.write

    @property
    def is_out(self) -> bool:
        """An argument that only receives a result: written and keyword only."""
        return self.is_write and self.kwarg_only

    @property
    def cpp_name(self) -> str:
        return self.name + "_" if self.name in _CPP_KEYWORDS else self.name

    def __str__(self) -> str:
        default = "" if self.default is None else f"={self.default}"
        return f"{_typed(self.type, self.annotation)} {self.name}{default}"


@dataclasses.dataclass(frozen=True)
class Return:
    type: Type
    annotation: Annotation | None = None
    name: str = ""

    def __str__(self) -> str:
        return _typed(self.type, self.annotation) + (f" {self.name}" if self.name else "")


@dataclasses.dataclass(frozen=True)
class Schema:
    name: str  # without namespace and overload: "add", "add_"
    overload: str
    args: tuple[Argument, ...]
    returns: tuple[Return, ...]

    def __str__(self) -> str:
        return f"{self.full_name}{self.signature}"

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name

    @property
    def signature(self) -> str:
        items: list[str] = []
        star = False
        for arg in self.args:
            if arg.kwarg_only and not star:
                items.append("*")
                star = True
            items.append(str(arg))
        if len(self.returns) == 1:
            returns = str(self.returns[0])
        else:
            returns = "(" + ", ".join(map(str, self.returns)) + ")"
        return f"({', '.join(items)}) -> {returns}"

    @property
    def is_inplace(self) -> bool:
        if base_name(self.name) != self.name:
            return True
        return self.name.startswith("__i") and bool(self.args) and self.args[0].is_write

    @property
    def out_args(self) -> tuple[Argument, ...]:
        return tuple(a for a in self.args if a.is_out)

    @property
    def is_out(self) -> bool:
        return bool(self.out_args)

    @property
    def self_arg(self) -> Argument | None:
        return next((a for a in self.args if a.name == "self"), None)

    def arg(self, name: str) -> Argument | None:
        return next((a for a in self.args if a.name == name), None)


def base_name(name: str) -> str:
    """The name shared by the functional, in-place and out variants: `add_` -> `add`; `__and__`
    stays."""
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<number>-?(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?|inf\b))
    | (?P<arrow>->)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark>[()\[\],.*?!=|])
    )""",
    re.X,
)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        position = 0
        stripped = text.rstrip()
        while position < len(stripped):
            match = _TOKEN.match(stripped, position)
            if not match:
                raise GenError(
                    f"unexpected character '{stripped[position:].lstrip()[0]}' in schema '{text}'"
                )
            kind = match.lastgroup or ""
            self.tokens.append((kind, match.group(kind)))
            position = match.end()
        self.at = 0

    def fail(self, message: str) -> GenError:
        return GenError(f"{message} in schema '{self.text}'")

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index][1] if index < len(self.tokens) else ""

    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, token: str) -> bool:
        if self.kind() != "string" and self.peek() == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise self.fail(f"expected '{token}' but found '{self.peek() or 'the end'}'")

    def word(self, what: str) -> str:
        if self.kind() != "word":
            raise self.fail(f"expected {what} but found '{self.peek() or 'the end'}'")
        return self.take()

    def annotation(self) -> Annotation | None:
        if not self.accept("("):
            return None
        names = self.word("the letter of an alias set")
        while self.accept("|"):
            names += "|" + self.word("the letter of an alias set")
        write = self.accept("!")
        wildcard = False
        if self.accept("->"):
            self.expect("*")
            wildcard = True
        self.expect(")")
        return Annotation(names, write, wildcard)

    def type(self) -> tuple[Type, Annotation | None]:
        base = self.word("a type")
        if base not in BASE_TYPES:
            raise self.fail(f"unknown type '{base}'")
        annotation = self.annotation()
        if annotation and base != "Tensor":
            raise self.fail(f"only a Tensor can have an alias set, not '{base}'")
        optional = self.accept("?")
        if not self.accept("["):
            return Type(base, optional), annotation
        size = 0
        if self.kind() == "number":
            text = self.take()
            if not text.isdigit() or not 1 <= int(text) <= 64:
                raise self.fail(f"the size of a list must be 1 to 64, not '{text}'")
            size = int(text)
        self.expect("]")
        return Type(base, self.accept("?"), True, size, optional), annotation

    def default(self) -> str:
        if self.accept("["):
            items: list[str] = []
            while not self.accept("]"):
                if items:
                    self.expect(",")
                items.append(self.default())
            return "[" + ", ".join(items) + "]"
        if self.kind() not in ("string", "number", "word"):
            raise self.fail(f"expected a default value but found '{self.peek() or 'the end'}'")
        return self.take()

    def arguments(self) -> list[Argument]:
        args: list[Argument] = []
        kwarg_only = False
        self.expect("(")
        while not self.accept(")"):
            if args or kwarg_only:
                self.expect(",")
            if self.peek() == "*" and not kwarg_only:
                self.take()
                kwarg_only = True
                if self.peek() == ")":
                    raise self.fail("'*' must be followed by a keyword argument")
                if not args:
                    self._star_first(args)
                continue
            args.append(self.argument(kwarg_only))
        return args

    def _star_first(self, args: list[Argument]) -> None:
        """`(*, int a, ...)`: the comma after the star is consumed here, as no argument precedes
        it."""
        self.expect(",")
        args.append(self.argument(True))

    def argument(self, kwarg_only: bool) -> Argument:
        type_, annotation = self.type()
        name = self.word("an argument name")
        default = self.default() if self.accept("=") else None
        arg = Argument(name, type_, annotation, default, kwarg_only)
        _check_default(arg, self)
        return arg

    def returns(self) -> list[Return]:
        if not self.accept("("):
            type_, annotation = self.type()
            name = self.take() if self.kind() == "word" else ""
            return [Return(type_, annotation, name)]
        result: list[Return] = []
        while not self.accept(")"):
            if result:
                self.expect(",")
            type_, annotation = self.type()
            name = self.take() if self.kind() == "word" else ""
            result.append(Return(type_, annotation, name))
        return result


def _default_fits(type_: Type, text: str) -> bool:
    if text == "None":
        return type_.optional
    if type_.is_list:
        item = Type(type_.base, type_.item_optional)
        if text.startswith("["):
            return all(_default_fits(item, t) for t in list_items(text))
        return type_.size > 0 and _default_fits(item, text)
    base = type_.base
    is_int = re.fullmatch(r"-?\d+", text) is not None
    is_number = re.fullmatch(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|-?inf", text) is not None
    if base in ("int", "SymInt"):
        return is_int or (base == "int" and text in REDUCTION_NAMES)
    if base == "float":
        return is_number
    if base == "Scalar":
        return is_number or text in ("True", "False")
    if base == "bool":
        return text in ("True", "False")
    if base == "str":
        return text[0] in "\"'"
    if base == "ScalarType":
        return is_int or text in SCALAR_TYPE_NAMES
    if base == "MemoryFormat":
        return is_int or text in MEMORY_FORMAT_NAMES
    if base == "Layout":
        return is_int or text == "strided"
    if base == "Device":
        return text[0] in "\"'"
    return False


def list_items(text: str) -> list[str]:
    """The items of a default such as `[0, 1]`."""
    inner = text.strip()[1:-1].strip()
    return [t.strip() for t in inner.split(",")] if inner else []


def _check_default(arg: Argument, parser: _Parser) -> None:
    if arg.default is not None and not _default_fits(arg.type, arg.default):
        raise parser.fail(f"the default '{arg.default}' does not fit {arg.type} {arg.name}")
    if arg.default is not None and arg.is_write:
        raise parser.fail(f"the written argument '{arg.name}' cannot have a default")


def _check_schema(schema: Schema, parser: _Parser) -> None:
    seen: set[str] = set()
    with_default = ""
    for arg in schema.args:
        if arg.name in seen:
            raise parser.fail(f"the argument '{arg.name}' is given twice")
        seen.add(arg.name)
        if not arg.kwarg_only:
            if arg.default is None and with_default:
                raise parser.fail(
                    f"'{arg.name}' has no default but follows '{with_default}', which has one"
                )
            with_default = arg.name if arg.default is not None else with_default
        if arg.type.base in ("SymBool", "Dimname", "QScheme"):
            raise parser.fail(f"'{arg.type}' is not supported as an argument type")
    written = {a.annotation.names for a in schema.args if a.annotation and a.annotation.write}
    known = {n for a in schema.args if a.annotation for n in a.annotation.names.split("|")}
    for ret in schema.returns:
        if ret.annotation and not set(ret.annotation.names.split("|")) <= known:
            raise parser.fail(
                f"the returned alias set '({ret.annotation.names})' belongs to no argument"
            )
        if ret.annotation and ret.annotation.write and ret.annotation.names not in written:
            raise parser.fail(f"the returned '({ret.annotation.names}!)' is not a written argument")
    if schema.is_inplace and not any(a.is_write for a in schema.args):
        raise parser.fail(
            f"'{schema.name}' is an in-place name but no argument is marked as written (a!)"
        )


def parse(text: str) -> Schema:
    """Parses one schema. Raises GenError without a place; the caller knows the line."""
    parser = _Parser(text)
    name = parser.word("an operator name")
    overload = ""
    if parser.accept("."):
        overload = parser.word("an overload name")
    args = parser.arguments()
    parser.expect("->")
    returns = parser.returns()
    if parser.at != len(parser.tokens):
        raise parser.fail(f"unexpected '{parser.peek()}' after the returns")
    schema = Schema(name, overload, tuple(args), tuple(returns))
    _check_schema(schema, parser)
    return schema
