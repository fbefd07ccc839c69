"""Compiled frames that are kept between processes: what fits is taken without interpreting
bytecode, and nothing is taken that was compiled for another program."""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
import sys
import textwrap
import types

import pytest

import torch
from torch import nn
from torch._dynamo import config, regions
from torch._dynamo.utils import counters
from torch._inductor.cache_store import store


@pytest.fixture(autouse=True)
def empty_store(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    new_process()
    yield
    new_process()


def new_process() -> None:
    """Forgets what a new process would not know."""
    torch._dynamo.reset()
    regions._written.clear()
    counters.clear()


def taken() -> int:
    return counters["region"]["hit"]


def program(text: str, **names: object) -> dict:
    """The names that a module with this text defines. Its lines have one place whatever they say,
    as in a file that was edited."""
    module = types.ModuleType("a_program")
    module.__dict__.update(torch=torch, nn=nn, **names)
    exec(compile(textwrap.dedent(text), "/nowhere/a_program.py", "exec"), module.__dict__)
    return module.__dict__


def twice(text: str, *args: object, then: str | None = None) -> tuple[object, object]:
    """What `fn` of a program gives, and what that of an edited one gives in the next process."""
    first = torch.compile(program(text)["fn"])(*args)
    new_process()
    edited = program(then or text)
    return first, (torch.compile(edited["fn"])(*args), edited["fn"](*args))


def test_function_is_taken_by_the_next_process():
    x = torch.randn(8)
    text = "def fn(x):\n    return (x.sin() + 1) * 2\n"
    first, (again, wanted) = twice(text, x)
    assert taken() == 1
    assert torch.equal(first, wanted) and torch.equal(again, wanted)
    assert counters["stats"]["unique_graphs"] == 1


def test_frame_that_this_process_compiled_is_traced_again_after_a_reset():
    fn = program("def fn(x):\n    return x + 1\n")["fn"]
    torch.compile(fn)(torch.ones(2))
    torch._dynamo.reset()
    torch.compile(fn)(torch.ones(2))
    assert taken() == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return x * 2", "return x * 3"),
        ("return helper(x)", "return helper(x) + 1"),
        ("return x * scale", "return x - scale"),
    ],
)
def test_edited_function_is_compiled_anew(before, after):
    text = "scale = 4\ndef helper(x):\n    return x.cos()\ndef fn(x):\n    {}\n"
    x = torch.randn(4)
    _, (again, wanted) = twice(text.format(before), x, then=text.format(after))
    assert taken() == 0
    assert torch.equal(again, wanted)


@pytest.mark.parametrize(
    "changes",
    [
        ("return x.cos()", "return x.sin()"),
        ("scale = 4", "scale = 5"),
        ("y=3", "y=7"),
        ("class Part(nn.Module)", "class Part(Loud)"),
        ("weight = 2.0", "weight = 8.0"),
        ("def unused", "def forward"),
    ],
    ids=["callee", "global", "default", "base", "class attribute", "override"],
)
def test_edit_of_something_that_the_function_uses_is_noticed(changes):
    text = """
        scale = 4
        def helper(x, y=3):
            return x.cos()
        class Loud(nn.Module):
            def __call__(self, x):
                return super().__call__(x) + 100
        class Base(nn.Module):
            def forward(self, x):
                return x * self.weight + scale
        class Part(nn.Module):
            weight = 2.0
            def forward(self, x):
                return x * self.weight + scale
        class Child(Base):
            weight = 1.0
            def unused(self, x):
                return x - 50
        part, child = Part(), Child()
        def fn(x):
            def three(y):
                return y * helper.__defaults__[0]
            return helper(x) + part(x) + three(x) + child(x)
    """
    x = torch.randn(4)
    _, (again, wanted) = twice(text, x, then=text.replace(*changes))
    assert taken() == 0
    assert torch.allclose(again, wanted)


def test_program_with_modules_that_did_not_change_is_taken():
    text = """
        class Part(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(4, 4)
                self.count = 3
            def forward(self, x):
                return self.linear(x).relu() * self.count
        torch.manual_seed(0)
        part = Part()
        def fn(x):
            return part(x)
    """
    x = torch.randn(2, 4)
    first, (again, wanted) = twice(text, x)
    assert taken() == 1
    assert torch.equal(first, wanted) and torch.equal(again, wanted)
    again.sum().backward()


def test_gradients_of_a_taken_model_are_those_of_eager():
    text = """
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        def fn(x):
            return model(x).square().mean()
    """
    x = torch.randn(16, 4)
    for with_backward in (False, True):
        fn = program(text)["fn"]
        loss = torch.compile(fn)(x)
        if with_backward:
            loss.backward()
        new_process()
        names = program(text)
        torch.compile(names["fn"])(x).backward()
        got = [p.grad.clone() for p in names["model"].parameters()]
        names["model"].zero_grad()
        names["fn"](x).backward()
        for a, p in zip(got, names["model"].parameters(), strict=True):
            assert torch.allclose(a, p.grad, atol=1e-6)
        assert taken() == 1
        new_process()


