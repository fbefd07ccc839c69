"""From yaml entries to operators. One entry of native_functions.yaml gives one to three operators
(functional, in-place, out); this file derives their schemas, decides which kernel serves which
dispatch key, and checks all that concerns more than one schema. The emitters read this model and
never look at the yaml.
"""

from __future__ import annotations

import bisect
import dataclasses
import re
import zlib

from . import schema as sch
from .errors import GenError
from .yaml_lines import Mapping, load_list

ENTRY_KEYS = frozenset(
    """func variants inplace out python_module python tags doc pointwise structured dispatch
    inplace_dispatch out_dispatch out_args symint symbolic python_out alias foreach each
    numbers_first out_keeps_shape inverse stands_for""".split()
)
PYTHON_MODULES = ("nn", "linalg", "special", "fft", "sparse", "nested")
KEY_ALIASES = {
    "CompositeExplicit": "CompositeExplicitAutograd",
    "CompositeImplicit": "CompositeImplicitAutograd",
}
DISPATCH_KEYS = frozenset(
    """CPU CUDA Meta PrivateUse1 QuantizedCPU QuantizedCUDA SparseCPU SparseCUDA SparseMeta
    SparseCsrCPU SparseCsrCUDA SparseCsrMeta NestedTensorCPU NestedTensorCUDA NestedTensorMeta
    BackendSelect Fake Functionalize Conjugate Negative ZeroTensor ADInplaceOrView Autograd
    AutocastCPU AutocastCUDA CompositeExplicitAutograd CompositeImplicitAutograd
    CompositeImplicitAutogradNestedTensor CompositeExplicitAutogradNonFunctional""".split()
)
POINTWISE_KEYS = frozenset(
    "functor header params types promote output operands numbers plain check".split()
)
POINTWISE_TYPES = frozenset(
    """all all_nobool real real_nobool integral integral_bool floating floating_complex complex
    complex_half pow""".split()
)
PROMOTE = ("default", "float", "none")
NUMBERS = ("wrap", "wide", "checked")
OUTPUT = ("same", "bool", "real")
OPTION_NAMES = ("dtype", "layout", "device", "pin_memory")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")
_FAMILY = re.compile(r"#\s*==== family:\s*([a-z][a-z0-9_]*)\s*====")


@dataclasses.dataclass(frozen=True)
class Kernel:
    """What serves one dispatch key of one operator.

    kind: native (call fn), structured (shape function, then fn), pointwise, alias (call the
    operator fn), foreach (call the operator fn on each tensor of a list), store_inplace and
    store_out (compute the functional variant, then copy the result into the destination), and
    store_sequence (the same, in the shape of a destination of as many elements).
    """

    key: str
    kind: str
    fn: str = ""


@dataclasses.dataclass(frozen=True)
class Pointwise:
    functor: str
    header: str
    params: tuple[str, ...]
    operands: tuple[str, ...]
    types: str
    promote: str
    output: str
    numbers: str = "wrap"  # a Python number that the dtype does not hold: see NumberRule
    plain: str = ""  # the functor for the parameter 1: the same without the multiplication
    check: str = ""  # called with the operator's arguments before anything else

    @property
    def table(self) -> str:
        """The loop table's name; operators that share functor, arity and output kind share it."""
        kind = "" if self.output == "same" else "_" + self.output
        return f"loops_{self.functor}_{len(self.operands)}_{len(self.params)}{kind}"

    def plain_form(self) -> Pointwise | None:
        if not self.plain:
            return None
        return dataclasses.replace(self, functor=self.plain, params=(), plain="")

    def forms(self) -> list[Pointwise]:
        plain = self.plain_form()
        return [self, plain] if plain else [self]


@dataclasses.dataclass
class Entry:
    """One yaml entry after validation."""

    schema: sch.Schema
    file: str
    line: int
    family: str
    variants: frozenset[str]
    python_module: str = ""
    python: bool = True
    python_inplace: bool = True
    python_out: bool = True
    out_args: tuple[str, ...] = ()  # names of the out arguments where they are not the returns'
    symint: bool = False
    symbolic: str = ""  # the kernel for symbolic sizes, where it is another one
    numbers_first: bool = False  # Python also takes the keyword-only numbers by position
    tags: tuple[str, ...] = ()
    doc: str = ""
    pointwise: Pointwise | None = None
    meta: str = ""  # structured: name of the shape function without its prefix
    inverse: str = ""  # of a view: the function that carries a write back, or "none"
    ops: list[Op] = dataclasses.field(default_factory=list)

    def error(self, message: str) -> GenError:
        return GenError(f"{self.schema.full_name}: {message}", self.file, self.line)


