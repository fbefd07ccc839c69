"""Random arguments as Python expressions. Text rather than objects, because the text of a call is
all that is needed to run it again: a failure is reported, replayed and kept in a corpus as one
line. The expressions use the names in `namespace()`, of which `T` makes any kind of tensor."""

from __future__ import annotations

import random

INT_DTYPES = ("int64", "int32", "int16", "int8", "uint8")
FLOAT_DTYPES = ("float32", "float64", "bfloat16", "float16")
COMMON_DTYPES = FLOAT_DTYPES + INT_DTYPES + ("bool", "complex64", "complex128")
RARE_DTYPES = (
    "uint16 uint32 uint64 complex32 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu quint8 qint8 qint32 quint4x2 quint2x4 bits8 bits16 bits1x8 bits2x4 bits4x2 "
    "uint1 uint4 int4 float4_e2m1fn_x2"
).split()

SMALL_INTS = (0, 1, -1, 2, 3, -2, 4, 5, -3, 7)
EDGE_INTS = (16, 64, 65, 2**31 - 1, 2**31, -(2**31), 2**33, 2**40, 2**62, 2**63 - 1, -(2**63))
BEYOND_INTS = (2**63, 2**64, -(2**64), 10**30)
FLOATS = ("0.0", "1.0", "-1.0", "0.5", "2.0", "1e-3", "0.1", "3.7")
EDGE_FLOATS = ("nan", "inf", "-inf", "1e308", "-0.0", "5e-324", "1e39", "-2.5e9")
WORDS = (
    "sum mean none prod amax amin multiply add floor trunc constant reflect replicate circular "
    "batchmean ij xy tanh left right fro nuc cpu meta float32 linear nearest max min ij,jk->ik "
    "...i,i->... i->ii ii->i ij-> a,b->ab"
).split()
ODD_WORDS = (
    "''",
    "'\\0'",
    "'\\ud800'",
    "'cuda:99'",
    "'cpu:-1'",
    "'x'*5000",
    "'%s%n'",
    "'aten::add'",
)
DEVICES = (
    "'cpu'",
    "'cpu'",
    "'meta'",
    "'cuda'",
    "'cuda:0'",
    "'xpu'",
    "'cpu:5'",
    "torch.device('meta')",
)
LAYOUTS = ("torch.strided", "torch.sparse_coo", "torch.sparse_csr", "torch.jagged")
FORMATS = (
    "torch.contiguous_format",
    "torch.preserve_format",
    "torch.channels_last",
    "torch.channels_last_3d",
)
GENERATORS = ("None", "None", "torch.Generator()", "torch.default_generator")
STORAGES = (
    "T((4,),'float32').untyped_storage()",
    "torch.UntypedStorage(0)",
    "torch.UntypedStorage(8)",
)
ODD_VALUES = (
    "None", "True", "[]", "()", "{}", "object()", "int", "b'ab'", "...", "slice(0, 2)", "range(3)",
    "[[1, 2], [3]]", "[1, 'a']", "[None]", "{'a': 1}", "(lambda *a, **k: a[0] if a else 1.0)",
    "iter([1, 2])", "1+2j", "torch.Size([2, 3])", "torch.float32", "torch.device('cpu')", "{1, 2}",
    "[T((2,),'float32'), 1]", "[T((2,),'float32'), None]", "'abc'", "torch", "torch.Tensor",
    "nest(50)", "bytearray(8)", "memoryview(b'12345678')", "Odd()",
)  # fmt: skip
HUGE_SHAPES = ((2**31,), (2**40,), (2**62, 2), (2**31, 2**31), (2**33, 0, 3), (2**20, 2**20, 2**20))


