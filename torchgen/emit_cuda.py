"""Pointwise operators on CUDA: the descriptor of every functor's program, which the CUDA driver of
the iterator reads (ATen/cuda/PointwiseProgram.h), and the device sources that the build compiles
where it has nvcc.

Every loop table of native_functions.yaml gets one, so that a new pointwise operator runs on CUDA
without another file. Tables that hand-written code uses are listed in pointwise_tables.yaml.
Conversions between element types are programs too, one per source type, and so are reductions.
"""

from __future__ import annotations

import yaml

from .emit_ops import BANNER
from .emit_pointwise import OUT_KINDS, tables
from .errors import GenError
from .model import POINTWISE_TYPES, Model, Pointwise, shards_by_header

_TABLES_PER_PROGRAM = 6

_INTEGERS = ["u8", "i8", "i16", "i32", "i64", "u16", "u32", "u64"]
_FLOATS = ["f16", "bf16", "f32", "f64"]
_INEXACT = [*_FLOATS, "c32", "c64", "c128"]
# The lists of iter/Loops.h, with the types' names in device code.
TYPE_LISTS = {
    "all": [*_INTEGERS, "bool", *_FLOATS, "c32", "c64", "c128"],
    "all_nobool": [*_INTEGERS, *_FLOATS, "c32", "c64", "c128"],
    "real": [*_INTEGERS, "bool", *_FLOATS],
    "real_nobool": [*_INTEGERS, *_FLOATS],
    "integral": _INTEGERS,
    "integral_bool": [*_INTEGERS, "bool"],
    "floating": _FLOATS,
    "floating_complex": [*_FLOATS, "c64", "c128"],
    "pow": [*_INTEGERS, *_FLOATS, "c64", "c128"],
    "complex": ["c64", "c128"],
    "complex_half": ["c32", "c64", "c128"],
}
# ScalarType numbers.
_NUMBERS = {
    "u8": 0, "i8": 1, "i16": 2, "i32": 3, "i64": 4, "f16": 5, "f32": 6, "f64": 7, "c32": 8,
    "c64": 9, "c128": 10, "bool": 11, "bf16": 15, "u16": 27, "u32": 28, "u64": 29,
}  # fmt: skip
_CAST_TYPES = [*TYPE_LISTS["all"], "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz"]

# Reductions by the names of ReduceOp, with the types the CPU's tables have.
_REDUCTIONS = {
    **dict.fromkeys(["Sum", "Prod", "All", "Any", "CountNonzero"], TYPE_LISTS["all"]),
    **dict.fromkeys(["Max", "Min", "MinMax", "ArgMax", "ArgMin"], TYPE_LISTS["real"]),
    **dict.fromkeys(["NanSum", "LogSumExp"], _FLOATS),
    "XorSum": ["u8", "i8", "i16", "i32", "i64", "bool", *_FLOATS],
    **dict.fromkeys(["AbsSum", "SquareSum", "AbsPowSum", "AbsMax", "AbsMin", "Var"], _INEXACT),
}

# Running reductions, as native/reduce/Scan.cpp has them.
_SCANS = {
    **dict.fromkeys(["Sum", "Prod"], TYPE_LISTS["pow"]),
    "LogSumExp": TYPE_LISTS["floating_complex"],
    **dict.fromkeys(["Max", "Min"], TYPE_LISTS["real"]),
}


def load_tables(path: str) -> dict[str, Pointwise]:
    """The tables of hand-written code: a list of {functor, header, inputs, params, types, output}
    with headers named from ATen/native/."""
    with open(path, encoding="utf-8") as stream:
        entries = yaml.safe_load(stream)
    found: dict[str, Pointwise] = {}
    for entry in entries:
        try:
            pw = Pointwise(
                functor=entry["functor"],
                header=entry["header"],
                params=("",) * int(entry.get("params", 0)),
                operands=("",) * int(entry["inputs"]),
                types=entry["types"],
                promote="default",
                output=entry.get("output", "same"),
            )
        except KeyError as missing:
            raise GenError(f"an entry lacks the key {missing}: {entry}", path, 0) from None
        if pw.types not in POINTWISE_TYPES or pw.output not in OUT_KINDS:
            raise GenError(f"unknown types or output: {entry}", path, 0)
        found[pw.table] = pw
    return found