@dataclasses.dataclass
class Op:
    """One operator overload, the unit the dispatcher knows."""

    schema: sch.Schema
    entry: Entry
    variants: frozenset[str]
    kernels: list[Kernel]
    functional: Op | None = None  # for the in-place and out variants that an entry asked for
    alias_of: Op | None = None
    target: Op | None = None  # foreach: the operator called on each tensor
    # How many parameters of its C++ functions must be given, where an overload would else be
    # ambiguous: (is it a method, name, number of parameters) -> count.
    cpp_required: dict[tuple[bool, str, int], int] = dataclasses.field(default_factory=dict)

    @property
    def base(self) -> str:
        return sch.base_name(self.schema.name)

    @property
    def struct(self) -> str:
        """Name of the struct in at::_ops: add_Tensor, add__Tensor, add_out."""
        s = self.schema
        return f"{s.name}_{s.overload}" if s.overload else s.name

    @property
    def options_args(self) -> tuple[sch.Argument, ...]:
        """The four arguments dtype, layout, device, pin_memory of a factory, or nothing."""
        return options_args(self.schema)

    @property
    def has_symint(self) -> bool:
        return any(a.type.base == "SymInt" for a in self.schema.args)

    @property
    def is_view(self) -> bool:
        """Returns an alias of an argument it does not write."""
        return any(r.annotation and not r.annotation.write for r in self.schema.returns)


def options_args(schema: sch.Schema) -> tuple[sch.Argument, ...]:
    args = schema.args
    for i in range(len(args) - 3):
        if tuple(a.name for a in args[i : i + 4]) == OPTION_NAMES:
            bases = tuple(a.type.base for a in args[i : i + 4])
            if bases == ("ScalarType", "Layout", "Device", "bool"):
                return args[i : i + 4]
    return ()


# ---- derived schemas -----------------------------------------------------------------------------


def inplace_schema(entry: Entry) -> sch.Schema:
    s = entry.schema
    self_arg = s.self_arg
    if self_arg is None or not self_arg.type.is_tensor_like or self_arg.type.optional:
        raise entry.error("'inplace' needs a Tensor argument named 'self'")
    if self_arg.annotation or s.is_inplace or s.is_out:
        raise entry.error("'inplace' needs a functional schema; 'self' has an alias set already")
    returned = [str(r.type) for r in s.returns]
    if returned != [str(self_arg.type)]:
        raise entry.error(f"'inplace' needs exactly one return of the type of self, not {returned}")
    mark = sch.Annotation("a", write=True)
    args = tuple(dataclasses.replace(a, annotation=mark) if a is self_arg else a for a in s.args)
    returns = () if self_arg.type.is_list else (sch.Return(self_arg.type, mark),)
    return sch.Schema(s.name + "_", s.overload, args, returns)


def out_schema(entry: Entry, overload: str) -> sch.Schema:
    s = entry.schema
    if s.is_inplace or s.is_out:
        raise entry.error("'out' needs a functional schema")
    if not s.returns or any(r.type.base != "Tensor" or r.annotation for r in s.returns):
        raise entry.error("'out' needs returns that are new Tensors")
    options = options_args(s)
    args = [a for a in s.args if a not in options]
    returns: list[sch.Return] = []
    for i, ret in enumerate(s.returns):
        mark = sch.Annotation("abcdefghij"[i], write=True)
        name = ret.name or ("out" if len(s.returns) == 1 else f"out{i}")
        if entry.out_args:
            name = entry.out_args[i]
        if any(a.name == name for a in args):
            raise entry.error(f"the out argument '{name}' has the name of another argument")
        args.append(sch.Argument(name, ret.type, mark, None, kwarg_only=True))
        if not ret.type.is_list:
            returns.append(sch.Return(ret.type, mark, "" if entry.out_args else ret.name))
    if len(returns) != len(s.returns):
        returns = []
    return sch.Schema(s.name, overload, tuple(args), tuple(returns))