def namespace():
    """Names that the expressions use."""
    import torch

    patterns = {}

    def pattern(count, dtype, fill):
        key = (count, dtype, fill)
        if key not in patterns:
            if len(patterns) > 4000:
                patterns.clear()
            patterns[key] = _pattern(torch, count, getattr(torch, dtype), fill)
        return patterns[key]

    def make(shape=(), dtype="float32", layout="c", fill="r"):
        if layout == "m":
            return torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
        if layout in "SK":
            made = make(shape, dtype, "c", fill)
            return made.to_sparse() if layout == "S" or len(shape) != 2 else made.to_sparse_csr()
        if layout == "x":
            return pattern(1, dtype, fill).clone().reshape(()).expand(shape)
        return _arrange(torch, lambda s: _filled(pattern, s, dtype, fill), shape, layout)

    def nest(depth):
        value = []
        for _ in range(depth):
            value = [value]
        return value

    numbers = {"nan": float("nan"), "inf": float("inf")}
    return {"torch": torch, "T": make, "nest": nest, "Odd": Odd, **numbers}


class Odd:
    """An object whose every protocol raises or returns nonsense."""

    def __index__(self):
        raise ValueError("no index")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index):
        raise KeyError(index)

    def __float__(self):
        raise OverflowError("no float")

    def __bool__(self):
        raise RuntimeError("no truth")


def _pattern(torch, count, dtype, fill):
    if fill == "n":
        edge = [float("nan"), float("inf"), -float("inf"), -0.0, 0.0, 1e30, -1.5]
    elif fill == "h":
        edge = [2**63 - 1, -(2**63), 0, 2**31, -1, 255, 128]
    elif fill == "z":
        edge = [0]
    else:
        edge = [0, 1, 2, -1, 3, 0, 1] if fill == "r" else [0, 1, 2]
    try:
        values = torch.tensor(edge, dtype=torch.float64 if fill == "n" else torch.int64).to(dtype)
        return values.repeat((count + len(edge) - 1) // len(edge))[:count]
    except Exception:  # a dtype that is only storage: give it bytes
        raw = torch.zeros(count * dtype.itemsize, dtype=torch.uint8)
        return raw.view(dtype) if count else torch.empty(0, dtype=dtype)


def _filled(pattern, shape, dtype, fill):
    count = 1
    for size in shape:
        count *= size
    return pattern(count, dtype, fill).clone().view(shape)


def _arrange(torch, filled, shape, layout):
    """A tensor of `shape` in the memory layout that the letter names."""
    if layout == "t" and len(shape) >= 2:
        return filled(shape[:-2] + (shape[-1], shape[-2])).transpose(-1, -2)
    if layout == "s" and shape:
        return filled(shape[:-1] + (shape[-1] * 2,))[..., ::2]
    if layout == "e" and shape and shape[0]:
        return filled((1,) + shape[1:]).expand(shape)
    if layout == "o" and shape and 0 not in shape:
        return filled((sum(shape),)).as_strided(shape, (1,) * len(shape))
    if layout == "p" and len(shape) >= 3:
        return filled(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))
    if layout == "n" and shape:
        return filled((shape[0] + 1,) + shape[1:])[1:]
    if layout == "g":
        made = filled(shape)
        differentiable = made.is_floating_point() or made.is_complex()
        return made.requires_grad_() if differentiable else made
    if layout == "j":
        return filled(shape).conj()
    if layout == "i":
        return torch._neg_view(filled(shape))
    return filled(shape)


_SPATIAL = {
    "stride": (1, 1, 2),
    "dilation": (1, 1, 2),
    "padding": (0, 1, 2, -1),
    "output_padding": (0, 0, 1),
    "kernel_size": (1, 2, 3),
}
_TEXTS = {
    "reduce": ("sum", "prod", "mean", "amax", "amin", "add", "multiply"),
    "padding": ("valid", "same"),
    "rounding_mode": ("floor", "trunc"),
    "approximate": ("none", "tanh"),
    "indexing": ("ij", "xy"),
    "interpolation": ("linear", "lower", "higher", "midpoint", "nearest"),
}


