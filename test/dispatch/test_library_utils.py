"""torch._library.utils, scoped libraries, and specs of trees as text."""

import collections
import enum

import pytest

import torch
from torch._library import utils
from torch.utils import _pytree as pytree


@pytest.mark.parametrize(
    ("schema", "functional"),
    [
        ("op(Tensor x) -> Tensor", True),
        ("op(Tensor(a) x) -> Tensor", True),
        ("op(Tensor(a!) x) -> Tensor", False),
        ("op(Tensor(a) x) -> Tensor(a)", False),
        ("op(Tensor x) -> ()", False),
    ],
)
def test_a_functional_schema_writes_nothing_and_returns_something_new(schema, functional):
    assert utils.is_functional_schema(schema) is functional
    assert utils.is_functional_schema(torch._C.parse_schema(schema)) is functional


def test_kinds_of_types_are_told_apart():
    schema = torch._C.parse_schema("op(Tensor? a, Tensor?[]? b, int[] c) -> ()")
    one, many, numbers = (argument.type for argument in schema.arguments)
    assert utils.is_tensor_like_type(one) and not utils.is_tensorlist_like_type(one)
    assert utils.is_tensorlist_like_type(many)
    assert not utils.is_tensorlist_like_type(numbers)


def test_operators_are_found_by_name_and_known_by_what_they_write():
    assert utils.lookup_op("aten::add.Tensor") is torch.ops.aten.add.Tensor
    assert utils.lookup_op("aten::sin") is torch.ops.aten.sin.default
    assert utils.is_builtin(torch.ops.aten.sin.default)
    assert utils.mutates_and_returns_first_arg(torch.ops.aten.add_.Tensor)
    assert not utils.mutates_and_returns_first_arg(torch.ops.aten.add.Tensor)
    with pytest.raises(ValueError, match="of the form"):
        utils.parse_namespace("add")


def test_defaults_fill_up_a_call():
    schema = torch.ops.aten.add.Tensor._schema
    args, kwargs = utils.fill_defaults(schema, (1, 2), {})
    assert (args, kwargs) == ((1, 2), {"alpha": 1})
    pairs = utils.zip_schema(schema, (1,), {"other": 2})
    assert [(argument.name, value) for argument, value in pairs] == [("self", 1), ("other", 2)]


def test_a_scoped_library_takes_back_what_it_defined():
    with torch.library._scoped_library("scoped_library_test", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: 2 * x, "CPU")
        assert torch.ops.scoped_library_test.twice(torch.ones(1)).item() == 2
    assert not hasattr(torch.ops.scoped_library_test, "twice")


class Colour(enum.Enum):
    """A context that JSON does not know."""

    RED = 1


Point = collections.namedtuple("Point", ["x", "y"])


def test_specs_as_text_hold_enumerations():
    spec = pytree.TreeSpec(dict, [Colour.RED], [pytree.LeafSpec()])
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec


def test_specs_as_text_name_the_namedtuples_that_were_registered():
    spec = pytree.tree_structure(Point(1, 2))
    with pytest.raises(NotImplementedError, match="register using `_register_namedtuple`"):
        pytree.treespec_dumps(spec)
    pytree._register_namedtuple(Point, serialized_type_name="test.Point")
    assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(ValueError, match="is the name of"):
        pytree._register_namedtuple(
            collections.namedtuple("Other", ["x"]), serialized_type_name="test.Point"
        )
    with pytest.raises(TypeError, match="not a class made by namedtuple"):
        pytree._register_namedtuple(int, serialized_type_name="test.int")


def test_the_old_registration_of_nodes_warns():
    class Node:
        pass

    for expected in ("register_pytree_node is deprecated", "already registered"):
        with pytest.warns(Warning, match=expected):
            pytree._register_pytree_node(Node, lambda n: ([], None), lambda c, _: Node())
    pytree._deregister_pytree_node(Node)