# ---- reading one entry ---------------------------------------------------------------------------


class _EntryReader:
    """Validates the keys of one yaml mapping and builds its Entry."""

    def __init__(self, raw: Mapping, file: str, family: str) -> None:
        self.raw = raw
        self.file = file
        self.family = family
        self.name = str(raw.get("func", "")).split("(")[0] or "entry"

    def error(self, message: str, key: str = "") -> GenError:
        line = self.raw.key_lines.get(key, self.raw.line)
        return GenError(f"{self.name}: {message}", self.file, line)

    def read(self) -> Entry:
        raw = self.raw
        for key in raw:
            if key not in ENTRY_KEYS:
                raise self.error(
                    f"unknown key '{key}'; known are {', '.join(sorted(ENTRY_KEYS))}", key
                )
        if not isinstance(raw.get("func"), str):
            raise self.error("an entry needs 'func' with a schema")
        try:
            schema = sch.parse(raw["func"])
        except GenError as error:
            raise error.at(self.file, raw.key_lines["func"]) from None
        module = self.choice("python_module", raw.get("python_module", ""), ("", *PYTHON_MODULES))
        tags = raw.get("tags", [])
        tags = [tags] if isinstance(tags, str) else tags
        if not isinstance(tags, list) or not all(isinstance(t, str) for t in tags):
            raise self.error("'tags' must be a list of words", "tags")
        entry = Entry(
            schema=schema,
            file=self.file,
            line=raw.line,
            family=self.family,
            variants=self.variant_set("variants", raw.get("variants", "function")),
            python_module=module,
            python=raw.get("python") != "inplace" and self.boolean("python", True),
            python_inplace=bool(raw.get("python", True)),
            python_out=self.boolean("python_out", True),
            out_args=self.out_args(schema),
            symint=self.boolean("symint", False),
            symbolic=str(raw.get("symbolic") or ""),
            numbers_first=self.boolean("numbers_first", False),
            tags=tuple(tags),
            doc=str(raw.get("doc") or ""),
            inverse=str(raw.get("inverse", "")),
        )
        self.check_variants(entry)
        kernels = self.kernels(entry)
        entry.ops.append(Op(schema, entry, entry.variants, kernels))
        self.check_inverse(entry)
        self.add_inplace(entry)
        self.add_out(entry)
        return entry

    def out_args(self, schema: sch.Schema) -> tuple[str, ...]:
        names = self.raw.get("out_args", [])
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise self.error("'out_args' must be a list of argument names", "out_args")
        if names and ("out" not in self.raw or len(names) != len(schema.returns)):
            raise self.error("'out_args' needs 'out' and one name for each return", "out_args")
        return tuple(names)

    def check_variants(self, entry: Entry) -> None:
        if "method" in entry.variants:
            self_arg = entry.schema.self_arg
            if self_arg is None or not self_arg.type.is_plain_tensor:
                raise self.error("the variant 'method' needs an argument 'Tensor self'", "variants")

    def check_inverse(self, entry: Entry) -> None:
        """A view that is no composition says how a write to it is carried back."""
        op = entry.ops[0]
        wanted = op.is_view and {k.key for k in op.kernels} != {"CompositeImplicitAutograd"}
        if wanted != bool(entry.inverse):
            raise self.error(
                "a view operator with a kernel needs 'inverse': the name of a function in "
                "ATen/functional/ViewInverse.h, or 'none'"
                if wanted
                else "'inverse' is for view operators with a kernel of their own",
                "inverse",
            )
        if entry.inverse and not _IDENTIFIER.match(entry.inverse):
            raise self.error(f"'inverse' must be a name, not '{entry.inverse}'", "inverse")

    def boolean(self, key: str, default: bool) -> bool:
        value = self.raw.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"'{key}' must be True or False, not '{value}'", key)
        return value

    def choice(self, key: str, value: object, allowed: tuple[str, ...]) -> str:
        if value not in allowed:
            names = ", ".join(a for a in allowed if a)
            raise self.error(f"'{key}' must be one of {names}, not '{value}'", key.split(".")[0])
        return str(value)

    def variant_set(self, key: str, value: object) -> frozenset[str]:
        words = [w.strip() for w in value.split(",")] if isinstance(value, str) else []
        if not words or any(w not in ("function", "method") for w in words):
            raise self.error(f"'{key}' must be 'function', 'method' or both, not '{value}'", key)
        return frozenset(words)

    # -- kernels

    def dispatch(self, key: str) -> list[Kernel]:
        """The kernels of a `{CPU, CUDA: fn, Meta: fn}` mapping."""
        raw = self.raw.get(key)
        if not isinstance(raw, dict) or not raw:
            raise self.error(
                f"'{key}' must map dispatch keys to function names, such as {{CPU: fn}}", key
            )
        kernels: list[Kernel] = []
        seen: set[str] = set()
        for names, fn in raw.items():
            if not isinstance(fn, str) or not _IDENTIFIER.match(fn):
                raise self.error(f"'{fn}' under '{key}' is not a C++ function name", key)
            for name in (n.strip() for n in names.split(",")):
                full = KEY_ALIASES.get(name, name)
                if full not in DISPATCH_KEYS:
                    raise self.error(f"unknown dispatch key '{name}' under '{key}'", key)
                if full in seen:
                    raise self.error(f"the dispatch key '{name}' is given twice under '{key}'", key)
                seen.add(full)
                kernels.append(Kernel(full, "native", fn))
        return kernels

    def kernels(self, entry: Entry) -> list[Kernel]:
        """The kernels of the entry itself, and what handlers see in its place."""
        kernels = self.own_kernels(entry)
        if "stands_for" not in self.raw:
            return kernels
        fn = self.raw["stands_for"]
        if not isinstance(fn, str) or not _IDENTIFIER.match(fn):
            raise self.error(f"'{fn}' under 'stands_for' is not a C++ function name", "stands_for")
        if any(k.key == "CompositeImplicitAutograd" for k in kernels):
            raise self.error("a composite operator already stands for others", "stands_for")
        return [*kernels, Kernel("PythonTLSSnapshot", "native", fn)]

    def own_kernels(self, entry: Entry) -> list[Kernel]:
        raw = self.raw
        kinds = [k for k in ("pointwise", "structured", "alias", "foreach") if k in raw]
        if len(kinds) > 1:
            raise self.error(f"give either '{kinds[0]}' or '{kinds[1]}', not both")
        if kinds == ["alias"]:
            if "dispatch" in raw:
                raise self.error("an 'alias' has no kernels of its own", "dispatch")
            return [Kernel("CompositeImplicitAutograd", "alias", str(raw["alias"]))]
        if kinds == ["foreach"]:
            # Above autograd the operators on single tensors record their own history.
            keys = ("CPU", "CompositeExplicitAutograd", "Autograd")
            return [Kernel(key, "foreach", str(raw["foreach"])) for key in keys]
        extra = self.dispatch("dispatch") if "dispatch" in raw else []
        if not kinds:
            if extra:
                return extra
            if entry.schema.is_out:
                return [Kernel("CompositeImplicitAutograd", "native", entry.schema.name + "_out")]
            return [Kernel("CompositeImplicitAutograd", "native", entry.schema.name)]
        if entry.schema.is_inplace or entry.schema.is_out:
            raise self.error(
                f"'{kinds[0]}' needs a functional schema; use 'inplace' and 'out' for the others"
            )
        own = self.pointwise(entry) if kinds == ["pointwise"] else self.structured(entry)
        for kernel in extra:
            if any(kernel.key == k.key for k in own):
                raise self.error(f"'{kinds[0]}' already serves {kernel.key}", "dispatch")
        return own + extra

    def structured(self, entry: Entry) -> list[Kernel]:
        raw = self.raw["structured"]
        keys = {n.strip() for k in raw for n in k.split(",")} if isinstance(raw, dict) else set()
        if not {"meta", "CPU"} <= keys:
            raise self.error("'structured' needs at least {meta: NAME, CPU: FN}", "structured")
        if (
            any(str(r.type) != "Tensor" or r.annotation for r in entry.schema.returns)
            or not entry.schema.returns
        ):
            raise self.error("'structured' needs returns that are new Tensors", "structured")
        kernels = []
        for key, fn in raw.items():
            if not isinstance(fn, str) or not _IDENTIFIER.match(fn):
                raise self.error(
                    f"'{fn}' under 'structured' is not a C++ function name", "structured"
                )
            if key == "meta":
                entry.meta = fn
                continue
            for name in (n.strip() for n in key.split(",")):
                if name not in ("CPU", "CUDA", "PrivateUse1"):
                    raise self.error(
                        f"'structured' takes meta, CPU and CUDA, not '{name}'", "structured"
                    )
                kernels.append(Kernel(name, "structured", fn))
        return [*kernels, Kernel("Meta", "structured")]

    def pointwise(self, entry: Entry) -> list[Kernel]:
        raw = self.raw["pointwise"]
        if (
            not isinstance(raw, dict)
            or not isinstance(raw.get("functor"), str)
            or "header" not in raw
        ):
            raise self.error(
                "'pointwise' needs at least {functor: NAME, header: FILE}", "pointwise"
            )
        for key in raw:
            if key not in POINTWISE_KEYS:
                known = ", ".join(sorted(POINTWISE_KEYS))
                raise self.error(
                    f"unknown key '{key}' under 'pointwise'; known are {known}", "pointwise"
                )
        s = entry.schema
        if [str(r.type) for r in s.returns] != ["Tensor"] or s.returns[0].annotation:
            raise self.error("'pointwise' needs exactly one new Tensor as its return", "pointwise")
        params = self.names(raw, "params", [])
        default = [
            a.name
            for a in s.args
            if (a.type.is_plain_tensor or str(a.type) == "Scalar") and a.name not in params
        ]
        operands = self.names(raw, "operands", default)
        for name in (*params, *operands):
            if s.arg(name) is None:
                raise self.error(f"'{name}' under 'pointwise' is not an argument", "pointwise")
        unused = [a.name for a in s.args if a.name not in params and a.name not in operands]
        if unused:
            raise self.error(
                f"'pointwise' does not say what the argument '{unused[0]}' is for", "pointwise"
            )
        if not operands:
            raise self.error("'pointwise' needs at least one operand", "pointwise")
        for key in ("plain", "check"):
            if not _IDENTIFIER.match(str(raw.get(key, "x"))):
                raise self.error(f"'{raw[key]}' under 'pointwise' is not a C++ name", "pointwise")
        if "plain" in raw and [str(s.arg(p).type) for p in params] != ["Scalar"]:
            raise self.error("'plain' needs exactly one parameter, a Scalar", "pointwise")
        entry.pointwise = Pointwise(
            plain=str(raw.get("plain", "")),
            check=str(raw.get("check", "")),
            functor=raw["functor"],
            header=str(raw["header"]),
            params=tuple(params),
            operands=tuple(operands),
            types=self.choice(
                "pointwise.types", raw.get("types", "all"), tuple(sorted(POINTWISE_TYPES))
            ),
            promote=self.choice("pointwise.promote", raw.get("promote", "default"), PROMOTE),
            output=self.choice("pointwise.output", raw.get("output", "same"), OUTPUT),
            numbers=self.choice("pointwise.numbers", raw.get("numbers", "wrap"), NUMBERS),
        )
        return [Kernel(key, "pointwise") for key in ("CPU", "CUDA", "Meta")]

    def names(self, raw: Mapping, key: str, default: list[str]) -> list[str]:
        value = raw.get(key, default)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.error(
                f"'{key}' under 'pointwise' must be a list of argument names", "pointwise"
            )
        return value

    # -- derived operators

    def variant_kernels(self, entry: Entry, key: str, store: str) -> list[Kernel]:
        if key in self.raw:
            return self.dispatch(key)
        functional = entry.ops[0]
        kinds = ["pointwise", "structured", "alias"]
        if store == "store_inplace":
            kinds.append("foreach")
        own = [k for k in functional.kernels if k.kind in kinds]
        if own:
            return own
        # A composite stays differentiable through its parts; others have a formula of their own.
        implicit = any(k.key == "CompositeImplicitAutograd" for k in functional.kernels)
        return [
            Kernel("CompositeImplicitAutograd" if implicit else "CompositeExplicitAutograd", store)
        ]

    def add_inplace(self, entry: Entry) -> None:
        value = self.raw.get("inplace", False)
        if value is False:
            if "inplace_dispatch" in self.raw:
                raise self.error("'inplace_dispatch' without 'inplace'", "inplace_dispatch")
            return
        is_list = bool(entry.schema.self_arg and entry.schema.self_arg.type.is_list)
        default = "function" if is_list else "method"
        variants = self.variant_set("inplace", default if value is True else value)
        kernels = self.variant_kernels(entry, "inplace_dispatch", "store_inplace")
        entry.ops.append(Op(inplace_schema(entry), entry, variants, kernels, entry.ops[0]))

    def add_out(self, entry: Entry) -> None:
        value = self.raw.get("out", False)
        if value is False:
            if "out_dispatch" in self.raw:
                raise self.error("'out_dispatch' without 'out'", "out_dispatch")
            return
        if value is True:
            overload = f"{entry.schema.overload}_out" if entry.schema.overload else "out"
        elif isinstance(value, str) and _IDENTIFIER.match(value):
            overload = value
        else:
            raise self.error(f"'out' must be True or an overload name, not '{value}'", "out")
        # A sequence fills an out tensor of as many elements in its own shape.
        store = "store_sequence" if self.boolean("out_keeps_shape", False) else "store_out"
        kernels = self.variant_kernels(entry, "out_dispatch", store)
        functional = entry.ops[0]
        entry.ops.append(
            Op(out_schema(entry, overload), entry, frozenset(["function"]), kernels, functional)
        )


