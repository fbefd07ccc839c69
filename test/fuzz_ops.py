"""Calls operators with random arguments until something other than an exception happens.

    python fuzz_ops.py {schema|junk} SEED CALLS [LOG]

`schema` draws arguments of the types each operator's schema asks for (shapes, strides, dtypes, extreme numbers);
`junk` gives every public binding arguments of any type. A crash leaves the call that caused it in LOG. An internal
error counts as a failure; any other exception is a correct answer.
"""

import random
import sys
import warnings

import torch

DTYPES = [
    torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.int8, torch.bool, torch.complex64,
    torch.float16, torch.bfloat16, torch.int16, torch.uint16,
]  # fmt: skip
SHAPES = [
    (), (0,), (1,), (3,), (5,), (2, 3), (3, 2), (1, 3), (2, 1), (4, 4), (0, 3), (2, 3, 4), (2, 0, 3), (2, 2, 3, 3),
    (1, 2, 4, 4), (1, 1, 1, 1, 1),
]  # fmt: skip
INTEGERS = [0, 0, 1, 1, 2, -1, -1, -2, 3, 5, -3, 7, 100, -100, 2**31, -(2**63), 2**62]
FLOATS = [0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), 1e30]
WORDS = ["", "a", "floor", "trunc", "mean", "sum", "none", "reflect", "constant", "tanh", "ij", "amax", "prod"]
# Asking these for a huge result is legal, and slow.
ALLOCATING = (
    "empty zeros ones full rand arange linspace logspace eye tri window resize repeat pad range one_hot new_ bincount "
    "expand tile hist cartesian combin embedding upsample interpolate"
).split()


class Arguments:
    """Random values for the types of a schema; tensors of one call tend to fit each other."""

    def __init__(self, rng):
        self.rng = rng
        self.shape = rng.choice(SHAPES)
        self.device = rng.choice(["cpu"] * 9 + ["meta"])

    def tensor(self):
        rng = self.rng
        shape = self.shape if rng.random() < 0.7 else rng.choice(SHAPES)
        dtype = rng.choice(DTYPES) if rng.random() < 0.5 else rng.choice([torch.float32, torch.int64])
        value = rng.choice([0, 1, -2, 100, float("nan")] if dtype.is_floating_point else [0, 1, 2, 100])
        t = torch.full(shape, bool(value) if dtype is torch.bool else value, dtype=dtype)
        kind = rng.random()
        if kind < 0.15 and t.dim() >= 2:
            t = t.transpose(0, 1)
        elif kind < 0.25 and t.dim():
            t = t[::2]
        elif kind < 0.3:
            t = t.expand(2, *t.shape)
        elif kind < 0.36 and dtype.is_floating_point:
            t = t.requires_grad_()
        return t.to(self.device)

    def scalar(self, kind):
        rng = self.rng
        makers = {
            "int": lambda: rng.choice(INTEGERS),
            "SymInt": lambda: rng.choice(INTEGERS),
            "float": lambda: rng.choice(FLOATS),
            "bool": lambda: rng.random() < 0.5,
            "Scalar": lambda: rng.choice([0, 1, 2, -1, 0.5, float("nan"), True, 1j, 2**40]),
            "str": lambda: rng.choice(WORDS),
            "ScalarType": lambda: rng.choice(DTYPES),
            "Layout": lambda: torch.strided,
            "Device": lambda: torch.device(self.device),
            "MemoryFormat": lambda: rng.choice([torch.contiguous_format, torch.preserve_format, torch.channels_last]),
            "Generator": torch.Generator,
        }
        return makers.get(kind, lambda: None)()

    def of_type(self, text):
        rng = self.rng
        if text.endswith("?"):
            if rng.random() < 0.4:
                return None
            text = text[:-1]
        if text == "Tensor":
            return self.tensor()
        if text.startswith("Tensor?["):
            return [rng.choice([None, self.tensor()]) for _ in range(rng.randrange(4))]
        if text.startswith("Tensor["):
            return [self.tensor() for _ in range(rng.randrange(4))]
        kind, _, is_list = text.partition("[")
        return [self.scalar(kind) for _ in range(rng.randrange(5))] if is_list else self.scalar(kind)


