"""Classes registered in C++ by torch::class_ (test/torchbind/classes.cpp), used from Python."""

import copy
import io
import pathlib
import pickle
import weakref

import pytest

import torch

LIBRARY = pathlib.Path(torch.__file__).parent / "lib" / "libtorchbind_test.so"
pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="the library of test classes is built with BUILD_TEST=1 only"
)
QUALIFIED = "__torch__.torch.classes._TorchScriptTesting."


@pytest.fixture(scope="module")
def classes() -> object:
    torch.classes.load_library(str(LIBRARY))
    return torch.classes._TorchScriptTesting


@pytest.fixture(scope="module")
def ops(classes: object) -> object:
    return torch.ops._TorchScriptTesting


def test_instance_made_with_arguments_runs_its_methods(classes) -> None:
    foo = classes._Foo(5, 3)
    assert foo.info() == 15 and foo.add(2) == 16
    foo.increment(1)
    assert foo.info() == 24
    assert torch.equal(foo.add_tensor(torch.ones(2)), torch.full((2,), 10.0))


def test_instance_is_a_script_object_and_knows_its_class(classes) -> None:
    foo = classes._Foo(1, 2)
    assert isinstance(foo, torch.ScriptObject)
    assert foo._type().qualified_name() == QUALIFIED + "_Foo"
    assert foo._type() == classes._Foo
    assert foo._has_method("info") and not foo._has_method("nothing")
    assert "increment" in foo._method_names()


@pytest.mark.parametrize(
    "call, text",
    [
        (lambda c: c._Foo(1, 2).increment("foo"), "Expected a value of type 'int'"),
        (lambda c: c._Foo(1), "missing value for argument"),
        (lambda c: c._Foo(1, 2, 3), "takes 2 positional"),
        (lambda c: c._Foo(1, z=2), "Unknown keyword argument 'z'"),
        (lambda c: c._StackString(3), r"Expected a value of type 'str\[\]'"),
        (lambda c: c._Foo(1, 2).combine(c._NoSuch), "does not exist"),
        (lambda c: c._Foo(1, 2).combine(c._StackString([])), f"{QUALIFIED}_StackString"),
        (lambda c: c._Foo(1, 2).combine(None), "NoneType"),
        (lambda c: c._NoInit(), "torch::init"),
        (lambda c: copy.deepcopy(c._NoInit), r"cannot pickle|ScriptClass"),
        (lambda c: copy.deepcopy(c._FooReadWrite(1, 2)), "does not have a __getstate__"),
    ],
)
def test_wrong_call_raises_an_error_that_names_it(classes, call, text) -> None:
    with pytest.raises((RuntimeError, TypeError), match=text):
        call(classes)


def test_exception_of_a_method_keeps_its_type(classes) -> None:
    with pytest.raises(IndexError, match="pop from an empty stack"):
        classes._StackString([]).pop()


def test_missing_class_names_namespace_and_class() -> None:
    with pytest.raises(RuntimeError, match=r"class 'foo\.IDontExist', but it does not exist!"):
        torch.classes.foo.IDontExist(3)


def test_missing_attribute_raises_attribute_error(classes) -> None:
    stack = classes._StackString(["a"])
    assert getattr(stack, "bar", None) is None
    with pytest.raises(AttributeError, match="does not have a field"):
        stack.bar  # noqa: B018


def test_property_with_setter_reads_and_writes_through_its_functions(classes) -> None:
    obj = classes._FooGetterSetter(5, 6)
    assert obj.x == 7 and obj.y == 10
    obj.x = 3
    assert obj.x == 7
    with pytest.raises(RuntimeError, match="can't set attribute"):
        obj.y = 5
    with pytest.raises(AttributeError, match="no property 'z'"):
        obj.z = 1


def test_readwrite_and_readonly_fields_follow_the_instance(classes) -> None:
    obj = classes._FooReadWrite(5, 6)
    obj.x = 9
    assert (obj.x, obj.y) == (9, 6)
    with pytest.raises(RuntimeError, match="can't set attribute"):
        obj.y = 5


def test_lambda_constructor_and_static_method_run(classes) -> None:
    assert classes._LambdaInit(4, 3, False).diff() == 1
    assert classes._LambdaInit(4, 3, True).diff() == -1
    assert classes._StaticMethod.staticMethod(4) == 8


def test_default_arguments_fill_what_is_not_given(classes) -> None:
    obj = classes._DefaultArgs()
    assert obj.increment(5) == 8
    assert obj.decrement() == 7
    assert obj.divide() == 7
    assert obj.scale_add(3, scale=2) == 17
    assert obj.divide(factor=3) == 5
    assert str(obj.scale_add.schema) == (
        f"scale_add({QUALIFIED}_DefaultArgs _0, int add, int scale=1) -> int _0"
    )


def test_inferred_schema_numbers_its_arguments(classes) -> None:
    queue = classes._TensorQueue(torch.zeros(1))
    name = QUALIFIED + "_TensorQueue"
    assert str(queue.push.schema) == f"push({name} _0, Tensor _1) -> NoneType _0"