# ---- the whole list ------------------------------------------------------------------------------


@dataclasses.dataclass
class Model:
    file: str
    entries: list[Entry]
    ops: list[Op]
    derivatives: frozenset[str]  # full names of the operators that have a formula
    sections: tuple[str, ...]  # the families of the file, also those without an entry yet

    def families(self) -> dict[str, list[Op]]:
        result: dict[str, list[Op]] = {name: [] for name in self.sections}
        for op in self.ops:
            result.setdefault(op.entry.family, []).append(op)
        return dict(sorted(result.items()))

    def by_base(self) -> dict[str, list[Op]]:
        result: dict[str, list[Op]] = {}
        for op in self.ops:
            result.setdefault(op.base, []).append(op)
        return dict(sorted(result.items()))


def shard_count(items: int, per_shard: int) -> int:
    """A power of two, so that a growing list reshuffles its shards rarely."""
    count = 1
    while count * per_shard < items:
        count *= 2
    return count


def shard_of(name: str, count: int) -> int:
    return zlib.crc32(name.encode()) % count


def shards_by_header(headers: dict[str, str], per_shard: int) -> dict[str, list[str]]:
    """Loop tables, given with the header of their functor, in groups of about `per_shard` that
    share it: a new functor changes the files of one header, which its edit recompiles anyway. The
    name of a group is the header's and a number."""
    by_header: dict[str, list[str]] = {}
    for table, header in sorted(headers.items()):
        stem = header.rpartition("/")[2].removesuffix(".h")
        by_header.setdefault(stem, []).append(table)
    groups: dict[str, list[str]] = {}
    for stem, tables in sorted(by_header.items()):
        count = shard_count(len(tables), per_shard)
        for table in tables:
            groups.setdefault(f"{stem}_{shard_of(table, count)}", []).append(table)
    return groups


