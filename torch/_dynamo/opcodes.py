"""The instruction set that the symbolic interpreter runs: bytecode of every supported Python,
decoded into one normal form (docs/dynamo.md lists it) and encoded again. The work is done in C++
(torch/csrc/dynamo); this is the face that Python code imports."""

from torch._C._dynamo.codec import Instruction, decode, encode, opnames

__all__ = ["JUMPS", "NORMAL_OPCODES", "TERMINATORS", "Instruction", "decode", "encode"]

# Name of each instruction by its number.
NORMAL_OPCODES: tuple[str, ...] = opnames()

# Instructions with a target.
JUMPS = frozenset(
    {
        "FOR_ITER",
        "JUMP",
        "JUMP_NO_INTERRUPT",
        "POP_JUMP_IF_FALSE",
        "POP_JUMP_IF_NONE",
        "POP_JUMP_IF_NOT_NONE",
        "POP_JUMP_IF_TRUE",
        "SEND",
    }
)

# Instructions after which the next one is not run.
TERMINATORS = frozenset({"JUMP", "JUMP_NO_INTERRUPT", "RAISE_VARARGS", "RERAISE", "RETURN_VALUE"})
