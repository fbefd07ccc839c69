"""TorchScript archives for the loader to refuse: whole archives, and mutations of them on five
levels. Bytes are changed blindly; records are renamed, exchanged, dropped and lied about; pickles
are changed opcode by opcode; and the text of the code is changed by lines and by tokens, so that
much of it still parses and reaches the compiler. The last level writes code of its own: names of
the Python world, deep nests, long chains.

Archive number i of a seed depends on nothing but the two numbers."""

from __future__ import annotations

import io
import random
import re

from checkpoints import INTEGERS, _records, composed_pickle, mutate_archive, mutate_bytes
from checkpoints import mutate_pickle as mutate_opcodes
from script_models import models

import torch

LEVELS = ("bytes", "records", "pickles", "pickles", "text", "text", "text", "written")
# What a token of the code may turn into: names of the language, of its library, and of Python.
WORDS = """self torch ops __torch__ CONSTANTS c0 c99 int float bool str complex Tensor List Dict
Optional Tuple Union NoneType Any number Future Enum NamedTuple Module Interface ModuleInterface
forward __init__ __setstate__ __getstate__ __annotations__ __parameters__ __buffers__ _is_full_
annotate unchecked_cast uninitialized getattr isinstance range len print fork list dict tuple min
prim aten rpc quantized cuda None True False inf nan if else elif while for in return def class
not and or is with as raise assert pass lambda yield del global import from try except async await
eval exec open __import__ globals compile input breakpoint os sys subprocess __builtins__ __class__
__dict__ __globals__ __reduce__ __subclasses__ add mul size append item view __getitem__ unwrap
training 0 1 -1 1. 1e999 1j "x" "" [] {} () ( ) [ ] { } , : = == . -> ; + - * / @ % & | ^ ~ << ...
""".split()
PYTHON = [
    "__import__('os').system('true')",
    "open('/tmp/planted', 'w').write('x')",
    "eval('1')",
    "().__class__.__base__.__subclasses__()",
    "torch.load('x')",
    "torch.hub.load('x', 'y')",
    "ops.aten.add",
    "ops.os.system('true')",
    "__torch__.os.system('true')",
    "torch.__dict__",
    "torch._C",
    "self.__class__.__init__.__globals__",
    "getattr(self, '__class__')",
    "ops.prim.PythonOp('os.system', 'true')",
    "print.__self__",
    "CONSTANTS.__class__",
    "CONSTANTS.c1000000000000",
    "ops.prim.raiseException('x', 'os.system')",
    "f'{().__class__}'",
    "'{0.__class__}'.format(x)",
    "'%1000000000d' % 3",
    "'{:1000000000}'.format(3)",
    "'a' * 4000000000000",
    "[0] * 4000000000000",
    "2 ** 4000000000",
    "1 << 4000000000",
    "range(10 ** 18)",
    "torch.zeros([4000000000000])",
]
_TOKEN = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*|\d+\.?\d*|\"[^\"\n]*\"|\s+|.")


def _number(rng: random.Random) -> str:
    return str(rng.choice(INTEGERS))


def mutate_lines(text: bytes, rng: random.Random) -> bytes:
    """Lines taken out, doubled, exchanged or indented otherwise."""
    lines = text.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        index, kind = rng.randrange(len(lines)), rng.randrange(5)
        to = rng.randrange(len(lines))
        if kind == 0 and len(lines) > 1:
            del lines[index]
        elif kind == 1:
            lines.insert(to, lines[index])
        elif kind == 2:
            lines[index], lines[to] = lines[to], lines[index]
        elif kind == 3:
            lines[index] = b"  " + lines[index] if rng.random() < 0.5 else lines[index][2:]
        else:
            place = re.match(rb"\s*", lines[index])[0]
            lines.insert(index, place + _statement(rng).encode())
    return b"\n".join(lines)


def mutate_tokens(text: bytes, rng: random.Random) -> bytes:
    """Tokens exchanged for each other, for numbers or for words of the list."""
    tokens = _TOKEN.findall(text)
    solid = [i for i, token in enumerate(tokens) if token.strip()]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if not solid:
            break
        index, kind = rng.choice(solid), rng.randrange(7)
        if kind == 0:
            tokens[index] = b""
        elif kind == 1:
            tokens[index] *= 2
        elif kind == 2:
            to = rng.choice(solid)
            tokens[index], tokens[to] = tokens[to], tokens[index]
        elif kind == 3 and tokens[index][:1].isdigit():
            tokens[index] = _number(rng).encode()
        elif kind == 4:
            tokens[index] = b"(" + rng.choice(PYTHON).encode() + b")"
        elif kind == 5:
            tokens[index] = tokens[rng.choice(solid)]
        else:
            tokens[index] = rng.choice(WORDS).encode()
    return b"".join(tokens)


