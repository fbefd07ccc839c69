"""What scripted code and scripted modules do where Python's behaviour is the reference: indices,
integers, hooks, freezing."""

import itertools
import math

import pytest

import torch
from torch import nn


@pytest.mark.parametrize("place", range(3))
def test_index_with_ellipsis_and_none_gives_the_shape_of_python(place):
    for rest in itertools.product((":", "1", "None"), repeat=2):
        parts = [*rest]
        parts.insert(place, "...")
        text = f"def f():\n    return torch.ones(5, 4, 3)[{', '.join(parts)}].shape\n"
        scope = {"torch": torch}
        exec(text, scope)
        assert list(torch.jit.CompilationUnit(text).f()) == list(scope["f"]()), parts


def arithmetic(a: int, b: int) -> list[int]:
    out = [a + b, a - b, a * b]
    if b != 0:
        out += [a // b, a % b]
    if a < b or a >= 2 * b:
        out.append(1)
    if a == b or a <= -b:
        out.append(2)
    if a != b and a > b:
        out.append(3)
    return out


@pytest.mark.parametrize("a", [-7, -1, 0, 5, 7])
@pytest.mark.parametrize("b", [-7, -3, -1, 0, 1, 3, 7])
def test_integer_arithmetic_of_scripted_code_equals_python(a, b):
    assert torch.jit.script(arithmetic)(a, b) == arithmetic(a, b)


def test_integer_division_by_zero_in_scripted_code_raises():
    @torch.jit.script
    def f(a: int, b: int):
        return a // b

    with pytest.raises(RuntimeError, match="division by zero"):
        f(1, 0)


def test_division_by_zero_of_floats_in_scripted_code_gives_what_ieee_says():
    @torch.jit.script
    def f(a: float, b: float):
        return a / b, a // b, a % b

    assert f(1.0, 0.0)[:2] == (math.inf, math.inf)
    assert f(-1.0, 0.0)[:2] == (-math.inf, -math.inf)
    assert math.isnan(f(1.0, 0.0)[2]) and math.isnan(f(0.0, 0.0)[0])

    @torch.jit.script
    def g(a: int, b: int):
        return a / b

    assert g(1, 0) == math.inf


def test_functions_of_numbers_out_of_range_in_scripted_code_give_what_ieee_says():
    @torch.jit.script
    def f(a: float):
        return math.sqrt(a), math.log(a)

    assert all(math.isnan(x) for x in f(-1.0))
    assert f(0.0) == (0.0, -math.inf)


def test_zero_to_a_negative_power_in_scripted_code_raises():
    @torch.jit.script
    def f(a: float, b: float):
        return a**b

    with pytest.raises(RuntimeError, match="negative power"):
        f(0.0, -1.0)


@pytest.mark.parametrize("number", [-(2**63), -(2**62) - 1, 2**63 - 1])
def test_every_integer_of_64_bits_passes_through_scripted_code(number):
    @torch.jit.script
    def f(a: int):
        return a, a + 0

    assert f(number) == (number, number)


def test_overflow_of_integers_in_scripted_code_wraps():
    @torch.jit.script
    def f(a: int):
        return a + a

    assert f(2**62) == -(2**63)


def test_index_error_inside_of_scripted_code_is_a_runtime_error():
    @torch.jit.script
    def f(n: int):
        return [1, 2][n]

    with pytest.raises(RuntimeError, match="out of range"):
        f(7)


def test_method_of_a_number_is_refused_while_compiling():
    def f():
        n = 1
        return n.add(1)

    with pytest.raises(RuntimeError, match="object has no attribute or method"):
        torch.jit.script(f)


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.name = "a"

    def forward(self, x: str) -> str:
        return self.name + x


def rename(self, given: tuple[str]) -> tuple[str]:
    self.name = "b"
    return (given[0] + "!",)


def surround(self, given: tuple[str], result: str) -> str:
    return "<" + result + ">"


def test_hooks_of_a_scripted_module_run_when_python_calls_it():
    module = Named()
    module.register_forward_pre_hook(rename)
    module.register_forward_hook(surround)
    scripted = torch.jit.script(module)
    assert scripted("x") == "<bx!>" == module("x")
    assert scripted.forward("x") == "bx"


class Grows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen, self.factor, self.part = [1], 3, nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> tuple[int, torch.Tensor]:
        self.seen.append(len(self.seen))
        return len(self.seen), self.part(x) * self.factor


def test_freezing_keeps_attributes_that_are_written_in_place():
    module = torch.jit.script(Grows().eval())
    frozen = torch.jit.freeze(module)
    assert hasattr(frozen, "seen")
    assert not hasattr(frozen, "factor") and not hasattr(frozen, "part")
    first, result = frozen(torch.ones(1, 2))
    assert frozen(torch.ones(1, 2))[0] == first + 1
    torch.testing.assert_close(result, module(torch.ones(1, 2))[1])


class Stands(nn.SELU):
    def __prepare_scriptable__(self) -> nn.Module:
        return nn.ReLU()


def test_module_with_prepare_scriptable_is_replaced_when_scripted():
    scripted = torch.jit.script(nn.Sequential(Stands()))
    assert scripted(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def test_assigning_a_python_module_to_a_scripted_one_raises():
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2)))
    with pytest.raises(RuntimeError, match="Cannot re-assign"):
        setattr(scripted, "0", nn.Linear(2, 2))


