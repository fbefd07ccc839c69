"""The guard tree: conditions, accessors, state shared between leaves, reports, memory."""

from __future__ import annotations

import enum
import functools
import gc
import sys
import threading
import types
import weakref

import pytest
from torch._C._dynamo import guards

import torch


class Holder:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)


def root_for(*names: str) -> tuple[guards.RootGuardManager, list[guards.GuardManager]]:
    root = guards.RootGuardManager()
    made = [root.frame_local_manager((n, i), f"L[{n!r}]") for i, n in enumerate(names)]
    return root, made


# ---- conditions


@pytest.mark.parametrize(
    ("guard", "good", "bad"),
    [
        (guards.TYPE_MATCH(id(int), ["t"]), [1, 5], ["a", True, 1.0]),
        (guards.EQUALS_MATCH(4, ["e"]), [4], [5, 4.0, "4", True]),
        (guards.EQUALS_MATCH(0.0, ["e"]), [0.0], [-0.0, 0, False]),
        (guards.EQUALS_MATCH((1, "a"), ["e"]), [(1, "a")], [(1,), [1, "a"]]),
        (guards.NONE_MATCH(["n"]), [None], [0, False]),
        (guards.NOT_NONE(["n"]), [0, False], [None]),
        (guards.TRUE_MATCH(["n"]), [True], [1, False]),
        (guards.FALSE_MATCH(["n"]), [False], [0, None]),
        (guards.LENGTH_CHECK(2, ["l"]), [[1, 2], (1, 2), "ab", {1: 2, 3: 4}], [[], 5, None]),
        (guards.DICT_CONTAINS(True, "a", ["c"]), [{"a": 1}], [{}, {"b": 1}, 5]),
        (guards.DICT_CONTAINS(False, "a", ["c"]), [{"b": 1}, {}], [{"a": 1}]),
        (guards.DICT_KEYS(["a", "b"], ["k"]), [{"a": 1, "b": 2}], [{"b": 1, "a": 2}, {"a": 1}, 3]),
        (guards.NO_HASATTR("x", ["h"]), [Holder(y=1), 3], [Holder(x=1)]),
        (guards.HASATTR("x", ["h"]), [Holder(x=1)], [Holder(y=1), 3]),
        (guards.FLOAT_IS_NAN(["n"]), [float("nan")], [1.0, 1, None]),
        (guards.TUPLE_ITERATOR_LEN(2, 0, ["i"]), [iter((1, 2))], [iter((1,)), iter([1, 2]), 1]),
        (guards.RANGE_ITERATOR_MATCH(iter(range(3)), ["r"]), [iter(range(3))], [iter(range(4)), 3]),
        (guards.LAMBDA_GUARD(lambda x: x > 2, ["l"]), [3], [2, "a", None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_condition_holds_for_what_it_says_and_nothing_else(
    guard: object, good: list[object], bad: list[object]
) -> None:
    for value in good:
        assert guard(value), value
        assert guard.check_verbose(value).result
    for value in bad:
        assert not guard(value), value
        assert guard.check_verbose(value).verbose_code_parts


def test_object_match_holds_weakly_and_never_for_a_successor() -> None:
    one = Holder()
    guard = guards.OBJECT_MATCH(one, ["x is one"])
    assert guard(one) and not guard(Holder())
    gone = weakref.ref(one)
    del one
    assert gone() is None
    assert not any(guard(Holder()) for _ in range(100)) and not guard(None)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (torch.ones(2, 4), "size mismatch at index 1. expected 3, actual 4"),
        (torch.ones(3, 2).t(), "stride mismatch at index 0. expected 3, actual 1"),
        (torch.ones(2, 3, dtype=torch.double), "dtype mismatch. expected Float, actual Double"),
        (torch.ones(6), "rank mismatch. expected 2, actual 1"),
        (torch.ones(2, 3, requires_grad=True), "requires_grad mismatch. expected requires_grad=0"),
        (torch.ones(2, 3, device="meta"), "device index mismatch"),
        (torch.nn.Parameter(torch.ones(2, 3)), "expected type of 'x' to be a tensor type"),
        (3, "but found <class 'int'>"),
    ],
)
def test_tensor_match_names_the_first_difference(other: object, reason: str) -> None:
    example = torch.ones(2, 3)
    guard = guards.TENSOR_MATCH(example, [2, 3], [3, 1], "x", ["check_tensor(x)"])
    assert guard(torch.zeros(2, 3))
    assert not guard(other)
    assert reason in guard.check_verbose(other).verbose_code_parts[0]


def test_tensor_match_with_none_takes_any_number_there() -> None:
    guard = guards.TENSOR_MATCH(torch.ones(2, 3), [None, 3], [3, 1], "x", ["check"])
    assert guard(torch.ones(7, 3)) and not guard(torch.ones(2, 4))


def test_global_state_names_what_changed() -> None:
    guard = guards.GLOBAL_STATE(["global"])
    assert guard(None)
    with torch.no_grad():
        assert not guard(None)
        assert guard.check_verbose(None).verbose_code_parts == ["GLOBAL_STATE changed: grad_mode "]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert "autocast" in guard.check_verbose(None).verbose_code_parts[0]
    assert guard(None)


def test_dict_version_changes_with_each_write() -> None:
    space = {"a": 1}
    guard = guards.DICT_VERSION(space, ["v"])
    assert guard(space)
    space["b"] = 2
    assert not guard(space) and not guard({"a": 1}) and not guard(3)


# ---- the tree


def test_accessors_reach_every_part_of_a_value() -> None:
    class Base:
        shared = 7

    class Derived(Base):
        pass

    cell_value = 11

    def fn(a: int, b: int = 5, *, c: int = 6) -> int:
        return cell_value

    value = Derived()
    value.items = [1, (2, 3), {"k": 4}]
    value.ref = weakref.ref(Base)
    value.fn = fn
    value.t = torch.ones(2, 3)[:, 1:]
    cases = [
        (lambda m: m.getattr_manager("shared"), 7),
        (lambda m: m.get_generic_dict_manager().dict_getitem_manager("items")
            .list_getitem_manager(0), 1),
        (lambda m: m.getattr_manager("items").getitem_manager(1).tuple_getitem_manager(1), 3),
        (lambda m: m.getattr_manager("items").getitem_manager(2).dict_getitem_manager("k"), 4),
        (lambda m: m.getattr_manager("items").getitem_manager(2).dict_key_manager(0), "k"),
        (lambda m: m.type_manager().type_mro_manager().tuple_getitem_manager(1)
            .type_dict_manager("shared"), 7),
        (lambda m: m.getattr_manager("ref").weakref_call_manager().getattr_manager("shared"), 7),
        (lambda m: m.getattr_manager("fn").func_defaults_manager().tuple_getitem_manager(0), 5),
        (lambda m: m.getattr_manager("fn").func_kwdefaults_manager().dict_getitem_manager("c"), 6),
        (lambda m: m.getattr_manager("fn").func_closure_manager().tuple_getitem_manager(0)
            .cell_contents_manager(), 11),
        (lambda m: m.getattr_manager("t").tensor_size_manager(1), 2),
        (lambda m: m.getattr_manager("t").tensor_stride_manager(0), 3),
        (lambda m: m.getattr_manager("t").tensor_storage_offset_manager(), 1),
        (lambda m: m.getattr_manager("t").grad_manager(), None),
        (lambda m: m.lambda_manager(lambda v: v.items[0] + 1), 2),
    ]  # fmt: skip
    for reach, expected in cases:
        root, (manager,) = root_for("x")
        reach(manager).add_equals_match_guard(expected, ["expected"])
        assert root.check({"x": value}), expected
        root, (manager,) = root_for("x")
        reach(manager).add_equals_match_guard(object(), ["other"])
        assert not root.check({"x": value})
        assert not root.check({"x": 3}) and not root.check({})
        assert not root.check_verbose({"x": 3}).result


def test_same_access_gives_the_same_manager() -> None:
    root, (manager,) = root_for("x")
    assert manager.getattr_manager("a") is manager.getattr_manager("a")
    assert manager.getattr_manager("a") is not manager.getattr_manager("b")
    assert manager.getitem_manager(1) is not manager.getitem_manager(True)
    assert [type(a).__name__ for a in manager.get_accessors()] == [
        "GetAttrGuardAccessor", "GetAttrGuardAccessor", "GetItemGuardAccessor",
        "GetItemGuardAccessor",
    ]  # fmt: skip
    assert root.get_child_managers()[0] is manager and manager.get_source() == "L['x']"


def test_what_failed_is_checked_first_the_next_time() -> None:
    root, managers = root_for("a", "b", "c")
    for manager in managers:
        manager.add_equals_match_guard(1, ["one"])
    for _ in range(3):
        assert not root.check({"a": 1, "b": 1, "c": 2})
    assert root.get_accessors()[0].guard_manager() is managers[2]
    assert managers[2].fail_count() == 3 and managers[0].fail_count() == 0
    assert root.check({"a": 1, "b": 1, "c": 1})


def test_verbose_check_names_the_failing_source() -> None:
    root, (manager,) = root_for("x")
    manager.getattr_manager("n", "L['x'].n").add_equals_match_guard(3, ["L['x'].n == 3"])
    info = root.check_verbose({"x": Holder(n=4)})
    assert (info.result, info.verbose_code_parts, info.source) == (
        False,
        ["L['x'].n == 3"],
        "L['x'].n",
    )
    info = root.check_verbose({"x": Holder()})
    assert not info.result and "no attribute 'n'" in info.verbose_code_parts[0]


def test_aliasing_is_checked_across_values() -> None:
    root, (x, y) = root_for("x", "y")
    guards.install_object_aliasing_guard(x, y, ["x is y"])
    one, two = Holder(), Holder()
    assert root.check({"x": one, "y": one}) and not root.check({"x": one, "y": two})
    root, managers = root_for("x", "y", "z")
    guards.install_no_tensor_aliasing_guard(managers, ["x", "y", "z"], ["no aliasing"])
    a, b, c = torch.ones(1), torch.ones(1), torch.ones(1)
    for _ in range(3):
        assert root.check({"x": a, "y": b, "z": c})
        assert not root.check({"x": a, "y": b, "z": a})
    assert "Duplicate" in root.check_verbose({"x": a, "y": a, "z": b}).verbose_code_parts[0]


def test_shape_program_relates_sizes_and_integers() -> None:
    # x.size(0) == y.stride(0) * n and n >= 2
    steps = [("slot", 0), ("slot", 1), ("slot", 2), ("mul", 0), ("eq", 0), ("assert", 0),
             ("slot", 2), ("const", 2), ("ge", 0), ("assert", 0)]  # fmt: skip
    program = guards._shape_program(steps, 3)
    root, (x, y, n) = root_for("x", "y", "n")
    x.add_shape_tensor_guard(program, ((0, 0, 0),), ["x sizes"])
    y.add_shape_tensor_guard(program, ((1, 1, 0),), ["y sizes"])
    n.add_shape_int_guard(program, 2, ["n"])
    root.add_symbolic_shape_guard(program, 0, ["first", "second"])
    good = {"x": torch.ones(6), "y": torch.ones(2, 3), "n": 2}
    assert root.check(good)
    assert not root.check({**good, "x": torch.ones(5)})
    assert not root.check({**good, "x": torch.ones(3), "n": 1})
    assert not root.check({**good, "n": 2.0}) and not root.check({**good, "n": 1 << 70})
    verbose = root.check_verbose({**good, "x": torch.ones(3), "n": 1})
    assert verbose.verbose_code_parts == ["second"]


@pytest.mark.parametrize("steps", [[("add", 0)], [("slot", 5)], [("what", 0)], [("assert", 0)]])
def test_shape_program_that_cannot_run_is_refused(steps: list[tuple[str, int]]) -> None:
    with pytest.raises(ValueError, match="shape program"):
        guards._shape_program(steps, 1)


def test_dict_manager_checks_pairs_in_order_and_refuses_other_guards() -> None:
    root = guards.RootGuardManager()
    example = {"a": 1, "b": 2}
    manager = root.getitem_manager("d", "", example, 2)
    assert isinstance(manager, guards.DictGuardManager)
    manager.get_key_manager(1).add_equals_match_guard("b", ["second key"])
    manager.get_value_manager(1).add_equals_match_guard(2, ["second value"])
    assert root.check({"d": example}) and root.check({"d": {"z": 0, "b": 2}})
    assert not root.check({"d": {"b": 2, "a": 1}}) and not root.check({"d": {"b": 2}})
    with pytest.raises(RuntimeError):
        manager.add_id_match_guard(1, ["id"])
    with pytest.raises(RuntimeError):
        manager.getitem_manager("a")


def test_clone_leaves_out_what_the_function_refuses() -> None:
    root, (x, y) = root_for("x", "y")
    x.add_equals_match_guard(1, ["x"])
    y.add_equals_match_guard(2, ["y"])
    only_y = root.clone_manager(lambda m: "x" not in m.get_source())
    assert only_y.check({"x": 5, "y": 2}) and not only_y.check({"x": 1, "y": 3})


@pytest.mark.parametrize("kind", ["object", "dict"])
def test_unchanged_dictionaries_are_skipped_and_every_write_is_noticed(kind: str) -> None:
    def part(manager: guards.GuardManager, name: str) -> guards.GuardManager:
        return (
            manager.getattr_manager(name)
            if kind == "object"
            else manager.dict_getitem_manager(name)
        )

    value = (
        Holder(n=3, text="a", items=[1])
        if kind == "object"
        else {"n": 3, "text": "a", "items": [1]}
    )
    space = value.__dict__ if kind == "object" else value
    root, (manager,) = root_for("x")
    part(manager, "n").add_equals_match_guard(3, ["n"])
    part(manager, "text").add_equals_match_guard("a", ["text"])
    part(manager, "items").add_length_check_guard(1, ["items"])
    for _ in range(3):
        assert root.check({"x": value})
    space["items"].append(2)
    assert not root.check({"x": value}), "a list changes without a write to the dictionary"
    space["items"].pop()
    assert root.check({"x": value})
    space["n"] = 4
    assert not root.check({"x": value}) and not root.check({"x": value})
    space["n"] = 3
    assert root.check({"x": value})
    part(manager, "text").add_equals_match_guard("b", ["text"])
    assert not root.check({"x": value}), "a guard that was added is looked at"
    other = (
        Holder(n=5, text="a", items=[1])
        if kind == "object"
        else {"n": 5, "text": "a", "items": [1]}
    )
    assert not root.check({"x": other})


def test_class_that_gets_a_property_is_noticed() -> None:
    class A:
        pass

    a = A()
    a.n = 3
    root, (manager,) = root_for("x")
    manager.getattr_manager("n").add_equals_match_guard(3, ["n"])
    assert root.check({"x": a}) and root.check({"x": a})
    A.n = property(lambda self: 4)
    assert not root.check({"x": a})


def test_part_that_vanishes_while_it_is_checked_stays_alive() -> None:
    class Hostile:
        def __eq__(self, other: object) -> bool:
            holder.__dict__.clear()
            items.clear()
            return True

        __hash__ = None

    holder, items = Holder(n=Hostile()), [Hostile()]
    root, (x, y) = root_for("x", "y")
    x.getattr_manager("n").add_equals_match_guard(Hostile(), ["n"])
    y.list_getitem_manager(0).add_equals_match_guard(Hostile(), ["n"])
    root.check({"x": holder, "y": items})
    assert not holder.__dict__ and not items


# ---- robustness


def test_errors_in_the_programs_code_count_as_failure() -> None:
    class Bad:
        def __eq__(self, other: object) -> bool:
            raise KeyError("eq")

        __hash__ = None

        @property
        def prop(self) -> int:
            raise RuntimeError("prop")

    root, (manager,) = root_for("x")
    manager.add_equals_match_guard(Bad(), ["eq"])
    assert not root.check({"x": Bad()})
    root, (manager,) = root_for("x")
    manager.getattr_manager("prop").add_not_none_guard(["p"])
    assert not root.check({"x": Bad()})
    assert "RuntimeError: prop" in root.check_verbose({"x": Bad()}).verbose_code_parts[0]


def test_check_within_a_check_keeps_the_outer_one_right() -> None:
    root, (a, b, c) = root_for("a", "b", "c")
    inner = []

    def again(value: object) -> bool:
        if not inner:
            inner.append(True)
            inner[0] = root.check({"a": 1, "b": 1, "c": 2})
        return True

    a.add_lambda_guard(again, ["a"])
    b.add_equals_match_guard(1, ["b"])
    c.add_equals_match_guard(1, ["c"])
    assert not root.check({"a": 1, "b": 2, "c": 1}) and inner == [False]


def test_wrong_arguments_raise_type_errors() -> None:
    root = guards.RootGuardManager()
    program = guards._shape_program([("slot", 0), ("assert", 0)], 1)
    for call in (
        lambda: root.add_type_match_guard(1),
        lambda: root.add_type_match_guard("a", ["x"]),
        lambda: root.add_tensor_match_guard(1, [], [], "x", ["x"]),
        lambda: root.getattr_manager(),
        lambda: root.frame_local_manager("x"),
        lambda: guards.LeafGuard(),
        lambda: guards.install_object_aliasing_guard(root, 3, []),
        lambda: root.add_lambda_guard(lambda x: x),
        lambda: root.add_shape_tensor_guard(program, (3,), ["x"]),
    ):
        with pytest.raises(TypeError):
            call()


def test_places_that_do_not_exist_fail_or_are_refused() -> None:
    root, (manager,) = root_for("x")
    manager.list_getitem_manager(-1).add_not_none_guard(["n"])
    assert not root.check({"x": [1]})
    program = guards._shape_program([("slot", 0), ("assert", 0)], 1)
    with pytest.raises(ValueError, match="slot"):
        manager.add_shape_int_guard(program, 1, ["n"])
    with pytest.raises(ValueError, match="SHAPE_TENSOR"):
        manager.add_shape_tensor_guard(program, ((0, 3, 0),), ["n"])


def test_tree_frees_everything_it_held() -> None:
    constant = (object(), object())
    before = sys.getrefcount(constant)
    root, (manager,) = root_for("x")
    manager.getattr_manager("y").add_equals_match_guard(constant, ["c"])
    manager.add_lambda_guard(functools.partial(lambda r, x: True, root), ["cycle"])
    assert root.check({"x": types.SimpleNamespace(y=constant)})
    del root, manager
    gc.collect()
    assert sys.getrefcount(constant) == before


def test_checks_from_threads_agree() -> None:
    root, managers = root_for("x", "y")
    guards.install_no_tensor_aliasing_guard(managers, ["x", "y"], ["n"])
    a, b = torch.ones(1), torch.ones(1)
    wrong: list[str] = []

    def work() -> None:
        for _ in range(2000):
            if not root.check({"x": a, "y": b}) or root.check({"x": a, "y": a}):
                wrong.append("wrong")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


class Color(enum.Enum):
    RED = "red"


def test_sizes_of_tensors_under_keys_without_python_text_are_guarded() -> None:
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounter()
    fn = torch.compile(lambda d: d[(Color.RED, "k")] * 2, backend=counter, dynamic=True)
    for size in (3, 4, 1):
        given = torch.rand(size, 2)
        assert torch.equal(fn({(Color.RED, "k"): given}), given * 2)
    # A size of one is another graph.
    assert counter.frame_count == 2