def test_other_inputs_than_those_kept_are_compiled_anew():
    text = "def fn(x, n):\n    return x * n\n"
    fn = program(text)["fn"]
    torch.compile(fn)(torch.ones(4), 2)
    for x, n in [
        (torch.ones(4, dtype=torch.float64), 2),
        (torch.ones(4, requires_grad=True), 2),
        (torch.ones(2, 4).t(), 2),
        (torch.ones(4), 3),
        (torch.ones(4), 2.0),
    ]:
        new_process()
        fn = program(text)["fn"]
        found = torch.compile(fn)(x, n)
        assert taken() == 0
        assert torch.equal(found, x * n) and found.dtype == (x * n).dtype


def test_inputs_that_share_memory_are_not_taken_for_ones_that_do_not():
    text = "def fn(x, y):\n    x.add_(1)\n    return x + y\n"
    torch.compile(program(text)["fn"])(torch.zeros(4), torch.zeros(4))
    new_process()
    both = torch.zeros(4)
    found = torch.compile(program(text)["fn"])(both[:], both[:])
    assert torch.equal(found, torch.full((4,), 2.0))


def test_one_form_for_all_lengths_is_taken_after_one_length_varied():
    text = "def fn(x):\n    return x.relu().sum(0) * x.shape[0]\n"
    fn = torch.compile(program(text)["fn"])
    for n in (3, 4):
        fn(torch.randn(n, 2))
    new_process()
    names = program(text)
    fn = torch.compile(names["fn"])
    for n in (7, 9, 30, 3):
        x = torch.randn(n, 2)
        assert torch.allclose(fn(x), names["fn"](x))
    assert (taken(), counters["stats"]["unique_graphs"]) == (1, 1)


def test_length_that_varies_after_a_static_form_was_taken_becomes_a_symbol():
    text = "def fn(x):\n    return x.relu().sum(0)\n"
    torch.compile(program(text)["fn"])(torch.randn(3, 2))
    new_process()
    fn = torch.compile(program(text)["fn"])
    for n in (3, 5, 6, 7):
        x = torch.randn(n, 2)
        assert torch.allclose(fn(x), x.relu().sum(0))
    assert (taken(), counters["stats"]["unique_graphs"]) == (1, 2)


def test_frames_after_a_graph_break_are_taken_too():
    text = """
        seen = []
        def fn(x):
            y = x.sin()
            seen.append(float(y.sum()))
            return y + 1
    """
    x = torch.randn(4)
    first, (again, wanted) = twice(text, x)
    assert taken() == 2
    assert sum(counters["graph_break"].values()) == 1
    assert torch.equal(first, wanted) and torch.equal(again, wanted)


def test_other_settings_have_forms_of_their_own():
    text = "def fn(x):\n    return x.exp()\n"
    x = torch.randn(3)
    torch.compile(program(text)["fn"])(x)
    for change in ({"fullgraph": True}, {"dynamic": False}, {"mode": "max-autotune"}):
        new_process()
        assert torch.equal(torch.compile(program(text)["fn"], **change)(x), x.exp())
        assert taken() == 0
    new_process()
    with torch.no_grad():
        torch.compile(program(text)["fn"])(x)
    assert taken() == 0


def test_switched_off_nothing_is_kept_or_taken():
    text = "def fn(x):\n    return x.exp()\n"
    with config.patch(region_cache=False):
        twice(text, torch.ones(2))
    assert counters["region"] == {}
    assert not os.path.exists(os.path.join(store().root, regions.KIND))


def _files() -> list[str]:
    folder = os.path.join(store().root, regions.KIND)
    return [os.path.join(d, name) for d, _, names in os.walk(folder) for name in names]


def test_damaged_entries_are_compiled_anew():
    text = "def fn(x):\n    return x.exp() + 1\n"
    x = torch.randn(3)
    rng = random.Random(0)
    torch.compile(program(text)["fn"])(x)
    (path,) = _files()
    whole = pathlib.Path(path).read_bytes()
    for _ in range(12):
        raw = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
        length = rng.choice([len(raw), rng.randrange(len(raw))])
        pathlib.Path(path).write_bytes(raw[:length])
        new_process()
        assert torch.equal(torch.compile(program(text)["fn"])(x), x.exp() + 1)
        assert taken() == 0


def test_entry_that_is_whole_and_makes_no_sense_is_compiled_anew():
    text = "def fn(x):\n    return x.exp() + 1\n"
    x = torch.randn(3)
    torch.compile(program(text)["fn"])(x)
    (path,) = _files()
    key = os.path.basename(path)
    forms = json.loads(store().get(regions.KIND, key))
    for name in forms[0]:
        for new in (None, {}, "x", [["name", "os:system"]]):
            made = json.loads(json.dumps(forms))
            made[0][name] = new
            store().put(regions.KIND, key, json.dumps(made).encode())
            new_process()
            assert torch.equal(torch.compile(program(text)["fn"])(x), x.exp() + 1), (name, new)


def test_new_process_interprets_no_bytecode(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys, torch
            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.a, self.b = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
                def forward(self, x):
                    return self.b(self.a(x).gelu() if False else torch.relu(self.a(x)))
            torch.manual_seed(0)
            model, x = Model(), torch.randn(3, 4)
            loss = torch.compile(model)(x).sum()
            loss.backward()
            print("torch._dynamo.symbolic_convert" in sys.modules, loss.item(),
                  model.a.weight.grad.sum().item())
            """
        )
    )
    env = dict(os.environ, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"))
    runs = [
        subprocess.run(
            [sys.executable, str(script)], env=env, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert runs[0][0] == "True" and runs[1][0] == "False"
    assert runs[0][1:] == runs[1][1:]
