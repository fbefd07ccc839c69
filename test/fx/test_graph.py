"""The list of nodes: order, names, users, insertion, erasing, finding, copying, lint. Random
edits are compared with a model in plain Python lists and sets."""

import copy
import gc
import operator
import pickle
import random
import warnings
import weakref

import pytest

import torch
from torch import fx


def chain(count: int) -> tuple[fx.Graph, list[fx.Node]]:
    graph = fx.Graph()
    nodes = [graph.placeholder("x")]
    for _ in range(count):
        nodes.append(graph.call_function(torch.relu, (nodes[-1],)))
    return graph, nodes


@pytest.mark.parametrize(
    "target, name",
    [
        ("x", "x"),
        ("*args", "_args"),
        ("**kw", "_kw"),
        ("layer1.0.convRelu", "layer1_0_conv_relu"),
        ("BatchNorm2d", "batch_norm2d"),
        ("HTTPServer", "httpserver"),
        ("list", "list_1"),
        ("if", "if_1"),
        ("inf", "inf_1"),
        ("1a", "_1a"),
        ("__add__", "add"),
        ("", "_unnamed"),
        ("a_01", "a_01"),
    ],
)
def test_name_of_target_is_an_identifier(target, name):
    assert fx.Graph().call_method(target, ()).name == name


def test_names_taken_are_numbered_from_the_last_one():
    graph = fx.Graph()
    names = [graph.call_method(t, ()).name for t in ["x", "x", "x_1", "x", "a_1_2", "a_1_2", "x_9"]]
    assert names == ["x", "x_1", "x_2", "x_3", "a_1_2", "a_1_3", "x_9"]
    assert graph.call_method("x_9", ()).name == "x_10"


def test_args_become_immutable_and_keep_structure():
    graph, (x, y) = chain(1)
    node = graph.call_function(torch.cat, ([x, (y, {"k": x})], slice(x, None)), {"dim": [1]})
    assert node.args == ([x, (y, {"k": x})], slice(x, None)) and node.kwargs == {"dim": [1]}
    for edit in (
        lambda: node.args[0].append(1),
        lambda: node.args[0].__setitem__(0, 1),
        lambda: node.args[0][1][1].update(a=1),
        lambda: node.kwargs.pop("dim"),
    ):
        with pytest.raises(TypeError, match="does not support mutation"):
            edit()
    assert node.all_input_nodes == [x, y] and list(x.users) == [y, node]


def test_named_tuples_keep_their_class():
    graph, (x,) = chain(0)
    pair = torch.max(torch.ones(2, 2), 0)
    size = graph.call_function(torch.relu, (torch.Size([1, 2]), type(pair)((x, 3))))
    assert type(size.args[0]) is tuple and size.args[1][0] is x


def test_users_follow_arguments():
    _graph, (x, y, z) = chain(2)
    z.args = (x, [x, y])
    assert list(x.users) == [y, z] and list(y.users) == [z]
    z.kwargs = {"a": y}
    z.args = (x,)
    assert list(y.users) == [z]
    z.update_kwarg("a", 1)
    assert not y.users
    z.insert_arg(0, y)
    assert z.args == (y, x)
    z.update_arg(1, 5)
    assert z.args == (y, 5) and list(x.users) == [y]
    with pytest.raises(AssertionError, match="insert_args index"):
        z.insert_arg(9, 1)
    with pytest.raises(IndexError):
        z.update_arg(9, 1)


def test_replace_all_uses_changes_users_and_reports_them():
    graph, (x, y, z) = chain(2)
    w = graph.call_function(torch.add, (y, y), {"other": [y, x]})
    assert y.replace_all_uses_with(x) == [z, w]
    assert w.args == (x, x) and w.kwargs == {"other": [x, x]} and not y.users
    assert x.replace_all_uses_with(y, lambda user: user is w) == [w]
    assert list(x.users) == [y, z] and list(y.users) == [w]
    w.replace_input_with(y, z)
    assert w.args == (z, z) and not y.users


