"""Parts of the script language: annotations, classes, dataclasses, interfaces, numbers, slices."""

import cmath
import dataclasses
import enum
from collections import OrderedDict
from typing import Dict, List, Optional, Union  # noqa: UP035

import pytest

import torch


def test_type_comment_without_result_infers_the_result():
    def f(x, n):
        # type: (Tensor, int)
        return x * n

    assert torch.equal(torch.jit.script(f)(torch.ones(2), 3), torch.full((2,), 3.0))


def test_type_comments_of_single_parameters_are_read():
    def f(
        x,  # type: int
        y,  # type: List[int]
    ):
        # type: (...) -> int
        return x + y[0]

    assert torch.jit.script(f)(1, [4, 5]) == 5


def test_wrong_number_of_commented_types_shows_the_definition():
    def f(a):
        # type: (int, int) -> int
        return a

    with pytest.raises(RuntimeError, match=r"Number of type annotations \(2\)[\s\S]*def f\(a\):"):
        torch.jit.script(f)


def test_annotation_that_names_a_local_class_is_found():
    @torch.jit.script
    class Leaf:
        def __init__(self, x: int) -> None:
            self.x = x

        def same(self, other: "Leaf") -> bool:
            return self.x == other.x

        def first(self, many: List["Leaf"]) -> "Leaf":  # noqa: UP006
            return many[0]

    @torch.jit.script
    def f(n: int) -> bool:
        a = Leaf(n)
        return a.same(a.first([Leaf(3)]))

    assert f(3)
    assert not f(4)


def test_class_methods_make_objects_of_the_class():
    class Point:
        def __init__(self, x: int) -> None:
            self.x = x

        @classmethod
        def twice(cls, x: int) -> "Point":
            return cls(2 * x)

    def f(n: int) -> int:
        return Point(0).twice(n).x

    assert torch.jit.script(f)(4) == 8


def test_dataclasses_construct_compare_and_run_post_init():
    @dataclasses.dataclass(order=True)
    class Pair:
        x: float
        y: float
        scale: dataclasses.InitVar[float] = 2.0
        total: Optional[float] = None  # noqa: UP045

        def __post_init__(self, scale: float) -> None:
            self.total = (self.x + self.y) * scale

    torch.jit.script(Pair)

    def total(x: float, y: float, s: float) -> Optional[float]:  # noqa: UP045
        return Pair(x, y, s).total

    assert torch.jit.script(total)(1.0, 2.0, 3.0) == 9.0

    @torch.jit.script
    @dataclasses.dataclass(order=True)
    class Key:
        major: int
        minor: int

    def order(a: int, b: int) -> List[bool]:  # noqa: UP006
        left, right = Key(1, a), Key(1, b)
        return [left < right, left <= right, left > right, left >= right, left == right]

    compiled = torch.jit.script(order)
    for a, b in ((1, 2), (2, 2), (3, 2)):
        assert compiled(a, b) == [a < b, a <= b, a > b, a >= b, a == b]


def test_dataclass_with_a_default_factory_is_refused():
    @dataclasses.dataclass
    class Bag:
        items: List[int] = dataclasses.field(default_factory=list)  # noqa: UP006

    with pytest.raises(NotImplementedError, match="default_factory"):
        torch.jit.script(Bag)


def test_interface_needs_methods_of_the_same_signature():
    @torch.jit.interface
    class Doubling:
        def two(self, x: torch.Tensor) -> torch.Tensor:
            pass

    @torch.jit.script
    class Missing:
        def one(self, x: torch.Tensor) -> torch.Tensor:
            return x

    @torch.jit.script
    class Other:
        def two(self, x: int) -> int:
            return 2 * x

    @torch.jit.script
    def take(x: Doubling) -> Doubling:
        return x

    with pytest.raises(RuntimeError, match="does not have method 'two'"):

        @torch.jit.script
        def missing():
            return take(Missing())

    with pytest.raises(RuntimeError, match="is not compatible with interface"):

        @torch.jit.script
        def wrong():
            return take(Other())


def test_list_in_a_variable_is_not_copied_to_fit_a_wider_annotation():
    def f():
        x: List[int] = [1, 2]  # noqa: UP006
        y: List[Optional[int]] = x  # noqa: UP006, UP045
        return y

    with pytest.raises(RuntimeError, match=r"annotated with type List\[Optional\[int\]\]"):
        torch.jit.script(f)


