"""Random changes to a model between calls of its compiled form. After each change the compiled
model must compute what the plain one does: a guard that was not looked at again shows as a wrong
result. Values are replaced by new ones at once, so that addresses are used again.

    python tools/fuzz/mutations.py --steps 2000 --seed 0
"""

from __future__ import annotations

import argparse
import random
import sys
import types
from collections.abc import Callable

import torch

SCALE = 1.0
TABLE = {"shift": 1.5}


def double(x: torch.Tensor, by: float = 2.5) -> torch.Tensor:
    """A function whose default value and code change."""
    return x * by


def triple(x: torch.Tensor, by: float = 2.5) -> torch.Tensor:
    """What `double` is replaced by."""
    return x * by * 3


CODES = (double.__code__, triple.__code__)


class Settings:
    """A plain object with attributes and a class attribute."""

    gain = 1.25

    def __init__(self) -> None:
        self.offset = 1000.5
        self.names = ["a", "b"]


class Other(Settings):
    """What Settings objects turn into."""

    gain = -3.0


class Block(torch.nn.Module):
    """A layer that looks at everything a layer has."""

    factor = 2.0

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(3, 3)
        self.drop = torch.nn.Dropout(0.0)
        self.register_buffer("mean", torch.ones(3))
        self.power = 2000.25
        self.weights = [1000.5, 2000.5]
        self.by_name = {"one": 1000.25, "two": 2.0}
        self.pair = (3.5, 4.5)
        self.settings = Settings()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """All of the attributes, so that each change changes the result."""
        y = self.drop(self.line(x)) * self.power + self.mean
        for weight in self.weights:
            y = y + weight
        for name, value in self.by_name.items():
            y = y * value if name == "two" else y - value
        y = y * self.pair[0] + self.settings.offset * self.settings.gain * self.factor
        if self.training:
            y = y + 7
        if len(self.settings.names) > 2:
            y = y - 3
        if self.line.weight.requires_grad:
            y = y * 1.5
        if self.mean.dtype == torch.float64:
            y = y + 11
        # Bounded, and sensitive to each of the numbers above.
        return torch.sin((double(y) * SCALE + TABLE["shift"]) * 1e-3).to(torch.float32)


class Net(torch.nn.Module):
    """Some layers."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(count))
        self.tail = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layers in turn."""
        for block in self.blocks:
            x = block(x)
        return self.tail(x)


def number(draw: random.Random) -> float:
    """A new float object with one of a few values."""
    return float(draw.choice(["1000.5", "1000.25", "2000.5", "-3.5", "17.0"]))


def _global(name: str, value: object) -> None:
    globals()[name] = value


def _weight(m: Net, b: Block, d: random.Random) -> None:
    b.line.weight = torch.nn.Parameter(torch.full((3, 3), number(d)))


def _raw_weight(m: Net, b: Block, d: random.Random) -> None:
    b.line._parameters["weight"] = torch.nn.Parameter(torch.full((3, 3), number(d)))


def _bias(m: Net, b: Block, d: random.Random) -> None:
    b.line.bias = None if d.random() < 0.5 else torch.nn.Parameter(torch.ones(3))


def _hook(m: Net, b: Block, d: random.Random) -> None:
    target = d.choice([b, b.line, m.tail])
    hooks = target._forward_hooks
    if hooks:
        hooks.clear()
    elif d.random() < 0.5:
        target.register_forward_hook(lambda mod, args, out: out * 2)
    else:
        hooks[12345] = lambda mod, args, out: out + 1


def _own_forward(m: Net, b: Block, d: random.Random) -> None:
    if "forward" in b.line.__dict__:
        del b.line.forward
    else:
        b.line.forward = lambda x: x * 4


def _layers(m: Net, b: Block, d: random.Random) -> None:
    if len(m.blocks) > 2 and d.random() < 0.5:
        del m.blocks[-1]
    elif len(m.blocks) < 4:
        m.blocks.append(Block().train(b.training))


def _swap_tail(m: Net, b: Block, d: random.Random) -> None:
    m.tail[1] = d.choice([torch.nn.ReLU, torch.nn.Tanh, torch.nn.Identity])()


def _kind(m: Net, b: Block, d: random.Random) -> None:
    b.settings.__class__ = d.choice([Settings, Other])


def _new_dict(m: Net, b: Block, d: random.Random) -> None:
    b.settings.__dict__ = {"offset": number(d), "names": ["a"] * d.randint(1, 3)}


def _frozen(m: Net, b: Block, d: random.Random) -> None:
    b.line.weight.requires_grad_(not b.line.weight.requires_grad)


def _data(m: Net, b: Block, d: random.Random) -> None:
    b.line.weight.data = torch.full((3, 3), number(d)).t()


