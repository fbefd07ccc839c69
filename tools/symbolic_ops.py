"""Counts the operators whose shape functions fix symbolic sizes. Every functional operator of one
or two tensors runs on meta tensors with symbols; it keeps them if no guard makes a size a number.

    python tools/symbolic_ops.py [--names]"""

import argparse
import sys
from collections.abc import Iterator

import torch
import torch._composed_ops  # operators that are defined when asked for
from torch._dynamo.source import LocalSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext


def held(env: ShapeEnv, name: str, shape: tuple, dtype: torch.dtype) -> torch.Tensor:
    """A meta tensor with a symbol of its own for every size."""
    geometry = env.create_symbolic_sizes_strides_storage_offset(
        torch.empty(shape, dtype=dtype),
        LocalSource(name),
        symbolic_context=StatelessSymbolicContext([DimDynamic.DYNAMIC] * len(shape)),
    )
    return torch._C._make_symbolic_meta(*geometry, dtype)


def overloads() -> Iterator[torch._ops.OpOverload]:
    """Functional operators of ATen whose only required arguments are one or two tensors."""
    for full_name in sorted(torch._C._dispatch_get_all_op_names()):
        space, _, rest = full_name.partition("::")
        name, _, overload = rest.partition(".")
        if space == "aten":
            op = getattr(getattr(torch.ops.aten, name), overload or "default")
            needed = [a for a in op._schema.arguments if not a.has_default_value()]
            tensors = all(str(a.type) == "Tensor" for a in needed)
            aliases = [a.alias_info for a in op._schema.arguments if a.alias_info is not None]
            writes = any(alias.is_write for alias in aliases)
            if tensors and not writes and 1 <= len(needed) <= 2:
                yield op


def classify(op: torch._ops.OpOverload) -> str:
    """'keeps', 'fixes', or 'raises' where the operator takes no such arguments."""
    for shape in ((5, 7), (5,), (5, 7, 9), (5, 7, 9, 11)):
        env = ShapeEnv()
        count = len([a for a in op._schema.arguments if not a.has_default_value()])
        args = [held(env, "x", shape, torch.float32) for _ in range(count)]
        try:
            op(*args)
        except Exception:
            continue
        sizes = [size for arg in args for size in arg.shape]
        fixed = any(size.node.maybe_as_int() is not None for size in sizes)
        return "fixes" if fixed else "keeps"
    return "raises"


def main() -> int:
    """Prints the count, and the names of those that fix sizes where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", action="store_true", help="list the operators that fix sizes")
    options = parser.parse_args()
    found: dict[str, list[str]] = {"keeps": [], "fixes": [], "raises": []}
    for op in overloads():
        found[classify(op)].append(str(op))
    tried = len(found["keeps"]) + len(found["fixes"])
    print(f"{tried} operators ran on symbolic sizes, {len(found['fixes'])} fixed them")
    if options.names:
        print("\n".join(sorted(found["fixes"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