def _family_lines(lines: list[str], file: str) -> tuple[list[int], list[str]]:
    starts: list[int] = []
    names: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith("#") or "====" not in line:
            continue
        match = _FAMILY.match(line)
        if not match:
            raise GenError("a section line reads '# ==== family: NAME ===='", file, number)
        starts.append(number)
        names.append(match.group(1))
    return starts, names


def _check_unique(entries: list[Entry]) -> list[Op]:
    ops: list[Op] = []
    by_name: dict[str, Op] = {}
    by_struct: dict[str, Op] = {}
    for entry in entries:
        for op in entry.ops:
            name = op.schema.full_name
            other = by_name.get(name)
            if other:
                raise entry.error(
                    f"the operator '{name}' is already defined at line {other.entry.line}"
                )
            by_name[name] = op
            other = by_struct.get(op.struct)
            if other:
                raise entry.error(
                    f"'{name}' and '{other.schema.full_name}' (line {other.entry.line}) "
                    "need the same C++ name"
                )
            by_struct[op.struct] = op
            ops.append(op)
    return ops


def _variant(op: Op) -> str:
    return "out" if op.schema.is_out else "in-place" if op.schema.is_inplace else "functional"


def _resolve_aliases(ops: list[Op]) -> None:
    """Replaces the target's name by the struct of its variant of the same kind."""
    by_name = {op.schema.full_name: op for op in ops}
    for op in ops:
        if op.kernels[0].kind != "alias":
            continue
        name = op.kernels[0].fn
        target = by_name.get(name)
        if target is None:
            raise op.entry.error(f"'alias' names the operator '{name}', which does not exist")
        kind = _variant(op)
        found = [o for o in target.entry.ops if _variant(o) == kind] or [
            o
            for o in ops
            if _variant(o) == kind and o.base == target.base and _arg_types(o) == _arg_types(op)
        ]
        if not found:
            raise op.entry.error(f"'{name}' has no {kind} variant to be an alias of")
        if _arg_types(found[0]) != _arg_types(op):
            raise op.entry.error(f"its arguments differ from those of '{found[0].schema}'")
        op.kernels = [dataclasses.replace(op.kernels[0], fn=found[0].struct)]
        op.alias_of = found[0]