def _dtype(m: Net, b: Block, d: random.Random) -> None:
    b.mean.data = b.mean.data.to(d.choice([torch.float32, torch.float64]))


def _names(m: Net, b: Block, d: random.Random) -> None:
    b.settings.names[:] = ["n"] * d.randint(0, 4)


def _by_name(m: Net, b: Block, d: random.Random) -> None:
    table = b.by_name
    choice = d.randrange(3)
    if choice == 0:
        table["two"] = number(d)
    elif choice == 1:
        table.pop("one", None)
    else:
        items = [*table.items(), ("one", number(d))]
        d.shuffle(items)
        table.clear()
        table.update(items)


CHANGES: dict[str, Callable[[Net, Block, random.Random], None]] = {
    "parameter": _weight,
    "parameter in its table": _raw_weight,
    "bias": _bias,
    "hook": _hook,
    "forward of an instance": _own_forward,
    "layers": _layers,
    "layer of a Sequential": _swap_tail,
    "class of an object": _kind,
    "__dict__ of an object": _new_dict,
    "requires_grad": _frozen,
    "data": _data,
    "dtype by data": _dtype,
    "length of a list": _names,
    "dictionary": _by_name,
    "train": lambda m, b, d: b.train(not b.training),
    "train of all": lambda m, b, d: m.train(d.random() < 0.5),
    "attribute": lambda m, b, d: setattr(b, "power", number(d)),
    "attribute by __dict__": lambda m, b, d: b.__dict__.update(power=number(d)),
    "attribute over a class's": lambda m, b, d: setattr(b, "factor", number(d)),
    "attribute taken away": lambda m, b, d: b.__dict__.pop("factor", None),
    "class attribute": lambda m, b, d: setattr(Block, "factor", number(d)),
    "class attribute of settings": lambda m, b, d: setattr(Settings, "gain", number(d)),
    "item of a list": lambda m, b, d: b.weights.__setitem__(d.randrange(2), number(d)),
    "whole list": lambda m, b, d: setattr(b, "weights", [number(d), number(d)]),
    "tuple": lambda m, b, d: setattr(b, "pair", (number(d), 4.5)),
    "attribute of an object": lambda m, b, d: setattr(b.settings, "offset", number(d)),
    "object": lambda m, b, d: setattr(b, "settings", Settings()),
    "buffer": lambda m, b, d: setattr(b, "mean", torch.full((3,), number(d))),
    "global": lambda m, b, d: _global("SCALE", number(d)),
    "global dictionary": lambda m, b, d: TABLE.update(shift=number(d)),
    "default value": lambda m, b, d: setattr(double, "__defaults__", (number(d),)),
    "code of a function": lambda m, b, d: setattr(double, "__code__", d.choice(CODES)),
    "nothing": lambda m, b, d: None,
}  # fmt: skip


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two results are equal, unequal numbers (NaN) included."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b) | bool(
        ((a == b) | ((a != a) & (b != b))).all()
    )  # fmt: skip


def attempt(fn: Callable, x: torch.Tensor) -> torch.Tensor | str:
    """The result, or the class of what was raised."""
    try:
        return fn(x)
    except (RuntimeError, TypeError, KeyError) as error:
        return "RuntimeError" if isinstance(error, RuntimeError) else type(error).__name__


def run(steps: int, seed: int) -> list[str]:
    """Descriptions of the steps after which results differed."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    torch._dynamo.reset()
    wrong = []
    state = (SCALE, dict(TABLE), double.__defaults__, double.__code__, Block.factor, Settings.gain)
    with torch._dynamo.config.patch(recompile_limit=10**6, accumulated_recompile_limit=10**6):
        model = Net(3)
        compiled = torch.compile(types.MethodType(Net.forward, model), backend="eager")
        x = torch.randn(2, 3)
        for step in range(steps):
            name = draw.choice(list(CHANGES))
            CHANGES[name](model, draw.choice(list(model.blocks)), draw)
            # More calls than one: records are taken at the second.
            for _ in range(draw.randint(1, 4)):
                wanted, got = attempt(model, x), attempt(compiled, x)
                ok = wanted == got if isinstance(wanted, str) else isinstance(
                    got, torch.Tensor) and same(wanted, got)  # fmt: skip
                if not ok:
                    wrong.append(f"step {step}: {name}: wanted {wanted}, got {got}")
            if step % 200 == 199:
                torch._dynamo.reset()
    _global("SCALE", state[0])
    TABLE.update(state[1])
    double.__defaults__, double.__code__ = state[2:4]
    Block.factor, Settings.gain = state[4:]
    return wrong


def main() -> int:
    """Prints what went wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = run(options.steps, options.seed)
    print("\n".join(wrong[:20]))
    print(f"{options.steps} changes, {len(wrong)} wrong results")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