def test_literal_of_another_kind_than_its_annotation_is_refused():
    def listed():
        x: int = [2, 3]
        return x

    def union():
        x: Union[int, torch.Tensor] = {}  # noqa: UP007
        return x

    with pytest.raises(RuntimeError, match="Expected an annotation of type List"):
        torch.jit.script(listed)
    with pytest.raises(RuntimeError, match="Union type annotation with an inner Dict"):
        torch.jit.script(union)


def test_function_that_does_not_always_return_is_refused():
    def f(x: int) -> int:
        if x > 1:
            return x

    with pytest.raises(RuntimeError, match="does not return along all paths"):
        torch.jit.script(f)


def test_error_in_a_called_function_names_its_callers():
    def inner(x: int) -> int:
        return x

    def middle(x):
        return inner("text")

    def outer(x):
        return middle(x)

    with pytest.raises(RuntimeError, match="'middle' is being compiled since it was called from"):
        torch.jit.script(outer)


def test_slice_objects_index_lists():
    def f(x: List[int], n: int) -> List[int]:  # noqa: UP006
        part = slice(1, n)
        n = 0
        return x[part] + x[slice(0, 6, 2)]

    assert torch.jit.script(f)(list(range(8)), 4) == [1, 2, 3, 0, 2, 4]


def test_functions_of_cmath_are_those_of_python():
    def f(z: complex) -> List[complex]:  # noqa: UP006
        return [cmath.exp(z), cmath.sqrt(z), cmath.sin(z), cmath.rect(2.0, 0.5)]

    z = 0.5 - 1.25j
    wanted = [cmath.exp(z), cmath.sqrt(z), cmath.sin(z), cmath.rect(2.0, 0.5)]
    assert torch.jit.script(f)(z) == pytest.approx(wanted)


def test_ordered_dict_keeps_the_last_value_of_a_key():
    def f() -> Dict[int, int]:  # noqa: UP006
        return OrderedDict([(1, 2), (2, 3), (1, 4)])

    assert torch.jit.script(f)() == {1: 4, 2: 3}


def test_deleting_items_of_objects_calls_their_method():
    class Bag:
        def __init__(self) -> None:
            self.items: Dict[str, int] = {"a": 1}  # noqa: UP006

        def __delitem__(self, key: str) -> None:
            del self.items[key]

    def f() -> int:
        bag = Bag()
        del bag["a"]
        return len(bag.items)

    assert torch.jit.script(f)() == 0


def test_any_and_sum_take_lists_of_every_scalar():
    def f(a: List[float], b: List[str], c: List[complex]):  # noqa: UP006
        return any(a), any(b), sum(c)

    assert torch.jit.script(f)([0.0, 0.5], ["", ""], [1j, 2.0]) == (True, False, 2 + 1j)


