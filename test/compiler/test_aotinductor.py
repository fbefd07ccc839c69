"""Compiled models in files: results are those of eager code, sizes vary, constants are replaced,
and no file that was changed is run."""

from __future__ import annotations

import io
import os
import pathlib
import random
import threading
from collections.abc import Callable

import pytest

import torch
from torch import nn
from torch._inductor import aoti_compile_and_package, aoti_load_package
from torch._inductor.package import load_package, package_aoti
from torch.export import Dim, export

Shapes = dict | tuple | None


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(6, 8)
        self.down = nn.Linear(8, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(self.up(x).relu())


def packed(
    model: nn.Module,
    args: tuple,
    shapes: Shapes = None,
    kwargs: dict | None = None,
    **settings: object,
) -> io.BytesIO:
    program = export(model, args, kwargs, dynamic_shapes=shapes, strict=False)
    configs = {name.replace("__", "."): value for name, value in settings.items()}
    file = io.BytesIO()
    aoti_compile_and_package(program, package_path=file, inductor_configs=configs)
    return file


def same(got: object, want: object) -> None:
    got, want = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert type(a) is type(b) or isinstance(a, torch.Tensor)
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def check(model: nn.Module, args: tuple, *others: tuple, shapes: Shapes = None) -> None:
    """The package gives the bits of eager code for the example and other arguments."""
    loaded = aoti_load_package(packed(model, args, shapes))
    with torch.no_grad():
        for given in (args, *others):
            same(loaded(*given), model(*given))


class Function(nn.Module):
    def __init__(self, fn: Callable) -> None:
        super().__init__()
        self.fn = fn

    def forward(self, *args: object) -> object:
        return self.fn(*args)


# ---- results --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_layers_with_a_batch_that_varies(dtype: torch.dtype) -> None:
    model = Mlp().to(dtype)
    given = [(torch.randn(n, 6, dtype=dtype),) for n in (4, 1, 9)]
    check(model, *given, shapes=({0: Dim("batch", max=32)},))


def test_arguments_and_results_are_trees() -> None:
    class Net(nn.Module):
        def forward(
            self, x: dict[str, torch.Tensor], flag: bool, *, scale: torch.Tensor
        ) -> tuple[torch.Tensor, dict]:
            y = x["a"] * scale if flag else x["b"]
            return y, {"sum": y + x["b"], "none": None}

    x = {"a": torch.randn(3), "b": torch.randn(3)}
    scale = torch.randn(3)
    loaded = aoti_load_package(packed(Net(), (x, True), kwargs={"scale": scale}))
    same(loaded(x, True, scale=scale), Net()(x, True, scale=scale))


def test_buffers_that_are_written_are_state() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(x)
            return self.count * 2

    loaded = aoti_load_package(packed(Counter(), (torch.ones(2),)))
    assert loaded(torch.ones(2)).tolist() == [2, 2]
    assert loaded(torch.ones(2)).tolist() == [4, 4]


def test_inputs_that_are_written() -> None:
    def write(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.mul_(y)
        return x + 1

    loaded = aoti_load_package(packed(Function(write), (torch.ones(3), torch.full((3,), 2.0))))
    x = torch.full((3,), 5.0)
    assert loaded(x, torch.full((3,), 2.0)).tolist() == [11, 11, 11]
    assert x.tolist() == [10, 10, 10]


def test_sizes_that_depend_on_data_cut_the_graph() -> None:
    def chosen(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = (x.sin() > 0).nonzero()
        return x.cos()[found[:, 0]] + 1, found.sum()

    check(Function(chosen), (torch.randn(9),), (torch.randn(9),), (torch.zeros(9),))


def test_numbers_read_from_data() -> None:
    def shifted(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x * n.item() + 1

    check(
        Function(shifted), (torch.randn(3), torch.tensor(2.5)), (torch.ones(3), torch.tensor(7.0))
    )


def test_branches_and_loops() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return torch.cond(y.sum() > 0, lambda v: v.sin() + y, lambda v: v.cos() - y, (x,)) * 3

    check(Function(branch), (torch.ones(4),), (-torch.ones(4),))

    def loop(n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        from torch._higher_order_ops import while_loop

        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 2), (n, x))

    check(Function(loop), (torch.tensor(3), torch.ones(2)), (torch.tensor(0), torch.ones(2)))


def test_operators_that_are_not_taken_are_named() -> None:
    from torch._higher_order_ops.map import map as map_rows

    with pytest.raises(NotImplementedError, match="map"):
        packed(Function(lambda x: map_rows(lambda row: row + 1, x)), (torch.ones(3, 2),))


def test_operators_of_other_libraries_are_called() -> None:
    @torch.library.custom_op("aoti_test::twice_plus", mutates_args=())
    def twice_plus(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * 2 + by

    @twice_plus.register_fake
    def _(x: torch.Tensor, by: float) -> torch.Tensor:
        return torch.empty_like(x)

    check(Function(lambda x: twice_plus(x.sin(), 1.5).cos()), (torch.randn(5),))


def test_sizes_that_follow_from_others() -> None:
    batch = Dim("batch", min=2, max=20)
    model = Function(lambda x, y: torch.cat([x, y]) * x.shape[0])
    given = [(torch.randn(n, 3), torch.randn(2 * n, 3)) for n in (4, 7)]
    check(model, *given, shapes=(({0: batch}, {0: 2 * batch}),))


def test_calls_that_do_not_fit_are_refused() -> None:
    loaded = aoti_load_package(
        packed(Mlp(), (torch.randn(4, 6),), shapes=({0: Dim("batch", min=2, max=8)},))
    )
    for wrong in (torch.randn(4, 5), torch.randn(9, 6), torch.randn(1, 6), torch.randn(6),
                  torch.randn(4, 6).double()):  # fmt: skip
        with pytest.raises(RuntimeError, match="Input 0"):
            loaded(wrong)
    with pytest.raises(ValueError):
        loaded(torch.randn(4, 6), torch.randn(4, 6))


# ---- constants ------------------------------------------------------------------------------


@pytest.mark.parametrize("folds", [False, True])
def test_constants_are_replaced(folds: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = nn.Parameter(torch.randn(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ (self.w.t() * 2 + 1).relu()

    first, second = Net(), Net()
    x = torch.randn(3, 4)
    loaded = aoti_load_package(
        packed(first, (x,), aot_inductor__use_runtime_constant_folding=folds)
    )
    assert loaded.get_constant_fqns() == ["w"]
    with torch.no_grad():
        same(loaded(x), first(x))
        loaded.load_constants({"w": second.w}, check_full_update=True)
        same(loaded(x), second(x))
        own = second.w.detach().clone()
        loaded.load_constants({"w": own}, check_full_update=True, user_managed=True)
        own.zero_()
        if not folds:
            same(loaded(x), x @ torch.ones(4, 4))
    with pytest.raises(RuntimeError, match="shape"):
        loaded.load_constants({"w": torch.zeros(2)}, check_full_update=False)
    with pytest.raises(RuntimeError, match="no constant"):
        loaded.load_constants({"v": torch.zeros(2)}, check_full_update=False)


def test_package_without_weights_asks_for_them() -> None:
    model, x = Mlp(), torch.randn(2, 6)
    file = packed(model, (x,), aot_inductor__package_constants_in_so=False)
    loaded = aoti_load_package(file)
    with pytest.raises(RuntimeError, match="load_constants"):
        loaded(x)
    loaded.load_constants(model.state_dict(), check_full_update=True)
    with torch.no_grad():
        same(loaded(x), model(x))


def test_freezing_folds_when_compiling() -> None:
    model, x = Mlp().eval(), torch.randn(2, 6)
    with torch.no_grad():
        same(aoti_load_package(packed(model, (x,), freezing=True))(x), model(x))


def test_many_threads_call_one_model() -> None:
    model = Mlp()
    loaded = aoti_load_package(
        packed(model, (torch.randn(4, 6),), shapes=({0: Dim("batch", max=16)},))
    )
    given = [torch.randn(n, 6) for n in range(2, 10)]
    with torch.no_grad():
        wanted = [model(x) for x in given]
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            for i, x in enumerate(given):
                if not torch.equal(loaded(x), wanted[i]):
                    wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# ---- files ----------------------------------------------------------------------------------


def test_several_models_and_metadata_in_a_package(tmp_path: pathlib.Path) -> None:
    options = {"aot_inductor.package": True, "aot_inductor.metadata": {"who": "me"}}
    x = torch.randn(3)
    files = {}
    for name, fn in {"plus": lambda x: x + 1, "sine": torch.sin}.items():
        module = export(Function(fn), (x,)).module()
        files[name] = torch._inductor.aot_compile(module, (x,), options=options)
    path = package_aoti(str(tmp_path / "both.pt2"), files)
    assert sorted(torch._C._aoti.model_names(path)) == ["plus", "sine"]
    same(load_package(path, "plus")(x), x + 1)
    same(load_package(path, "sine")(x), x.sin())
    assert load_package(path, "plus").get_metadata()["who"] == "me"
    with pytest.raises(RuntimeError, match="plus, sine"):
        load_package(path)


def test_functions_compiled_to_one_file(tmp_path: pathlib.Path) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0) + 1

    x = torch.randn(4)
    place = {"aot_inductor.output_path": str(tmp_path / "f.pt2")}
    path = torch._export.aot_compile(f, (x,), options=place)
    assert path == str(tmp_path / "f.pt2")
    same(torch._export.aot_load(path, "cpu")(x), f(x))
    runner = torch._C._aoti.AOTIModelContainerRunnerCpu(path, 1)
    same(runner.run([x]), [f(x)])


def test_wrong_uses_are_named(tmp_path: pathlib.Path) -> None:
    program = export(Mlp(), (torch.randn(2, 6),))
    with pytest.raises(AssertionError, match="pt2"):
        aoti_compile_and_package(program, package_path=str(tmp_path / "a.zip"))
    with pytest.raises(ValueError, match="ExportedProgram"):
        aoti_compile_and_package(Mlp())
    with pytest.raises(RuntimeError, match="cannot open"):
        aoti_load_package(str(tmp_path / "none.pt2"))
    program.example_inputs = None
    with pytest.raises(RuntimeError, match="example_inputs"):
        aoti_compile_and_package(program)


def test_package_of_an_earlier_build_runs() -> None:
    path = pathlib.Path(__file__).parent / "data" / "aoti_mlp.pt2"
    loaded = aoti_load_package(str(path))
    held = loaded.loader.extract_constants_map(False)
    x = torch.randn(5, 6)
    want = (x @ held["up.weight"].t() + held["up.bias"]).relu() @ held["down.weight"].t()
    assert torch.allclose(loaded(x), want, atol=1e-6)


def _changed(whole: bytes, chance: random.Random) -> bytes:
    """A file with some bytes changed, left out, doubled or moved."""
    data = bytearray(whole)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        at = chance.randrange(len(data))
        kind = chance.randrange(4)
        if kind == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at : at + chance.choice((1, 4, 200))]
        elif kind == 2:
            data[at:at] = data[at : at + chance.choice((1, 4, 200))]
        else:
            data[at : at + 8] = chance.choice((bytes(8), b"\xff" * 8, bytes([7] + [0] * 7)))
        if not data:
            return b""
    return bytes(data)


def test_changed_files_are_refused_or_unchanged_in_meaning(tmp_path: pathlib.Path) -> None:
    model, x = Mlp(), torch.randn(3, 6)
    whole = packed(model, (x,), shapes=({0: Dim("batch", max=9)},)).getvalue()
    with torch.no_grad():
        want = model(x)
    chance = random.Random(3)
    path = os.fspath(tmp_path / "changed.pt2")
    refused = 0
    for _ in range(300):
        pathlib.Path(path).write_bytes(_changed(whole, chance))
        try:
            loaded = aoti_load_package(path)
        except RuntimeError:
            refused += 1
            continue
        same(loaded(x), want)  # names and dates of records mean nothing
    assert refused > 150


def test_programs_that_were_made_to_harm_are_refused(tmp_path: pathlib.Path) -> None:
    """With checksums that fit: bytes of the program are replaced in turn."""
    import struct
    import zipfile

    x = torch.randn(2, 3)
    file = packed(Function(lambda x: (x.reshape(-1)[1:4] * 2).sum(0)), (x,))
    with zipfile.ZipFile(file) as archive:
        name = next(n for n in archive.namelist() if n.endswith("program.bin"))
        whole = archive.read(name)
        rest = {n: archive.read(n) for n in archive.namelist() if n != name}
    path = os.fspath(tmp_path / "made.pt2")
    chance = random.Random(5)
    for at in range(16, len(whole), 3):
        body = bytearray(whole[16:])
        body[at - 16] = chance.choice((0, 1, 127, 255, body[at - 16] ^ 2))
        head = whole[:8] + struct.pack("<Q", torch._C._aoti.checksum(bytes(body)))
        with zipfile.ZipFile(path, "w") as archive:
            for other, data in rest.items():
                archive.writestr(other, data)
            archive.writestr(name, head + bytes(body))
        try:
            loaded = torch._C._aoti.AOTIModelPackageLoader(path)
            loaded.run([x])
        except (RuntimeError, IndexError, ValueError, TypeError):
            continue