def test_nodes_are_inserted_where_asked():
    graph, (x, y) = chain(1)
    with graph.inserting_before(y):
        a, b = graph.call_function(torch.neg, (x,)), graph.call_function(torch.neg, (x,))
    with graph.inserting_after(x):
        c, d = graph.call_function(torch.neg, (x,)), graph.call_function(torch.neg, (x,))
    with graph.inserting_before():
        first = graph.placeholder("first")
    last = graph.call_function(torch.neg, (x,))
    assert list(graph.nodes) == [first, x, d, c, a, b, y, last]
    assert list(reversed(graph.nodes)) == [last, y, b, a, c, d, x, first]
    assert first < x < d < last and not last < first and max(graph.nodes) is last
    y.append(first)
    x.prepend(last)
    assert list(graph.nodes) == [last, x, d, c, a, b, y, first] and len(graph.nodes) == 8
    assert last < x and first > y and x.next is d and x.prev is last
    with pytest.raises(AssertionError, match="different Graph"):
        x.prepend(chain(0)[1][0])
    with pytest.raises(AssertionError):
        graph.inserting_before(chain(0)[1][0])


def test_many_insertions_at_one_place_keep_the_order():
    graph, (x, y) = chain(1)
    with graph.inserting_before(y):
        before = [graph.call_function(torch.neg, (x,)) for _ in range(5000)]
    with graph.inserting_after(x):
        after = [graph.call_function(torch.neg, (x,)) for _ in range(5000)]
    expected = [x, *reversed(after), *before, y]
    assert list(graph.nodes) == expected and sorted(before + after + [y, x]) == expected


def test_erased_nodes_leave_the_graph_and_iteration_goes_on():
    graph, nodes = chain(4)
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(nodes[1])
    with pytest.raises(RuntimeError, match="wrong graph"):
        fx.Graph().erase_node(nodes[4])
    seen = []
    for node in reversed(graph.nodes):
        seen.append(node)
        if node.op != "placeholder":
            graph.erase_node(node)
    assert seen == nodes[::-1] and list(graph.nodes) == nodes[:1] and nodes[4].args == (None,)
    with pytest.warns(UserWarning, match="already erased"):
        graph.erase_node(nodes[4])


def test_insertion_survives_the_erasure_of_its_anchor():
    graph, (x, y, z) = chain(2)
    with graph.inserting_before(z):
        z.replace_all_uses_with(y)
        graph.erase_node(z)
        made = graph.call_function(torch.neg, (y,))
    assert list(graph.nodes) == [x, y, made]
    assert list(graph.nodes)[-1] is made and graph.call_function(torch.neg, (y,)) > made


def test_find_nodes_follows_edits():
    graph, (x, y, z) = chain(2)
    method = graph.call_method("relu", (z,))
    assert graph.find_nodes(op="call_function", target=torch.relu) == [y, z]
    assert graph.find_nodes(op="placeholder") == [x]
    y.target = torch.neg
    method.target = "neg"
    with graph.inserting_before(y):
        early = graph.call_function(torch.relu, (x,))
    assert graph.find_nodes(op="call_function", target=torch.relu) == [early, z]
    assert graph.find_nodes(op="call_method", target="neg") == [method]
    assert graph.find_nodes(op="call_method", target="relu") == []
    graph.erase_node(early)
    assert graph.find_nodes(op="call_function", target=torch.relu) == [z]
    with pytest.raises(TypeError):
        graph.find_nodes(target=torch.relu)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda g: g.create_node("foo", "x"), AssertionError, "not in _legal_ops"),
        (lambda g: g.create_node("call_function", "x"), ValueError, "a Callable is expected"),
        (lambda g: g.create_node("call_method", torch.relu), ValueError, "a str is expected"),
        (lambda g: g.create_node("call_method", "x", [1]), AssertionError, "args must be a tuple"),
        (lambda g: g.create_node("call_method", "x", (), [1]), AssertionError, "must be a dict"),
        (lambda g: g.create_node("call_method"), TypeError, "target"),
        (lambda g: g.create_node(1, "x"), TypeError, "op must be a str"),
        (lambda g: g.create_node("call_method", "x", nothing=1), TypeError, "nothing"),
        (lambda g: fx.map_arg(1, 2), AssertionError, "must be a callable"),
    ],
)
def test_wrong_nodes_are_refused(make, error, text):
    graph = fx.Graph()
    with pytest.raises(error, match=text):
        make(graph)
    assert len(graph.nodes) == 0