def _resolve_foreach(ops: list[Op]) -> None:
    """Finds the operator that a foreach operator calls on each tensor."""
    by_name = {op.schema.full_name: op for op in ops}
    for op in ops:
        if op.kernels[0].kind != "foreach":
            continue
        name = op.kernels[0].fn
        found = by_name.get(name)
        if found and op.schema.is_inplace:
            functional, own = found, [o for o in found.entry.ops if o.schema.is_inplace]
            same = (o for o in ops if o.schema.is_inplace and o.base == functional.base)
            alike = (o for o in same if _arg_types(o) == _arg_types(functional))
            found = own[0] if own else next(alike, None)
        if found is None:
            raise op.entry.error(f"'foreach' names '{name}', which has no {_variant(op)} variant")
        op.target = found
        if found.entry.pointwise is None:
            op.kernels = [k for k in op.kernels if k.key != "CPU"]


def _expanded(raw: Mapping) -> list[Mapping]:
    """An entry with `each: [words]` stands for one entry per word, which replaces {op} in its
    texts."""
    if "each" not in raw:
        return [raw]
    result = []
    for word in raw["each"]:
        entry = Mapping(raw.line)
        entry.key_lines = raw.key_lines
        for key, value in raw.items():
            if key != "each":
                entry[key] = value.replace("{op}", word) if isinstance(value, str) else value
        result.append(entry)
    return result


