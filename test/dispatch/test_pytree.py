"""Trees of containers: flattening, rebuilding, mapping, paths and specs as text."""

import copy
import dataclasses
import json
import pickle
import sys
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import torch
from torch.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
pytree._register_namedtuple(Point, serialized_type_name="test_pytree.Point")

TREES = [
    (1, [1]),
    (None, [None]),
    ([], []),
    ([1, (2, {"a": 3})], [1, 2, 3]),
    (Point(1, [2, 3]), [1, 2, 3]),
    (OrderedDict(b=1, a=2), [1, 2]),
    (defaultdict(list, {"a": [1]}), [1]),
    (deque([1, 2], maxlen=3), [1, 2]),
]


@pytest.mark.parametrize(("tree", "leaves"), TREES, ids=repr)
def test_flatten_and_unflatten_are_inverse(tree, leaves):
    got, spec = pytree.tree_flatten(tree)
    assert got == leaves and spec.num_leaves == len(leaves)
    back = pytree.tree_unflatten(got, spec)
    assert back == tree and type(back) is type(tree)


def test_a_size_is_put_together_as_a_tuple_of_whatever_its_leaves_became():
    leaves, spec = pytree.tree_flatten(torch.Size([2, 3]))
    assert leaves == [2, 3] and pytree.tree_unflatten(leaves, spec) == (2, 3)
    assert pytree.tree_map(str, [torch.Size([2, 3])]) == [("2", "3")]


def test_named_results_of_operators_are_containers():
    result = torch.tensor([[1.0, 5.0]]).max(dim=1)
    leaves, spec = pytree.tree_flatten(result)
    assert [leaf.item() for leaf in leaves] == [5.0, 1]
    assert type(pytree.tree_unflatten(leaves, spec)) is type(result)


def test_map_applies_to_leaves_in_step():
    assert pytree.tree_map(lambda x, y: x + y, [1, {"a": 2}], [3, {"a": 4}]) == [4, {"a": 6}]
    assert pytree.tree_map_only(int, lambda x: x * 2, [1, "a", 2.0]) == [2, "a", 2.0]
    with pytest.raises(ValueError):
        pytree.tree_map(lambda x, y: x, [1, 2], [1])
    with pytest.raises(ValueError):
        pytree.tree_map(lambda x, y: x, [1], (1,))


def test_is_leaf_stops_the_descent():
    assert pytree.tree_leaves([(1, 2), 3], is_leaf=lambda t: isinstance(t, tuple)) == [(1, 2), 3]


def test_paths_lead_to_the_leaves():
    tree = {"a": [1, Point(2, 3)]}
    pairs = pytree.tree_leaves_with_path(tree)
    assert [pytree.keystr(path) for path, _ in pairs] == ["['a'][0]", "['a'][1].x", "['a'][1].y"]
    assert all(pytree.key_get(tree, path) == leaf for path, leaf in pairs)


@pytest.mark.parametrize("tree", [t for t, _ in TREES], ids=repr)
def test_specs_survive_as_text(tree):
    spec = pytree.tree_structure(tree)
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    assert hash(pytree.treespec_loads(pytree.treespec_dumps(spec))) == hash(spec)


def test_spec_is_printed_as_a_tree():
    assert str(pytree.tree_structure([1, {"a": 2}])) == (
        "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [*])])"
    )


def test_unflatten_with_wrong_number_of_leaves_raises():
    spec = pytree.tree_structure([1, 2])
    with pytest.raises(ValueError, match="has length 1"):
        pytree.tree_unflatten([1], spec)


def test_classes_can_be_registered():
    class Box:
        def __init__(self, item):
            self.item = item

    pytree.register_pytree_node(Box, lambda b: ([b.item], None), lambda items, _: Box(*items))
    try:
        assert pytree.tree_map(lambda x: x + 1, Box(1)).item == 2
        with pytest.raises(ValueError, match="already registered"):
            pytree.register_pytree_node(Box, None, None)
    finally:
        pytree._deregister_pytree_node(Box)
    assert pytree.tree_is_leaf(Box(1))


def test_dataclasses_can_be_registered():
    @dataclasses.dataclass
    class Pair:
        a: object
        b: object = None

    pytree.register_dataclass(Pair)
    try:
        assert pytree.tree_map(lambda x: -x, Pair(1)) == Pair(-1)
    finally:
        pytree._deregister_pytree_node(Pair)


def test_predicates_look_at_leaves():
    assert pytree.tree_all(lambda x: x > 0, [1, (2,)])
    assert pytree.tree_any(lambda x: x > 1, [1, (2,)])
    assert not pytree.tree_any_only(str, lambda s: True, [1])
    assert pytree.arg_tree_leaves(1, [2], a={"b": 3}) == [1, 2, 3]


def test_flatten_of_a_tree_deeper_than_the_stack_raises():
    tree = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(RecursionError, match="flattening a tree"):
        pytree.tree_flatten(tree)
    while tree:
        tree = tree[0]


def test_list_emptied_by_is_leaf_is_walked_as_it_is_then():
    tree = [1, 2, 3]

    def is_leaf(value):
        tree.clear()
        return False

    leaves, spec = pytree.tree_flatten(tree, is_leaf)
    assert leaves == [] and spec.num_leaves == 0


def test_flatten_function_that_returns_no_pair_is_refused():
    class Odd:
        pass

    pytree.register_pytree_node(Odd, lambda odd: ([1], None, 3), lambda children, _: Odd())
    try:
        with pytest.raises(ValueError, match="must return"):
            pytree.tree_flatten([Odd()])
    finally:
        pytree._deregister_pytree_node(Odd)


def test_spec_survives_pickling_and_copying():
    spec = pytree.tree_structure({"a": [1, (2, None)], "b": Point(1, 2)})
    for other in (pickle.loads(pickle.dumps(spec)), copy.deepcopy(spec)):
        assert other == spec and other.num_leaves == 5
    leaf = pytree.tree_structure(1)
    assert pickle.loads(pickle.dumps(leaf)).is_leaf()


def test_spec_of_things_that_are_no_specs_is_refused():
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        pytree.TreeSpec(list, None, [1])
    with pytest.raises(TypeError, match="instance of TreeSpec"):
        pytree.tree_unflatten([1], "spec")


def test_spec_whose_children_are_changed_still_raises_only():
    spec = pytree.tree_structure([1, 2])
    spec.children_specs[0] = 7
    with pytest.raises(TypeError):
        pytree.tree_unflatten([1, 2], spec)
    spec.children_specs[0] = pytree.tree_structure([1, 2, 3])
    with pytest.raises(ValueError):
        pytree.tree_unflatten([1, 2], spec)


def test_loading_a_spec_imports_no_module_that_the_text_names():
    leaf = {"type": None, "context": None, "children_spec": []}
    enumeration = {"__enum__": True, "class": "antigravity:X", "name": "y"}
    context = json.dumps([enumeration])
    node = {"type": "builtins.dict", "context": context, "children_spec": [leaf]}
    with pytest.raises(NotImplementedError, match="import the module 'antigravity' before"):
        pytree.treespec_loads(json.dumps([1, node]))
    assert "antigravity" not in sys.modules
