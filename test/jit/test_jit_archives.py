"""Archives that PyTorch wrote (peer_archives.txt: a name, the archive, its inputs and outputs), and
archives that go through a file of ours and back."""

import base64
import enum
import io
import pathlib
import pickletools
import subprocess
import sys
import zipfile
import zlib
from typing import NamedTuple

import pytest

import torch
from torch import Tensor, nn

LINES = (pathlib.Path(__file__).parent / "peer_archives.txt").read_text().splitlines()


def unpacked(text):
    return io.BytesIO(zlib.decompress(base64.b64decode(text)))


def through_file(module):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    buffer.seek(0)
    return torch.jit.load(buffer)


def assert_same(got, wanted):
    if isinstance(wanted, Tensor):
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted)
        for a, b in zip(got, wanted, strict=True):
            assert_same(a, b)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            assert_same(got[key], wanted[key])
    else:
        assert type(got) is type(wanted)
        assert got == wanted


@pytest.mark.parametrize("line", LINES, ids=[line.split()[0] for line in LINES])
def test_archive_of_pytorch_gives_the_recorded_outputs(line):
    name, archive, record = line.split()
    recorded = torch.load(unpacked(record))
    module = torch.jit.load(unpacked(archive))
    assert_same(module(*recorded["inputs"]), recorded["output"])
    if name not in ("with_getstate", "containers"):  # a call or a load changes these
        again = through_file(torch.jit.load(unpacked(archive)))
        assert_same(again(*recorded["inputs"]), recorded["output"])


class Shade(enum.Enum):
    DARK = "dark"
    LIGHT = "light"


class Point(NamedTuple):
    x: Tensor
    weight: int