def test_compilation_unit_adds_finds_and_drops_functions():
    unit = torch.jit.CompilationUnit("def f(x):\n    return x + 1\n")
    again = unit.create_function("f", unit.f.graph, should_mangle=True)
    assert {f.name for f in unit.get_functions()} == {"f", again.name}
    assert again(torch.ones(1)).item() == 2
    unit.drop_all_functions()
    assert unit.find_function("f") is None


def test_state_of_a_function_holds_the_graph_that_runs():
    @torch.jit.script
    def f(x):
        return x.relu()

    plans = f.get_debug_state().execution_plans
    assert "aten::relu" in str(next(iter(plans.values())).graph)
    assert (f.name, f.qualified_name.rpartition(".")[2]) == ("f", "f")


def test_dump_of_a_module_shows_code_and_attributes(capsys):
    module = torch.jit.script(torch.nn.Linear(2, 1))
    module.dump()
    text = capsys.readouterr().out
    assert text.rstrip("\n") == module.dump_to_str()
    assert "torch.linear" in text
    assert "in_features" not in module.dump_to_str(code=False, attrs=False, params=False)
    assert module.qualified_name.startswith("__torch__.")


def test_names_of_torch_for_scripts_are_those_of_torch_jit():
    assert torch.JITException is torch.jit.Error
    assert torch.CompilationUnit is torch.jit.CompilationUnit
    assert isinstance(torch.jit.script(torch.nn.ReLU()).forward, torch.ScriptMethod)
    torch.FileCheck().check("a").check_not("c").run("a b")
    torch.jit.enable_onednn_fusion(True)
    assert torch.jit.onednn_fusion_enabled()
    torch.jit.enable_onednn_fusion(False)


def test_kinds_of_types_give_their_types():
    @torch.jit.script
    def f(x, n: int):
        return x + n

    kinds = [value.type() for value in f.graph.inputs()]
    assert kinds[0] is torch.TensorType.get()
    assert isinstance(kinds[1], torch.IntType)


def test_number_of_parts_is_not_taken_for_a_list_of_places_in_scripted_code():
    def f(x):
        return (
            torch.tensor_split(x, 2, dim=2),
            torch.tensor_split(x, 3),
            torch.dsplit(x, 2),
            torch.hsplit(x, 3),
            x.vsplit(2),
            torch.dsplit(x, [1, 2]),
        )

    x = torch.arange(144.0).view(4, 6, 6)
    for found, expected in zip(torch.jit.script(f)(x), f(x), strict=True):
        assert [tuple(t.shape) for t in found] == [tuple(t.shape) for t in expected]
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_operator_of_two_names_has_one_in_the_graph():
    @torch.jit.script
    def f(x):
        return torch.arccos(x).clip_(0.5), torch.greater(x, 0), torch.special.expit(x)

    kinds = {n.kind() for n in f.graph.nodes()}
    assert {"aten::acos", "aten::clamp_", "aten::gt", "aten::sigmoid"} <= kinds
    x = torch.tensor([0.25, 0.9])
    assert torch.equal(f(x)[0], torch.acos(x).clamp(min=0.5))


def test_compilation_unit_takes_text_whose_lines_stand_left_of_the_first():
    unit = torch.jit.CompilationUnit("""
        # what it adds
    # and why
        def f(x, y):
            return torch.add(x,
y)
    """)
    assert unit.f(torch.ones(1), torch.ones(1)).item() == 2


def test_list_times_a_number_in_place_stays_the_list():
    @torch.jit.script
    def f(a: list[int], n: int):
        b = a
        b *= n
        b += [9]
        return a, b, a is b

    assert f([1, 2], 2) == ([1, 2, 1, 2, 9], [1, 2, 1, 2, 9], True)
    assert f([1, 2], 0) == ([9], [9], True)