def _bits(pw: Pointwise) -> int:
    return sum(1 << _NUMBERS[name] for name in TYPE_LISTS[pw.types])


def _descriptor(name: str, pw: Pointwise, header: str, image: str) -> str:
    return (
        f"extern const PointwiseProgram {name};\n"
        f'const PointwiseProgram {name}{{"{name}", "{pw.functor}", "{header}", "{image}",\n'
        f"    {len(pw.operands)}, {len(pw.params)}, at::native::OutKind::{OUT_KINDS[pw.output]}, "
        f"{_bits(pw):#x}ull}};\n"
    )


def _program(mine: dict[str, tuple[Pointwise, str]]) -> str:
    parts = [BANNER, "#include <ATen/cuda/device/Pointwise.cuh>\n"]
    parts += [f"#include <{h}>\n" for h in sorted({header for _, header in mine.values()})]
    for name, (pw, _) in mine.items():
        arity = f"{len(pw.operands)}, {len(pw.params)}, {OUT_KINDS[pw.output]}"
        for type_name in TYPE_LISTS[pw.types]:
            parts.append(f"CRESSET_POINTWISE({name}, {pw.functor}, {arity}, {type_name})\n")
    return "".join(parts)


def _cast_program(source: str) -> str:
    parts = [BANNER, "#include <ATen/cuda/device/Pointwise.cuh>\n"]
    parts += [f"CRESSET_CAST({source}, {target})\n" for target in _CAST_TYPES]
    return "".join(parts)


def _family_program(header: str, macro: str, op: str, types: list[str]) -> str:
    parts = [BANNER, f"#include <ATen/cuda/device/{header}>\n"]
    parts += [f"{macro}({op}, {type_name})\n" for type_name in types]
    return "".join(parts)


def emit(model: Model, hand_written: dict[str, Pointwise]) -> dict[str, str]:
    every: dict[str, tuple[Pointwise, str]] = {
        name: (pw, f"ATen/native/pointwise/{pw.header}") for name, pw in tables(model).items()
    }
    for name, pw in hand_written.items():
        every.setdefault(name, (pw, f"ATen/native/{pw.header}"))
    every = dict(sorted(every.items()))
    files: dict[str, str] = {}
    definitions = []
    headers = {name: header for name, (_, header) in every.items()}
    for group, names in shards_by_header(headers, _TABLES_PER_PROGRAM).items():
        mine = {name: every[name] for name in names}
        image = f"pointwise_{group}"
        files[f"ATen/cuda/programs/{image}.cu"] = _program(mine)
        definitions += [_descriptor(n, pw, header, image) for n, (pw, header) in mine.items()]
    for source in _CAST_TYPES:
        files[f"ATen/cuda/programs/cast_{source}.cu"] = _cast_program(source)
    for op, types in _REDUCTIONS.items():
        program = _family_program("Reduce.cuh", "CRESSET_REDUCE", op, types)
        files[f"ATen/cuda/programs/reduce_{op}.cu"] = program
    for op, types in _SCANS.items():
        program = _family_program("Scan.cuh", "CRESSET_SCAN", op, types)
        files[f"ATen/cuda/programs/scan_{op}.cu"] = program
    include = "#include <ATen/cuda/PointwiseProgram.h>\n\nnamespace at::cuda {\n"
    close = "}  // namespace at::cuda\n"
    files["ATen/cuda/PointwisePrograms.cpp"] = "".join([BANNER, include, *definitions, close])
    extern = [f"extern const PointwiseProgram {name};\n" for name in sorted(hand_written)]
    files["ATen/cuda/PointwisePrograms.h"] = "".join(
        [BANNER, "#pragma once\n", include, *extern, close]
    )
    return files