class Values:
    """Argument expressions for one call; shapes and dtypes hang together so that many are valid."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.shape = self.new_shape()
        self.dtype = rng.choice(FLOAT_DTYPES[:2]) if rng.random() < 0.5 else self.new_dtype()

    # ---- shapes and dtypes
    def new_dtype(self) -> str:
        pool = COMMON_DTYPES if self.rng.random() < 0.9 else RARE_DTYPES
        return self.rng.choice(pool)

    def new_shape(self) -> tuple:
        rng = self.rng
        chance = rng.random()
        if chance < 0.004:
            return rng.choice(((70000,), (301, 257), (3, 40001), (66000, 1)))
        rank = rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))
        if chance < 0.2:  # products and convolutions fit when all lengths are the same
            return (rng.choice((1, 2, 3, 4)),) * rank
        sizes = (1, 2, 3, 4, 5, 7) if chance < 0.85 else (0, 1, 2, 3, 17)
        return tuple(rng.choice(sizes) for _ in range(rank))

    def related_shape(self) -> tuple:
        """The shape of the call, or one that broadcasts with it, or is a product's other side."""
        rng, shape = self.rng, self.shape
        chance = rng.random()
        if chance < 0.6 or not shape:
            return shape
        if chance < 0.7:
            return tuple(1 if rng.random() < 0.5 else s for s in shape)
        if chance < 0.78:
            return shape[rng.randrange(len(shape)) :]
        if chance < 0.86 and len(shape) >= 2:
            return shape[:-2] + (shape[-1], shape[-2])
        return self.new_shape()

    # ---- one value of a kind
    def tensor(self, name: str = "") -> str:
        rng = self.rng
        chance = rng.random()
        if chance < 0.01:
            shape = rng.choice(HUGE_SHAPES)
            return f"T({shape}, '{self.new_dtype()}', '{'x' if chance < 0.002 else 'm'}')"
        shape = self.related_shape()
        if shape and any(w in name for w in ("target", "weight", "bias", "running", "vec")):
            chance = rng.random()  # often one number per sample or per channel
            shape = shape[:1] if chance < 0.25 else shape[1:2] if chance < 0.5 else shape
        index_like = any(w in name for w in ("index", "indices", "target", "repeats", "length"))
        if index_like and rng.random() < 0.8:
            dtype, fill = rng.choice(("int64", "int64", "int64", "int32")), rng.choice("iiiirzh")
        elif "mask" in name and rng.random() < 0.8:
            dtype, fill = "bool", "r"
        else:
            dtype = self.dtype if rng.random() < 0.85 else self.new_dtype()
            fill = rng.choice("rrrrzinnh")
        layout = rng.choice("ccccctsepnogij") if rng.random() < 0.6 else "c"
        if layout == "c" and rng.random() < 0.02:
            layout = "m"
        elif layout == "c" and rng.random() < 0.04:
            layout = rng.choice("SSK")
        return f"T({shape}, '{dtype}', '{layout}', '{fill}')"

    def integer(self, name: str = "") -> str:
        rng = self.rng
        chance = rng.random()
        if "dim" in name and chance < 0.7:
            rank = max(1, len(self.shape))
            return str(rng.randrange(-rank, rank))
        if name in ("reduction", "mode", "groups", "edge_order") and chance < 0.9:
            return rng.choice("0112")
        if chance < 0.84:
            return str(rng.choice(SMALL_INTS))
        if chance < 0.96:
            return str(rng.choice(EDGE_INTS))
        return str(rng.choice(BEYOND_INTS)) if chance < 0.98 else "True"

    def number(self) -> str:
        rng = self.rng
        return rng.choice(FLOATS) if rng.random() < 0.8 else rng.choice(EDGE_FLOATS)

    def scalar(self) -> str:
        chance = self.rng.random()
        if chance < 0.45:
            return self.integer()
        if chance < 0.9:
            return self.number()
        return self.rng.choice(("True", "False", "1j", "complex(nan, inf)", "2-3j"))

    def ints(self, name: str = "", size: int = 0) -> str:
        rng = self.rng
        chance = rng.random()
        rank = len(self.shape)
        if chance < 0.25 and ("size" in name or "shape" in name):
            return str(list(self.related_shape()))
        if chance < 0.3 and rank:
            return str(rng.sample(range(rank), rank))
        if chance < 0.36:
            return self.integer(name)
        if name in _SPATIAL and chance < 0.8:
            value = rng.choice(_SPATIAL[name])
            return str([value] * (size or max(1, rank - 2)))
        count = size if size and rng.random() < 0.9 else rng.choice((0, 1, 2, 2, 3, 4, rank, rank))
        if chance > 0.995:
            count = 70
        return "[" + ", ".join(self.integer(name) for _ in range(count)) + "]"

    def tensors(self, name: str, optional: bool = False) -> str:
        rng = self.rng
        parts = []
        for _ in range(rng.choice((0, 1, 2, 2, 3, 3, 5))):
            none = optional and rng.random() < 0.3
            parts.append("None" if none else self.tensor(name))
        return f"[{', '.join(parts)}]"

    def text(self, name: str = "") -> str:
        rng = self.rng
        if name in _TEXTS and rng.random() < 0.8:
            return repr(rng.choice(_TEXTS[name]))
        return repr(rng.choice(WORDS)) if rng.random() < 0.9 else rng.choice(ODD_WORDS)

    def any_dtype(self) -> str:
        return "torch." + self.new_dtype()

    def anything(self) -> str:
        rng = self.rng
        kind = rng.randrange(12)
        if kind < 3:
            return self.tensor()
        if kind == 3:
            return self.integer()
        if kind == 4:
            return self.scalar()
        if kind == 5:
            return self.ints()
        if kind == 6:
            return self.tensors("")
        if kind == 7:
            return self.text()
        if kind == 8:
            return rng.choice(STORAGES + GENERATORS + LAYOUTS + FORMATS + DEVICES)
        return rng.choice(ODD_VALUES)

    def index(self) -> str:
        """What may stand in brackets after a tensor."""
        rng = self.rng
        parts = []
        for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
            kind = rng.randrange(9)
            if kind < 2:
                parts.append(self.integer("dim"))
            elif kind < 4:
                ends = [rng.choice(("None", self.integer())) for _ in range(3)]
                parts.append(f"slice({', '.join(ends)})")
            elif kind == 4:
                parts.append(rng.choice(("None", "...", "True", "False")))
            elif kind == 5:
                parts.append(self.ints())
            elif kind == 6:
                parts.append(self.tensor("index"))
            elif kind == 7:
                parts.append(self.tensor("mask"))
            else:
                parts.append(self.anything())
        return parts[0] if len(parts) == 1 else f"({', '.join(parts)},)"

    # ---- by schema
    def of_type(self, kind: str, name: str) -> str:
        """A plausible value for an argument of schema type `kind`: `SymInt[2]`, `Tensor?`."""
        rng = self.rng
        if kind.endswith("?"):
            if rng.random() < 0.4:
                return "None"
            kind = kind[:-1]
        if kind.endswith("]"):
            element, _, size = kind[:-1].rpartition("[")
            if element.startswith("Tensor"):
                return self.tensors(name, optional=element.endswith("?"))
            if element in ("int", "SymInt"):
                return self.ints(name, int(size or 0))
            count = int(size or rng.randrange(4))
            parts = [self.of_type(element, name) for _ in range(count)]
            return f"[{', '.join(parts)}]"
        maker = _MAKERS.get(kind)
        return maker(self, name) if maker else self.anything()


_MAKERS = {
    "Tensor": Values.tensor,
    "int": Values.integer,
    "SymInt": Values.integer,
    "float": lambda v, name: v.number(),
    "Scalar": lambda v, name: v.scalar(),
    "bool": lambda v, name: v.rng.choice(("True", "False")),
    "str": Values.text,
    "ScalarType": lambda v, name: v.any_dtype(),
    "Device": lambda v, name: v.rng.choice(DEVICES),
    "Layout": lambda v, name: v.rng.choice(LAYOUTS if v.rng.random() < 0.3 else LAYOUTS[:1]),
    "MemoryFormat": lambda v, name: v.rng.choice(FORMATS),
    "Generator": lambda v, name: v.rng.choice(GENERATORS),
    "Storage": lambda v, name: v.rng.choice(STORAGES),
    "any": lambda v, name: v.anything(),
    "index": lambda v, name: v.index(),
}