class Layer(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer()
        self.shade = Shade.LIGHT

    @property
    def factor(self) -> int:
        return 3

    @torch.jit._overload_method
    def twice(self, x: int) -> int: ...

    @torch.jit._overload_method
    def twice(self, x: Tensor) -> Tensor: ...  # noqa: F811

    def twice(self, x):  # noqa: F811
        return x * 2

    def forward(self, x: Tensor, n: int):
        inner = self.layer

        def later(y: Tensor) -> Tensor:
            return inner(y)

        future = torch.jit.fork(later, x)
        point = Point(self.layer(x) * self.factor, self.twice(n))
        return torch.jit.wait(future), self.twice(x), point, self.shade.value, "abcd"[::-2]


def add_ten(self, args: tuple[Tensor]) -> tuple[Tensor]:
    return (args[0] + 10,)


def times_input(self, args: tuple[Tensor], out: Tensor) -> Tensor:
    return out * args[0]


def test_properties_overloads_enums_and_forks_survive_a_file():
    x = torch.tensor([1.0, -2.0])
    module = torch.jit.script(Holder())
    for made in (module, through_file(module)):
        waited, doubled, point, shade, text = made(x, 4)
        assert_same([waited, doubled], [x * 2, x * 2])
        assert_same(point, (x * 6, 8))
        assert (shade, text) == ("light", "db")


def test_hooks_run_inside_and_outside_after_a_file():
    layer = Layer()
    layer.register_forward_pre_hook(add_ten)
    layer.register_forward_hook(times_input)
    outer = nn.Sequential(layer)
    x = torch.tensor([1.0, 2.0])
    wanted = (x + 10) * 2 * (x + 10)
    for module in (torch.jit.script(layer), torch.jit.script(outer)):
        assert_same(through_file(module)(x), wanted)
        assert_same(module.copy()(x), wanted)


@torch.jit.interface
class Step(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass


class Stepper(nn.Module):
    step: Step

    def __init__(self):
        super().__init__()
        self.step = Layer()

    def forward(self, x: Tensor) -> Tensor:
        return self.step.forward(x) + 1


def test_class_that_only_an_interface_names_is_in_the_archive():
    assert through_file(torch.jit.script(Stepper()))(torch.ones(1)).item() == 3


def test_function_that_calls_itself_is_refused_when_compiled():
    with pytest.raises(RuntimeError, match="called recursively"):
        torch.jit.CompilationUnit("def f(n: int) -> int:\n    return f(n + 1)\n")


def test_one_hot_in_scripted_code_is_the_operator():
    @torch.jit.script
    def f(x: Tensor) -> Tensor:
        return nn.functional.one_hot(x, 3)

    assert f(torch.tensor([2, 0])).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_archive_whose_data_repeats_a_container_is_refused():
    buffer = io.BytesIO()
    torch.jit.save(torch.jit.script(Layer()), buffer)
    with zipfile.ZipFile(buffer) as archive:
        records = {name: archive.read(name) for name in archive.namelist()}
    # A tuple of two of itself, forty times over.
    bomb = b"\x80\x02)q\x01" + b"0h\x01h\x01\x86q\x01" * 40 + b"."
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in records.items():
            archive.writestr(name, bomb if name.endswith("/data.pkl") else data)
    out.seek(0)
    with pytest.raises(RuntimeError, match="repeats its containers"):
        torch.jit.load(out)


def test_endless_loop_of_scripted_code_stops_at_ctrl_c():
    program = """if True:
        import signal, sys, torch
        text = "def f(n: int) -> int:\\n while n > 0:\\n  n += 1\\n return n"
        f = torch.jit.CompilationUnit(text)
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            f.f(1)
        except KeyboardInterrupt:
            print("stopped")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
    assert done.stdout == b"stopped\n", done.stderr.decode()


def record(module, name):
    buffer = io.BytesIO()
    torch.jit.save(module, buffer)
    archive = zipfile.ZipFile(buffer)
    return archive.read(next(n for n in archive.namelist() if n.endswith(name)))


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)
        self.b = self.a

    def forward(self, x):
        return self.a(x) - self.b(x)


def test_objects_of_an_archive_are_remembered_when_they_have_their_state():
    """Other readers make an object when its state arrives, and know it from then on."""
    data = record(torch.jit.script(Twins()), "data.pkl")
    opcodes = [op.name for op, _, _ in pickletools.genops(data)]
    after = [opcodes[i + 1] for i, name in enumerate(opcodes[:-1]) if name == "BUILD"]
    assert after.count("LONG_BINPUT") == 2
    made = [opcodes[i + 1] for i, name in enumerate(opcodes) if name == "NEWOBJ"]
    assert set(made) == {"EMPTY_DICT"}
    again = through_file(torch.jit.script(Twins()))
    assert again.a is again.b


def fills(x):
    return torch.full([2], 7) + x


def halves(x):
    return x / 2


def means(x: list[int]):
    return x[0] / 2


def spaced(x):
    return torch.linspace(0, 1, 3) + x


def activates(x):
    return nn.functional.gelu(x)


@pytest.mark.parametrize(
    ("function", "version"), [(fills, 5), (halves, 4), (means, 3), (spaced, 8), (activates, 10)]
)
def test_archive_has_the_version_that_its_operators_need(function, version):
    """A reader takes operators of an older archive by the meaning they had then."""
    assert int(record(torch.jit.script(function), "/version")) == version


def respelled(module, ours, theirs):
    """The module from its archive, in which code of ours is written as another writer does."""
    buffer, changed = io.BytesIO(), io.BytesIO()
    torch.jit.save(module, buffer)
    found = False
    with zipfile.ZipFile(buffer) as archive, zipfile.ZipFile(changed, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name)
            found = found or ours in data
            copy.writestr(name, data.replace(ours, theirs))
    assert found
    changed.seek(0)
    return torch.jit.load(changed)


def joined_shape(x, y):
    return x.expand(torch.broadcast_shapes(x.size(), y.size()))


def test_shapes_are_broadcast_in_code_and_in_archives():
    scripted = torch.jit.script(joined_shape)
    ours = b"__torch__.torch.nn.functional.broadcast_shapes(_0, _1, )"
    loaded = respelled(scripted, ours, b"torch.broadcast_shapes(_0, _1)")
    for x, y in (((3, 1), (2, 3, 5)), ((1,), (4, 2)), ((2, 1), (7,))):
        x, y = torch.ones(x), torch.ones(y)
        wanted = torch.broadcast_shapes(x.shape, y.shape)
        assert scripted(x, y).shape == loaded(x, y).shape == wanted
    with pytest.raises(torch.jit.Error, match="cannot be broadcast"):
        scripted(torch.ones(2), torch.ones(3))


def sort_both(x: list[int], words: list[str]):
    return sorted(x), sorted(words)


def test_sorted_as_other_writers_spell_it_is_read():
    loaded = respelled(torch.jit.script(sort_both), b"torch.sorted(", b"sorted(")
    assert loaded([2, 1], ["b", "a"]) == ([1, 2], ["a", "b"])


START = torch.arange(2.0)


@torch.jit.script
def with_default(x=START):
    return x + 1


class CallsDefault(nn.Module):
    def forward(self, x):
        return x + with_default()


def test_function_with_a_tensor_as_default_comes_back():
    module = through_file(torch.jit.script(CallsDefault()))
    assert module(torch.zeros(2)).tolist() == [1.0, 2.0]


def doubled(self, inputs: tuple[Tensor]) -> tuple[Tensor]:
    return (inputs[0] * 2,)


class CallsHooked(nn.Module):
    def __init__(self, hooks) -> None:
        super().__init__()
        self.layer = Layer()
        for hook in hooks:
            self.layer.register_forward_pre_hook(hook)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def test_hook_that_a_module_has_twice_runs_twice_after_a_file():
    plain = CallsHooked([doubled, doubled])
    x = torch.ones(2)
    scripted = torch.jit.script(plain)
    assert_same(scripted(x), plain(x))
    assert_same(through_file(scripted)(x), plain(x))


def test_two_hooks_of_one_name_raise():
    def other(self, inputs: tuple[Tensor]) -> tuple[Tensor]:
        return (inputs[0] * 3,)

    other.__name__ = "doubled"
    with pytest.raises(RuntimeError, match=r"two hooks of .* of the name 'doubled'"):
        torch.jit.script(CallsHooked([doubled, other]))


@torch.jit.interface
class Scales:
    def scale(self, x: Tensor) -> Tensor:
        pass


@torch.jit.script
class Tripler:
    def __init__(self) -> None:
        pass

    def scale(self, x: Tensor) -> Tensor:
        return x * 3


class HoldsInterface(nn.Module):
    scaler: Scales

    def __init__(self) -> None:
        super().__init__()
        self.scaler = Tripler()

    def forward(self, x: Tensor) -> Tensor:
        return self.scaler.scale(x)


def test_object_behind_an_interface_comes_back_with_its_methods():
    assert through_file(torch.jit.script(HoldsInterface()))(torch.ones(1)).item() == 3