def test_nodes_that_stand_in_no_graph_are_harmless():
    graph, (x, y) = chain(1)
    bare = fx.Node.__new__(fx.Node)
    assert bare.args == () and bare.kwargs == {} and repr(bare) == "" and bare.next is bare
    loose = fx.Node(graph, "loose", "call_function", torch.relu, (x,), {})
    assert list(x.users) == [y, loose] and len(graph.nodes) == 2 and loose not in graph.nodes
    for insert in (lambda: loose.prepend(y), lambda: bare.append(x), lambda: bare.prepend(bare)):
        with warnings.catch_warnings(), pytest.raises((RuntimeError, AssertionError, UserWarning)):
            warnings.simplefilter("error")
            insert()
    with graph.inserting_before(loose), pytest.raises(RuntimeError, match="stands in no graph"):
        graph.call_function(torch.neg, (x,))
    graph.erase_node(y)
    with pytest.raises(RuntimeError, match="stands in no graph"):
        y.prepend(x)
    for wrong in (lambda: setattr(x, "op", 3), lambda: setattr(x, "users", 3), lambda: x.prepend()):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(AttributeError):
        del x.name
    with pytest.raises(ValueError, match="a Callable is expected"):
        fx.Node(graph, "loose", "call_function", "text", (), {})
    assert [n.name for n in graph.nodes] == ["x"]
    graph.lint()


def test_args_nested_beyond_the_recursion_limit_raise():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        fx.Graph().call_function(torch.relu, (deep,))
    while deep:  # freed level by level
        deep = deep.pop()


@pytest.mark.parametrize(
    "spoil, text",
    [
        (lambda g, n: n[0].prepend(n[1]), "before it has been defined"),
        (lambda g, n: setattr(n[2], "name", "relu"), "redefined name"),
        (lambda g, n: setattr(n[1], "args", (chain(0)[1][0],)), "does not belong to this Graph"),
        (lambda g, n: setattr(n[1], "op", "strange"), "unknown opcode"),
        (lambda g, n: n[0].users.clear(), "not among its users"),
    ],
)
def test_lint_finds_faults(spoil, text):
    graph, nodes = chain(2)
    graph.lint()
    spoil(graph, nodes)
    with pytest.raises(RuntimeError, match=text):
        graph.lint()


def test_lint_checks_targets_of_the_module():
    module = fx.GraphModule(torch.nn.Module(), fx.Graph())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        node = module.graph.call_module("missing.part")
    assert "no underlying reference" in str(caught[0].message)
    with pytest.raises(RuntimeError, match="nonexistent attribute"):
        module.graph.lint()
    module.graph.erase_node(node)
    module.scale = 3
    module.graph.call_module("scale")
    with pytest.raises(RuntimeError, match=r"does not reference an nn\.Module"):
        module.graph.lint()


def test_dead_code_goes_and_side_effects_stay():
    graph, (x, y, z) = chain(2)
    dead = graph.call_function(torch.neg, (z,))
    kept = graph.call_function(torch._assert, (x, "text"))
    written = graph.call_function(operator.setitem, (x, 0, 1))
    inplace = graph.call_function(torch.ops.aten.add_.Tensor, (x, 1))
    random_ = graph.call_function(torch.rand, (3,))
    out = graph.output(y)
    assert graph.eliminate_dead_code()
    assert list(graph.nodes) == [x, y, kept, written, inplace, random_, out]
    assert not graph.eliminate_dead_code() and z._erased and dead._erased
    assert graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    assert list(graph.nodes) == [x, y, out]


def test_copies_are_independent_and_keep_names_and_meta():
    graph, nodes = chain(3)
    nodes[1].meta["note"] = [1]
    nodes[2].type = torch.Tensor
    graph.output((nodes[3], [nodes[1]]))
    for made in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert str(made) == str(graph) and made.output_node().name == "output"
        assert [n.name for n in made.nodes] == [n.name for n in graph.nodes]
        assert [n.meta for n in made.nodes] == [n.meta for n in graph.nodes]
        assert not set(made.nodes) & set(graph.nodes)
        made.lint()
    target = fx.Graph()
    start = target.placeholder("y")
    result = target.graph_copy(graph, {nodes[0]: start})
    assert isinstance(result, tuple) and next(n.name for n in target.nodes) == "y"
    assert start.users and len(target.nodes) == 4


def test_deep_copy_of_a_node_copies_its_graph():
    graph, nodes = chain(2)
    made, other = copy.deepcopy([nodes[1], nodes[2]])
    assert made.graph is other.graph is not graph and other.args == (made,)