def _nested(rng: random.Random) -> str:
    depth = rng.choice((10, 90, 250, 3000, 100_000))
    start, end = rng.choice((("(", ")"), ("[", "]"), ("-", ""), ("not ", ""), ("f(", ")")))
    return start * depth + "1" + end * depth


def _statement(rng: random.Random) -> str:
    kind = rng.randrange(8)
    if kind == 0:
        return "x = " + rng.choice(PYTHON)
    if kind == 1:
        return "x = " + _nested(rng)
    if kind == 2:
        return "x = " + rng.choice((" + ", " and ", ".", ", ")).join(["1"] * rng.choice((9, 5000)))
    if kind == 3:
        return "import os" if rng.random() < 0.5 else "from os import system"
    if kind == 4:
        return f"x = {_number(rng)} {rng.choice(('+', '**', '//', '<<', '*'))} {_number(rng)}"
    if kind == 5:
        return "while True: pass"
    return " ".join(rng.choice(WORDS) for _ in range(rng.randrange(1, 9)))


def written_code(text: bytes, rng: random.Random) -> bytes:
    """A class of its own for the module, with the attributes of the old one or others."""
    name = re.search(rb"class (\w+)\(", text)
    name = name[1].decode() if name else "M"
    attributes = [line.decode() for line in text.split(b"\n") if re.match(rb"  \w+ : ", line)]
    if rng.random() < 0.3:
        attributes.append(f"  {rng.choice(WORDS)} : {_type(rng, 0)}")
    depth = rng.choice((1, 2, 8, 60, 400)) if rng.random() < 0.3 else 1
    body = []
    for level in range(depth):
        body.append("  " * (level + 2) + (_statement(rng) if level + 1 == depth else "if True:"))
    lines = [
        f"class {name}({rng.choice(('Module', 'Module', 'Enum', 'NamedTuple', 'Interface'))}):",
        "  __parameters__ = []",
        "  __buffers__ = []",
        *attributes,
        f"  def forward(self: __torch__.{name},",
        f"    x: {_type(rng, 0)}) -> {_type(rng, 0)}:",
        *body,
        "    return x",
    ]
    return "\n".join(lines).encode() + b"\n"


def _type(rng: random.Random, depth: int) -> str:
    if depth < 3 and rng.random() < 0.4:
        inner = ", ".join(_type(rng, depth + 1) for _ in range(rng.randrange(1, 4)))
        return f"{rng.choice(('List', 'Dict', 'Optional', 'Tuple', 'Union', 'Future'))}[{inner}]"
    if depth == 0 and rng.random() < 0.02:
        return "List[" * 20_000 + "int" + "]" * 20_000
    return rng.choice(("Tensor", "int", "float", "str", "bool", "NoneType", "number", *WORDS[:20]))


class Sequence:
    """(name of the model, level, bytes) of each number."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.files, self.records = {}, {}
        torch.manual_seed(0)
        for name, (module, _) in models().items():
            buffer = io.BytesIO()
            torch.jit.save(module, buffer)
            self.files[name] = buffer.getvalue()
            self.records[name] = _records(self.files[name])

    def __call__(self, index: int) -> tuple[str, str, bytes]:
        rng = random.Random(self.seed * 1_000_003 + index)
        name, level = rng.choice(list(self.files)), rng.choice(LEVELS)
        if level == "bytes":
            return name, level, mutate_bytes(self.files[name], rng)
        if level == "records":
            return name, level, mutate_archive(self.records[name], rng)
        return name, level, self._changed(name, level, rng)

    def _changed(self, name: str, level: str, rng: random.Random) -> bytes:
        records = [list(record) for record in self.records[name]]
        ending = ".pkl" if level == "pickles" else ".py"
        chosen = [r for r in records if r[0].endswith(ending)]
        if level == "pickles":
            # data.pkl more often: it alone makes objects.
            chosen += [r for r in records if r[0] == "data.pkl"] * 3
        record = rng.choice(chosen)
        if level == "written":
            record[1] = written_code(record[1], rng)
        elif level == "text":
            change = mutate_lines if rng.random() < 0.3 else mutate_tokens
            record[1] = change(record[1], rng)
        elif rng.random() < 0.05:
            record[1] = composed_pickle(rng)
        else:
            record[1] = mutate_opcodes(record[1], rng)
        from checkpoints import Entry, archive

        return archive([Entry(f"x/{short}".encode(), data) for short, data in records])