def _arg_types(op: Op) -> list[str]:
    return [str(a.type) for a in op.schema.args] + [str(r.type) for r in op.schema.returns]


def _check_pointwise_tables(entries: list[Entry]) -> None:
    seen: dict[str, tuple[Pointwise, Entry]] = {}
    for entry in entries:
        for pw in entry.pointwise.forms() if entry.pointwise else ():
            first, other = seen.setdefault(pw.table, (pw, entry))
            if (first.header, first.types) != (pw.header, pw.types):
                raise entry.error(
                    f"the functor '{pw.functor}' is used with another header or type list "
                    f"at line {other.line}"
                )


def load(path: str) -> Model:
    """Reads and checks the operator list. Raises GenError for the first mistake."""
    raw_entries, lines, file = load_list(path)
    starts, names = _family_lines(lines, file)
    entries: list[Entry] = []
    for raw in raw_entries:
        section = bisect.bisect_right(starts, raw.line) - 1
        if section < 0:
            raise GenError(
                "an entry must stand below a line '# ==== family: NAME ===='", file, raw.line
            )
        entries += [_EntryReader(one, file, names[section]).read() for one in _expanded(raw)]
    ops = _check_unique(entries)
    _resolve_aliases(ops)
    _resolve_foreach(ops)
    _check_pointwise_tables(entries)
    return Model(file, entries, ops, frozenset(), tuple(names))