def test_hooks_see_edits():
    module = fx.symbolic_trace(lambda a: torch.relu(a))
    seen: list = []
    hooks = (
        lambda node: seen.append(("create", node.name)),
        lambda node: seen.append(("erase", node.name)),
        lambda old, new, user: seen.append(("replace", old.name, new, user.name)),
    )
    module._register_create_node_hook(hooks[0])
    module._register_erase_node_hook(hooks[1])
    module._register_replace_node_hook(hooks[2])
    a = module.graph.find_nodes(op="placeholder")[0]
    made = module.graph.node_copy(a)
    a.replace_all_uses_with(made)
    module.graph.erase_node(a)
    assert seen == [("create", "a_1"), ("replace", "a", "a_1", "relu"), ("erase", "a")]
    module._unregister_create_node_hook(hooks[0])
    module.graph.call_function(torch.neg, (made,))
    assert len(seen) == 3


def test_graphs_are_freed():
    graph, nodes = chain(50)
    graph.find_nodes(op="placeholder")
    gone = weakref.ref(nodes[25])
    del graph, nodes
    gc.collect()
    assert gone() is None


class ListModel:
    """What a graph is, in Python lists: names in order, and the names each uses."""

    def __init__(self) -> None:
        self.order: list[str] = []
        self.uses: dict[str, list[str]] = {}
        self.targets: dict[str, object] = {}

    def users(self, name: str) -> set[str]:
        return {n for n in self.order if name in self.uses[n]}

    def check(self, graph: fx.Graph) -> None:
        nodes = {n.name: n for n in graph.nodes}
        assert [n.name for n in graph.nodes] == self.order == [n.name for n in nodes.values()]
        assert [n.name for n in reversed(graph.nodes)] == self.order[::-1]
        assert len(graph.nodes) == len(self.order)
        assert sorted(nodes.values()) == list(nodes.values())
        for name, node in nodes.items():
            assert [n.name for n in node.args] == self.uses[name]
            assert {n.name for n in node.users} == self.users(name)
        for target in (torch.relu, torch.neg, torch.add):
            found = [n.name for n in graph.find_nodes(op="call_function", target=target)]
            assert found == [n for n in self.order if self.targets[n] is target]


def random_step(rng: random.Random, graph: fx.Graph, model: ListModel) -> None:
    nodes = list(graph.nodes)
    kind = rng.choice(["create", "create", "insert", "erase", "move", "args", "replace", "target"])
    node = rng.choice(nodes)
    if kind in ("create", "insert"):
        inputs = tuple(rng.choices(nodes, k=rng.randrange(3)))
        target = rng.choice([torch.relu, torch.neg, torch.add])
        after = rng.random() < 0.5
        if kind == "create":
            made = graph.call_function(target, inputs)
            model.order.append(made.name)
        else:
            point = graph.inserting_after(node) if after else graph.inserting_before(node)
            with point:
                made = graph.call_function(target, inputs)
            model.order.insert(model.order.index(node.name) + after, made.name)
        model.uses[made.name] = [n.name for n in inputs]
        model.targets[made.name] = target
    elif kind == "erase" and not node.users and node.op == "call_function":
        graph.erase_node(node)
        model.order.remove(node.name)
    elif kind == "move":
        other = rng.choice(nodes)
        if other is not node:
            after = rng.random() < 0.5
            (node.append if after else node.prepend)(other)
            model.order.remove(other.name)
            model.order.insert(model.order.index(node.name) + after, other.name)
    elif kind == "args" and node.op == "call_function":
        inputs = tuple(rng.choices(nodes, k=rng.randrange(4)))
        node.args = inputs
        model.uses[node.name] = [n.name for n in inputs]
    elif kind == "replace":
        other = rng.choice(nodes)
        expected = model.users(node.name)
        assert {n.name for n in node.replace_all_uses_with(other)} == expected
        for name in expected:
            model.uses[name] = [other.name if n == node.name else n for n in model.uses[name]]
    elif kind == "target" and node.op == "call_function":
        node.target = model.targets[node.name] = rng.choice([torch.relu, torch.neg, torch.add])


@pytest.mark.parametrize("seed", range(20))
def test_random_edits_equal_those_of_plain_lists(seed):
    rng = random.Random(seed)
    graph, model = fx.Graph(), ListModel()
    for name in ("x", "y"):
        graph.placeholder(name)
        model.order.append(name)
        model.uses[name] = []
        model.targets[name] = name
    for step in range(200):
        random_step(rng, graph, model)
        if step % 10 == 9:
            model.check(graph)