def test_tuples_lists_and_instances_pass_both_ways(classes) -> None:
    stack = classes._StackString(["a", "b"])
    assert stack.return_a_tuple() == (1337.0, 123)
    stack.merge(classes._StackString(["z"]))
    copied = stack.clone()
    assert stack.pop() == "z" and copied.pop() == "z" and len(copied) == 2
    assert classes._Foo(1, 2).__obj_flatten__() == (("x", 1), ("y", 2))


def test_operators_of_python_call_the_methods_of_that_name(classes) -> None:
    assert classes._Foo(1, 2) == classes._Foo(1, 2)
    assert classes._Foo(1, 2) != classes._Foo(1, 3)
    assert str(classes._StackString(["a"])) == "[a ]"
    with pytest.raises(TypeError, match=r"__add__|unsupported operand"):
        classes._Foo(1, 2) + 1


def test_call_method_with_tuples_and_dictionaries_of_tensors_computes(classes) -> None:
    run = classes._ElementwiseInterpreter()
    run.add_constant("c", torch.tensor(2.0))
    run.set_input_names(["x"])
    run.set_instructions([("add", ["x", "c"], "y"), ("mul", ["y", "y"], "z")])
    run.set_output_name("z")
    assert run([torch.ones(2)]).tolist() == [9.0, 9.0]
    assert copy.deepcopy(run)([torch.ones(1)]).tolist() == [9.0]


def test_tensor_that_went_through_an_instance_is_the_same_object(classes) -> None:
    queue = classes._TensorQueue(torch.zeros(1))
    tensor = torch.ones(2)
    queue.push(tensor)
    assert queue.pop() is tensor


def test_copies_and_pickles_go_through_the_state_functions(classes) -> None:
    original = classes._PickleTester([3, 4])
    buffer = io.BytesIO()
    torch.save(original, buffer)
    buffer.seek(0)
    for made in (
        copy.deepcopy(original),
        copy.copy(original),
        pickle.loads(pickle.dumps(original)),
        torch.load(buffer, weights_only=False),
    ):
        assert [made.pop() for _ in range(4)] == [7, 3, 3, 1]
    assert original.pop() == 4


def test_deep_copy_has_tensors_of_its_own(classes) -> None:
    queue = classes._TensorQueue(torch.zeros(1))
    queue.push(torch.zeros(2))
    copied = copy.deepcopy(queue)
    queue.pop().add_(1)
    assert copied.size() == 1 and copied.pop().tolist() == [0.0, 0.0]


def test_unpickling_an_unknown_class_says_that_it_is_not_registered() -> None:
    with pytest.raises(RuntimeError, match="is not registered"):
        torch._C._script_object_from_state("__torch__.torch.classes.no.Such", [1])


def test_instances_are_keys_and_can_be_referred_to_weakly(classes) -> None:
    foo = classes._Foo(1, 2)
    reference = weakref.ref(foo)
    assert {foo: "value"}[foo] == "value"
    assert reference() is foo
    del foo
    assert reference() is None


def test_operator_takes_instances_by_their_class(classes, ops) -> None:
    foo, x = classes._Foo(1, 2), torch.ones(2)
    assert ops.takes_foo(foo, x).tolist() == [3.0, 3.0]
    assert [t[0].item() for t in ops.takes_foo_list_return(foo, x)] == [3.0, 9.0, 27.0]
    assert [t[0].item() for t in ops.takes_foo_tuple_return(foo, x)] == [3.0, 9.0]
    with pytest.raises(RuntimeError, match="but instead found type 'Tensor'"):
        ops.take_an_instance(torch.rand(3))


def test_operator_that_writes_to_an_instance_changes_it(classes, ops) -> None:
    queue = classes._TensorQueue(torch.zeros(1))
    ops.queue_push(queue, torch.ones(3))
    assert ops.queue_size(queue) == 1
    assert ops.queue_pop(queue).tolist() == [1.0, 1.0, 1.0]


def test_operator_defined_by_its_function_alone_infers_its_schema(classes, ops) -> None:
    assert ops.take_an_instance_inferred(classes._PickleTester([1])).shape == (4, 4)
    assert str(ops.take_an_instance_inferred.default._schema) == (
        f"_TorchScriptTesting::take_an_instance_inferred({QUALIFIED}_PickleTester _0) -> Tensor _0"
    )


def test_gradient_flows_through_an_operator_that_takes_an_instance(classes, ops) -> None:
    x = torch.ones(2, requires_grad=True)
    ops.takes_foo_cia(classes._Foo(1, 2), x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    "argument",
    [
        "Dict(str, Tensor) x",
        "(int, str) x",
        "int[][] x",
        "__torch__.torch.classes.a.B[] x",
        "(int, Tensor?)[] x",
    ],
)
def test_schema_with_nested_types_prints_as_it_was_written(argument) -> None:
    text = f"my::op({argument}) -> Tensor"
    assert str(torch._C.parse_schema(text)) == text