def test_await_runs_its_function_when_the_result_is_asked_for():
    calls: List[int] = []  # noqa: UP006

    def python(n: int) -> int:
        calls.append(n)
        return n + 1

    waiting = torch.jit._awaitable(python, 4)
    assert calls == []
    assert torch.jit._awaitable_wait(waiting) == 5
    assert torch.jit._awaitable_wait(waiting) == 5
    assert calls == [4]

    def delayed(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    def f(x: torch.Tensor) -> torch.Tensor:
        waiting = torch.jit._awaitable(delayed, x)
        return torch.jit._awaitable_wait(waiting) + 1

    assert torch.equal(torch.jit.script(f)(torch.ones(2)), torch.full((2,), 3.0))


def test_number_of_unique_results_follows_constant_flags():
    def f(x):
        values = torch.unique(x)
        again, counts = torch.unique(x, return_counts=True)
        return values, again, counts

    x = torch.tensor([3, 1, 3, 2])
    values, again, counts = torch.jit.script(f)(x)
    assert values.tolist() == again.tolist() == [1, 2, 3]
    assert counts.tolist() == [1, 1, 2]


def test_item_becomes_the_number_that_a_variable_holds():
    def f(x: torch.Tensor) -> Optional[float]:  # noqa: UP045
        out: Optional[float] = None  # noqa: UP045
        if x.numel() == 1:
            out = x.item()
        return out

    assert torch.jit.script(f)(torch.tensor([2])) == 2.0


def test_empty_lists_and_texts_are_false():
    def f(x: List[int], y: str) -> List[bool]:  # noqa: UP006
        out: List[bool] = []  # noqa: UP006
        if not x:
            out.append(True)
        if y:
            out.append(False)
        return out

    assert torch.jit.script(f)([], "a") == [True, False]
    assert torch.jit.script(f)([1], "") == []


def test_annotated_variable_may_get_another_type_in_the_same_block():
    def f(x: torch.Tensor) -> List[torch.Tensor]:  # noqa: UP006
        parts: List[List[torch.Tensor]] = []  # noqa: UP006
        parts.append([x, x])
        parts = [torch.cat(p) for p in parts]
        return parts

    assert torch.jit.script(f)(torch.ones(2))[0].tolist() == [1.0] * 4


def test_norms_that_check_their_ranks_compile():
    layer = torch.nn.BatchNorm2d(2).eval()
    x = torch.rand(1, 2, 3, 3)
    assert torch.equal(torch.jit.script(layer)(x), layer(x))


def test_sizes_given_as_tensors_become_integers():
    def f(n, m):
        return torch.zeros(0, n, m).shape

    assert torch.jit.script(f)(torch.tensor(2), torch.tensor(3)) == [0, 2, 3]


def test_branches_that_return_the_same_value_return_it():
    @torch.jit.script
    def f(items: list[int], early: bool) -> list[int]:
        if early:
            return items
        items[0] = 7
        return items

    assert f([1], True) == [1]
    assert f([1], False) == [7]


def test_max_of_a_number_and_a_tensor_is_a_number():
    @torch.jit.script
    def f(x: torch.Tensor):
        return max(1, x.sum()), min(x.sum(), 2)

    assert f(torch.tensor([3, 4])) == (7, 2)


class Shadowing:
    """A class whose methods have the names of types, as sparse matrices of other packages do."""

    def __init__(self, value: int):
        self.value = value

    def int(self) -> int:
        return self.value

    def plus(self, other: int, more: Optional[int] = None) -> int:  # noqa: UP045
        return self.value + other + (0 if more is None else more)

    def same(self, other: torch.Tensor) -> bool:
        return isinstance(other, self.__class__)

    def itself(self) -> bool:
        return isinstance(self, self.__class__)


def test_methods_named_as_types_do_not_hide_them_and_class_of_an_object_is_a_type():
    def use(x: torch.Tensor) -> tuple[int, bool, bool]:
        made = Shadowing(3)
        return made.plus(made.int(), 1), made.same(x), made.itself()

    torch.jit.script(Shadowing)
    assert torch.jit.script(use)(torch.ones(1)) == (7, False, True)


class Tone(enum.Enum):
    LOW = 1
    HIGH = 5


def test_loops_and_comprehensions_go_through_an_enumeration():
    def before(limit: int):
        total = 0
        for tone in Tone:
            if tone.value == limit:
                break
            total += tone.value
        return total, [tone.name for tone in Tone]

    assert torch.jit.script(before)(5) == before(5) == (1, ["LOW", "HIGH"])


def test_dictionary_keeps_order_through_many_insertions_and_removals():
    def shuffle(n: int):
        d: dict[int, int] = {}
        for i in range(n):
            d[i * 7 % n] = i
            if i % 3 == 0:
                d.pop(i * 7 % n)
            if i % 5 == 4:
                d.popitem()
        d[-1] = 0
        return list(d.keys()), list(d.values()), len(d), 8 in d, d.get(3, -5)

    assert torch.jit.script(shuffle)(200) == shuffle(200)


def test_dictionary_that_is_a_queue_finds_what_was_not_removed():
    def drain(n: int):
        d: dict[str, int] = {}
        total = 0
        for i in range(n):
            d[str(i)] = i
            if i > 3:
                total += d.pop(str(i - 4))
        d.update({"x": 1})
        return total, d, list(d.items())

    assert torch.jit.script(drain)(300) == drain(300)


def test_lists_of_every_kind_are_copied_joined_cut_and_ordered():
    def work(a: list[int], b: list[float], c: list[bool], d: list[str]):
        a += a
        b.extend(b)
        a.sort(reverse=True)
        b.reverse()
        d.sort()
        two = c[::-1] + c[1:]
        return a, sorted(b), two, d * 2, a[-1:0:-2], max(a), min(a), a.index(2), d.copy()

    given = ([3, 1, 2], [0.5, -0.0, 0.0], [True, False], ["b", "a", "c"])
    wanted = work(*[list(v) for v in given])
    assert torch.jit.script(work)(*[list(v) for v in given]) == wanted


def test_items_of_lists_outlive_the_list():
    def last(n: int):
        rows = [[i, i + 1] for i in range(n)]
        x = [torch.full([1], float(i)) for i in range(n)]
        rows_of = rows[-1]
        y = x[-1]
        x.clear()
        rows.clear()
        return rows_of, y

    row, tensor = torch.jit.script(last)(3)
    assert row == [2, 3]
    assert tensor.item() == 2