def is_huge(value):
    if isinstance(value, list):
        return any(map(is_huge, value))
    return isinstance(value, int) and abs(value) > 10**6


def schema_calls(rng):
    """(description, function) pairs without end."""
    operators = []
    for full in torch._C._dispatch_get_all_op_names():
        name, _, overload = full.partition(".")
        if name.startswith("aten::"):
            operator = torch._C._get_operation(name, overload)
            operators.append((full, operator, operator.schema.arguments))
    while True:
        full, operator, arguments = rng.choice(operators)
        draw = Arguments(rng)
        kwargs = {
            a.name: draw.of_type(str(a.type)) for a in arguments if not (a.has_default_value() and rng.random() < 0.4)
        }
        if any(map(is_huge, kwargs.values())) and any(word in full for word in ALLOCATING):
            continue
        yield f"{full} {describe(kwargs)}", lambda op=operator, kw=kwargs: op(**kw)


class Like:
    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        return 3


class Wrapper(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return torch.zeros(2)


JUNK = [
    lambda: None, lambda: 0, lambda: -1, lambda: 2**62, lambda: 2**70, lambda: 1.5, lambda: float("nan"), lambda: 1j,
    lambda: "", lambda: "cpu", lambda: True, tuple, list, lambda: [2, 3], lambda: (1, "a"), lambda: [None], object, Like,
    lambda: torch.ones(2, 3), lambda: torch.ones(0), lambda: torch.tensor(1), lambda: [torch.ones(2), None],
    lambda: torch.empty(2, device="meta"), lambda: torch.Tensor._make_wrapper_subclass(Wrapper, (2,)), lambda: int,
    lambda: torch.float32, lambda: torch.uint3, lambda: torch.sparse_coo, lambda: torch.channels_last, torch.Generator,
    lambda: torch.device("cuda"), lambda: torch.Size([2]), lambda: b"ab", dict, lambda: slice(1, 2), lambda: ...,
]  # fmt: skip
KEYWORDS = ["dim", "dtype", "out", "alpha", "device", "keepdim", "layout", "generator", "size", "input", "foo"]
# These change the state that the other calls need.
LEFT_OUT = {"set_num_threads", "set_num_interop_threads", "_InferenceMode"}


def junk_calls(rng):
    callables = []
    for owner in (torch._C._VariableFunctions, torch._C._nn, torch._C._linalg, torch._C._special, torch._C._fft):
        callables += [(name, getattr(owner, name), False) for name in dir(owner) if name[:2] != "__"]
    for name in dir(torch.Tensor):
        if callable(getattr(torch.Tensor, name)) and name not in ("__class__", "__init_subclass__", "__subclasshook__"):
            callables.append((name, getattr(torch.Tensor, name), True))
    callables = [entry for entry in callables if entry[0] not in LEFT_OUT]
    while True:
        name, function, method = rng.choice(callables)
        args = [rng.choice(JUNK)() for _ in range(rng.randrange(5))]
        if method:
            args.insert(0, rng.choice(JUNK[18:24])())
        kwargs = {rng.choice(KEYWORDS): rng.choice(JUNK)() for _ in range(rng.choice([0, 0, 0, 1, 2]))}
        yield f"{name} {len(args)} {list(kwargs)}", lambda f=function, a=args, k=kwargs: f(*a, **k)


def describe(kwargs):
    def one(value):
        if isinstance(value, torch.Tensor):
            return f"{value.dtype}{list(value.shape)}{value.stride()}{value.device.type}"
        return f"[{', '.join(map(one, value))}]" if isinstance(value, list) else repr(value)

    return " ".join(f"{name}={one(value)}" for name, value in kwargs.items())


def main(kind, seed, count, log_path=None):
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    calls = (schema_calls if kind == "schema" else junk_calls)(random.Random(int(seed)))
    log = open(log_path, "w") if log_path else None
    failures = []
    for _ in range(int(count)):
        text, call = next(calls)
        if log:
            log.seek(0)
            log.truncate()
            log.write(text)
            log.flush()
        try:
            call()
        except SystemError as error:
            failures.append(f"{text}: {error}")
        except Exception as error:
            if "internal error" in str(error):
                failures.append(f"{text}: {error}")
    print("\n".join(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
