"""Scripted functions: what the compiler accepts, what the interpreter computes. Results are
compared
with plain Python."""

import enum
from typing import NamedTuple

import pytest

import torch


class Point(NamedTuple):
    x: int
    y: float


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Counter:
    def __init__(self, start: int):
        self.total = start

    def add(self, amount: int) -> int:
        self.total += amount
        return self.total

    def __add__(self, other: "Counter") -> "Counter":
        return Counter(self.total + other.total)


def collatz(n: int) -> int:
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


def first_square_above(limit: int) -> int:
    for i in range(1000):
        if i % 2 == 1:
            continue
        if i * i > limit:
            return i
    return -1


def sieve(n: int) -> list[int]:
    primes: list[int] = []
    for candidate in range(2, n):
        prime = True
        for p in primes:
            if p * p > candidate:
                break
            if candidate % p == 0:
                prime = False
                break
        if prime:
            primes.append(candidate)
    return primes


def words(text: str) -> dict[str, int]:
    out: dict[str, int] = {}
    for word in text.lower().split():
        out[word] = out.get(word, 0) + 1
    return out


def early(a: int, b: int) -> int:
    if a > 0:
        if b > 0:
            return 1
        a = 5
    elif b > 3:
        a = 7
    return a * 10


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (collatz, [(1,), (27,), (97,)]),
        (first_square_above, [(10,), (50,), (10**9,)]),
        (sieve, [(2,), (50,)]),
        (words, [("the cat the dog THE",)]),
        (early, [(1, 1), (1, -1), (-1, 4), (-1, 1)]),
    ],
)
def test_scripted_function_computes_what_python_does(function, calls):
    scripted = torch.jit.script(function)
    for call in calls:
        assert scripted(*call) == function(*call)


def test_loop_over_tensors_gives_gradients():
    @torch.jit.script
    def powers(x, n: int):
        total = torch.zeros_like(x)
        for i in range(n):
            total = total + x**i
        return total

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    powers(x, 4).sum().backward()
    assert x.grad.tolist() == [1 + 2 * 2 + 3 * 4, 1 + 2 * 3 + 3 * 9]


def test_optional_is_refined_by_a_none_test():
    @torch.jit.script
    def size(x: torch.Tensor | None, default: int = 7) -> int:
        if x is None:
            return default
        return x.size(0)

    assert size(None) == 7 and size(torch.ones(3)) == 3 and size(None, default=1) == 1


def test_union_is_refined_by_isinstance():
    @torch.jit.script
    def describe(x: int | str | list[int]) -> str:
        if isinstance(x, int):
            return f"int {x + 1}"
        elif isinstance(x, str):
            return "str " + x.upper()
        return f"list of {len(x)}"

    assert [describe(1), describe("a"), describe([1, 2])] == ["int 2", "str A", "list of 2"]


def test_named_tuple_enum_and_class_go_through():
    @torch.jit.script
    def use(p: Point, colour: Colour, start: int) -> tuple[Point, int, bool]:
        counter = Counter(start)
        counter.add(p.x)
        both = counter + Counter(100)
        return Point(p.x + 1, p.y * 2.0), both.total, colour == Colour.RED

    point, total, red = use(Point(1, 0.5), Colour.RED, 10)
    assert (point.x, point.y, total, red) == (2, 1.0, 111, True)
    assert use(Point(1, 0.5), Colour.GREEN, 10)[2] is False


def test_indexing_and_assignment_of_tensors_follow_python():
    @torch.jit.script
    def pick(x, mask, index):
        y = x.clone()
        y[0, 1:] = 5.0
        y[mask] += 1.0
        return y[..., -1], y[index], y[:, None, ::2], y[1][0]

    def plain(x, mask, index):
        y = x.clone()
        y[0, 1:] = 5.0
        y[mask] += 1.0
        return y[..., -1], y[index], y[:, None, ::2], y[1][0]

    x = torch.arange(12.0).reshape(3, 4)
    given = (x, x > 8, torch.tensor([2, 0]))
    for got, want in zip(pick(*given), plain(*given), strict=True):
        assert got.tolist() == want.tolist()


def test_raise_becomes_a_script_error_with_the_message():
    @torch.jit.script
    def check(n: int) -> int:
        if n < 0:
            raise ValueError(f"negative: {n}")
        return n

    assert check(2) == 2
    with pytest.raises(torch.jit.Error, match="negative: -3"):
        check(-3)
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'n'"):
        check("a")


def test_comprehensions_and_containers_of_containers_keep_types():
    @torch.jit.script
    def table(n: int) -> dict[int, list[tuple[int, str]]]:
        rows = {i: [(j, str(j)) for j in range(i) if j != 1] for i in range(n)}
        return rows

    assert table(4) == {i: [(j, str(j)) for j in range(i) if j != 1] for i in range(4)}


def test_variable_of_two_types_is_refused():
    def two_types(flag: bool):
        if flag:
            x = 1
        else:
            x = "a"
        return x

    with pytest.raises(RuntimeError, match="Type mismatch"):
        torch.jit.script(two_types)


def test_ignored_function_is_called_in_python():
    seen = []

    @torch.jit.ignore
    def note(x: int) -> int:
        seen.append(x)
        return x * 2

    @torch.jit.script
    def run(x: int) -> int:
        return note(x) + 1

    assert run(4) == 9 and seen == [4]


def test_fork_and_wait_give_the_value():
    def double(x):
        return x * 2

    @torch.jit.script
    def run(x):
        later = torch.jit.fork(double, x)
        return torch.jit.wait(later) + x

    assert run(torch.ones(2)).tolist() == [3.0, 3.0]


def test_none_for_a_tensor_is_an_error_and_no_crash():
    unit = torch.jit.CompilationUnit(
        "def f(x: Optional[Tensor]) -> Tensor:\n"
        "    y = torch.jit.annotate(Optional[Tensor], x)\n"
        "    z = torch._unwrap_optional(y) if False else torch.ones(1)\n"
        "    return z\n"
    )
    assert unit.f(None).tolist() == [1.0]


def test_graph_shows_operators_and_types():
    @torch.jit.script
    def f(x, n: int):
        return torch.relu(x) + n

    kinds = [node.kind() for node in f.graph.nodes()]
    assert "aten::relu" in kinds and "aten::add" in kinds
    assert "%x : Tensor" in str(f.graph) and "torch.relu(x)" in f.code


def test_error_inside_no_grad_leaves_the_gradient_mode_of_the_caller() -> None:
    @torch.jit.script
    def fails(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return x.view(7)

    with pytest.raises(RuntimeError, match="view"):
        fails(torch.ones(3))
    assert torch.is_grad_enabled()


def test_autocast_is_seen_by_scripted_code_and_refused_as_its_block() -> None:
    @torch.jit.script
    def asks() -> bool:
        return torch.is_autocast_cpu_enabled()

    def block(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu"):
            return x @ x

    with torch.autocast("cpu"):
        assert asks()
    assert not asks()
    with pytest.raises(RuntimeError, match="'autocast' aren't supported"):
        torch.jit.script(block)