@pytest.mark.parametrize("argument", ["Dict(int) x", "(int x", "__torch__. x", "Nothing x"])
def test_schema_with_a_wrong_type_is_refused(argument) -> None:
    with pytest.raises(RuntimeError, match="cannot parse the schema"):
        torch._C.parse_schema(f"my::op({argument}) -> Tensor")


def make_and_pop(texts: list[str]) -> str:
    stack = torch.classes._TorchScriptTesting._StackString(texts)
    stack.push("last")
    stack.pop()
    return stack.pop()


def test_scripted_code_makes_instances_and_archives_keep_that(classes) -> None:
    scripted = torch.jit.script(make_and_pop)
    assert scripted(["hi", "mom"]) == make_and_pop(["hi", "mom"]) == "mom"
    shown = str(scripted.graph)
    assert "prim::CreateObject()" in shown and 'prim::CallMethod[name="__init__"]' in shown
    file = io.BytesIO()
    torch.jit.save(scripted, file)
    file.seek(0)
    assert torch.jit.load(file)(["a", "b"]) == "b"


def test_scripted_constructor_refuses_arguments_of_another_type(classes) -> None:
    def wrong(number: int):
        return torch.classes._TorchScriptTesting._StackString(number)

    with pytest.raises(RuntimeError, match=r"__init__\(str\[\]"):
        torch.jit.script(wrong)


def test_stand_in_of_a_fake_class_takes_part_in_fake_kernels(classes, ops) -> None:
    from torch._library import fake_class_registry as registry

    name = "_TorchScriptTesting::_TensorQueue"

    @torch._library.register_fake_class(name)
    class Queue:
        def __init__(self, items: list) -> None:
            self.items = items

        @classmethod
        def __obj_unflatten__(cls, flattened: tuple) -> "Queue":
            return cls(list(dict(flattened)["queue"]))

        def push(self, x: torch.Tensor) -> None:
            self.items.append(x)

        def size(self) -> int:
            return len(self.items)

    try:
        queue = classes._TensorQueue(torch.zeros(1))
        queue.push(torch.ones(2, 3))
        mode = torch._subclasses.FakeTensorMode()
        stand_in = registry.maybe_to_fake_obj(mode, queue)
        assert registry.maybe_to_fake_obj(mode, queue) is stand_in
        assert stand_in.script_class_name == QUALIFIED + "_TensorQueue"
        stand_in.push(mode.from_tensor(torch.ones(4)))
        assert stand_in.size() == 2 and queue.size() == 1
        assert [tuple(t.shape) for t in stand_in.items] == [(2, 3), (4,)]
        assert registry.maybe_unwrap_fake_script_object(stand_in) is queue
        with pytest.raises(AttributeError, match="no fields to set"):
            stand_in.field = 1
    finally:
        assert registry.deregister_fake_class(name) is Queue
    assert not registry.has_fake_class(QUALIFIED + "_TensorQueue")
    with pytest.raises(RuntimeError, match="has no fake class"):
        registry.maybe_to_fake_obj(torch._subclasses.FakeTensorMode(), queue)


def test_fake_class_without_a_way_to_make_it_is_refused(classes) -> None:
    with pytest.raises(RuntimeError, match="does not define a classmethod __obj_unflatten__"):
        torch._library.register_fake_class("_TorchScriptTesting::_Foo", type("Bare", (), {}))
    with pytest.raises(RuntimeError):
        torch._library.register_fake_class("_TorchScriptTesting::_NoSuchClass", object)


def test_registry_of_fake_classes_is_cleared_and_names_what_is_missing(classes) -> None:
    registry = torch._library.fake_class_registry.global_fake_class_registry
    registry.register(QUALIFIED + "_Foo", dict)
    assert registry.get_impl(QUALIFIED + "_Foo") is dict
    registry.clear()
    assert not registry.has_impl(QUALIFIED + "_Foo")
    with pytest.raises(RuntimeError, match=r'register_fake_class."_TorchScriptTesting::_Foo"'):
        registry.get_impl(QUALIFIED + "_Foo")
    wrong = type("Wrong", (), {"__obj_unflatten__": lambda cls, flat: cls()})
    with pytest.raises(RuntimeError, match="__obj_unflatten__ is not a classmethod"):
        torch._library.register_fake_class("_TorchScriptTesting::_Foo", wrong)


def test_exported_program_with_an_instance_is_saved_and_loaded(classes, ops) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.foo = classes._Foo(10, 20)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + ops.takes_foo(self.foo, x)

    class Stand:
        def __init__(self, x: int, y: int) -> None:
            self.x, self.y = x, y

        @classmethod
        def __obj_unflatten__(cls, flat: tuple) -> object:
            return cls(**dict(flat))

        def add_tensor(self, z: torch.Tensor) -> torch.Tensor:
            return (self.x + self.y) * z

    x = torch.ones(2, 3)
    torch._library.register_fake_class("_TorchScriptTesting::_Foo", Stand)
    try:
        program = torch.export.export(Net(), (x,), strict=False)
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        loaded = torch.export.load(file)
    finally:
        torch._library.fake_class_registry.global_fake_class_registry.clear()
    assert torch.equal(loaded.module()(x), Net()(x))
