"""CPython's instructions taken apart and put together, for programs that edit bytecode."""

from __future__ import annotations

import dis
import glob
import os
import sys
import types
from collections.abc import Iterator

import pytest

import torch
from torch._dynamo import bytecode_analysis as analysis
from torch._dynamo import bytecode_transformation as bt

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="line tables of 3.11 and later")


def code_objects(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from code_objects(const)


def test_code_taken_apart_and_put_together_is_the_same() -> None:
    count = 0
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.__file__), "*.py")))[20:26]:
        with open(path, encoding="utf8") as file:
            module = compile(file.read(), path, "exec")
        for code in code_objects(module):
            made = bt.transform_code_object(code, lambda instructions, parts: None, safe=True)
            assert made.co_code == code.co_code
            assert made.co_exceptiontable == code.co_exceptiontable
            assert list(made.co_positions()) == list(code.co_positions())
            assert made.co_stacksize <= code.co_stacksize + 2
            count += 1
    assert count > 50


def test_edited_code_runs_as_edited() -> None:
    def function(x: int) -> int:
        total = 0
        for i in range(x):
            if i is not None:
                total += 3
        return total

    def threes_to_fives(instructions: list[bt.Instruction], parts: dict[str, object]) -> None:
        for ins in instructions:
            if ins.opname == "LOAD_CONST" and ins.argval == 3:
                ins.argval = 5

    made = bt.transform_code_object(function.__code__, threes_to_fives)
    assert types.FunctionType(made, globals())(4) == 20
    assert not any("NONE" in ins.opname for ins in dis.get_instructions(made))


def test_jump_over_a_long_way_gets_a_longer_argument() -> None:
    end = bt.create_load_const("end")
    body = [bt.create_instruction("RESUME", arg=0), bt.create_jump_absolute(end)]
    body += [bt.create_instruction("NOP") for _ in range(400)]
    body += [end, bt.create_instruction("RETURN_VALUE")]
    keys = bt.get_code_keys()
    parts = {key: getattr((lambda: None).__code__, key) for key in keys}
    instructions, code = bt.clean_and_assemble_instructions(body, keys, parts)
    assert any(ins.opname == "EXTENDED_ARG" for ins in instructions)
    assert types.FunctionType(code, {})() == "end"


def test_jump_backward_named_forward_is_turned_round() -> None:
    first, back = bt.create_load_const(1), bt.create_instruction("NOP")
    body = [bt.create_instruction("RESUME", arg=0), bt.create_jump_absolute(back), first]
    body += [bt.create_instruction("RETURN_VALUE"), back, bt.create_jump_absolute(first)]
    keys = bt.get_code_keys()
    parts = {key: getattr((lambda: None).__code__, key) for key in keys}
    instructions, code = bt.clean_and_assemble_instructions(body, keys, parts)
    assert instructions[-1].opname == "JUMP_BACKWARD"
    assert types.FunctionType(code, {})() == 1


@pytest.mark.parametrize("number", [0, 5, 63, 64, 4095, 4096, 123456])
def test_number_of_an_exception_table_is_read_as_written(number: int) -> None:
    data = iter(bt.encode_exception_table_varint(number))
    assert bt.decode_exception_table_varint(data) == number
    assert next(data, None) is None


def test_code_that_is_never_reached_is_removed_with_its_handlers() -> None:
    target, handler, dead = (bt.create_instruction("NOP") for _ in range(3))
    body = [bt.create_jump_absolute(target), dead, target,
            bt.create_instruction("RETURN_VALUE"), handler]  # fmt: skip
    for ins in (dead, target):
        ins.exn_tab_entry = bt.InstructionExnTabEntry(dead, target, handler, 0, True)
    kept = analysis.remove_dead_code(body)
    assert dead not in kept
    assert handler in kept
    bt.update_offsets(kept)
    (row,) = bt.compute_exception_table(kept)
    assert (row.start, row.end, row.target) == (2, 2, 6)


def test_locals_that_are_still_read_are_live() -> None:
    def function(a: int, b: int) -> int:
        c = a + 1
        del b
        return c

    instructions = bt.cleaned_instructions(function.__code__)
    last = instructions[-1]
    assert analysis.livevars_analysis(instructions, last) == set()
    store = next(i for i in instructions if i.opname == "STORE_FAST")
    assert analysis.livevars_analysis(instructions, store) == {"b"}


def test_template_has_names_replaced_and_no_returns() -> None:
    def template(d: dict) -> dict:
        if d:
            return d
        return other  # noqa: F821

    found = bt.bytecode_from_template(template, {"d": "mine", "other": "theirs"})
    assert found[-1].opname == "NOP"
    assert not any(ins.opname.startswith(("RETURN", "RESUME")) for ins in found)
    assert {ins.argval for ins in found if ins.opname.startswith("LOAD")} == {"mine", "theirs"}


def test_hook_sees_and_replaces_the_code_of_a_compiled_function() -> None:
    from torch._dynamo.convert_frame import register_bytecode_hook

    def other(old: types.CodeType, new: types.CodeType) -> types.CodeType:
        assert old is function.__code__
        assert bt.cleaned_instructions(new)
        return (lambda x: "replaced").__code__

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    torch._dynamo.reset()
    handle = register_bytecode_hook(other)
    try:
        assert torch.compile(function, backend="eager")(torch.ones(1)) == "replaced"
    finally:
        handle.remove()
        torch._dynamo.reset()
