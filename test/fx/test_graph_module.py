"""GraphModule: generated code, copies, pickles, submodules, errors that show the generated line;
and the interpreter and transformer that run its graph."""

import copy
import io
import operator
import pickle
import sys
import traceback

import pytest

import torch
from torch import fx, nn
from torch.fx._lazy_graph_module import _LazyGraphModule, _use_lazy_graph_module


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.weight = nn.Parameter(torch.arange(3.0))
        self.register_buffer("shift", torch.ones(3), persistent=False)

    def forward(self, x):
        return torch.relu(self.linear(x) * self.weight) + self.shift


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.unused = nn.Linear(1, 1)

    def forward(self, x, y=2):
        return {"a": self.block(x) + y, "b": [x]}


def test_copies_and_pickles_run_alike():
    torch.manual_seed(0)  # some weights leave nothing behind the relu, and zero ones then neither
    x = torch.randn(2, 3)
    module = fx.symbolic_trace(Outer())
    module.meta["note"] = [1]
    module.block.extra = 5
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for made in (
        copy.deepcopy(module),
        copy.copy(module),
        pickle.loads(pickle.dumps(module)),
        torch.load(buffer, weights_only=False),
    ):
        assert torch.equal(made(x)["a"], module(x)["a"]) and type(made).__name__ == "Outer"
        assert made.code == module.code and made.meta == module.meta
    other = copy.deepcopy(module)
    other.block.linear.weight.data.zero_()
    assert not torch.equal(other(x)["a"], module(x)["a"])


def test_buffers_keep_whether_they_are_saved():
    module = fx.symbolic_trace(Block())
    assert "shift" in dict(module.named_buffers()) and "shift" not in module.state_dict()


def test_edit_takes_effect_with_recompile():
    module = fx.symbolic_trace(lambda x: torch.relu(x))
    node = module.graph.find_nodes(op="call_function", target=torch.relu)[0]
    node.target = torch.neg
    assert module(torch.ones(1)).item() == 1
    module.recompile()
    assert module(torch.ones(1)).item() == -1 and "torch.neg" in module.code


def test_root_may_be_a_dict_of_targets():
    graph = fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_module("a.b.linear", (x,)))
    linear = nn.Linear(2, 2)
    module = fx.GraphModule({"a.b.linear": linear}, graph, "Made")
    assert module.a.b.linear is linear and type(module).__name__ == "Made"
    with pytest.raises(RuntimeError, match=r"target a\.b\.linear but that target was not provided"):
        fx.GraphModule({}, graph)
    with pytest.raises(RuntimeError, match="Unsupported type"):
        fx.GraphModule(3, graph)


def test_submodules_are_added_and_deleted_by_path():
    module = fx.symbolic_trace(Outer())
    assert module.add_submodule("x.y", nn.ReLU()) and isinstance(module.x.y, nn.ReLU)
    assert not module.add_submodule("block.weight.z", nn.ReLU())
    assert module.delete_submodule("x.y") and not hasattr(module.x, "y")
    assert not module.delete_submodule("x.y") and not module.delete_submodule("nothing.at.all")
    module.add_submodule("spare", nn.Linear(1, 1))
    module.delete_all_unused_submodules()
    assert sorted(dict(module.named_modules())) == ["", "block", "block.linear"]


def test_error_in_generated_code_shows_its_line(capsys):
    module = fx.symbolic_trace(lambda x: (x + 1).no_such_method())
    with pytest.raises(AttributeError) as caught:
        module(torch.ones(1))
    text = "".join(traceback.format_exception(caught.value))
    assert "no_such_method = add.no_such_method()" in text and "eval_with_key" in text
    assert "test_graph_module.py" in module.forward.__code__.co_filename
    assert "line 6 of the traced Module's generated forward function" in capsys.readouterr().err


def test_code_transformers_edit_the_body():
    module = fx.symbolic_trace(lambda x: x + 1)

    def doubled(before):
        def transform(lines):
            lines = [*lines[:-1], "    add = add * 2\n".lstrip(), lines[-1]]
            return lines if before is None else before(lines)

        return transform

    with module.graph.on_generate_code(doubled):
        module.recompile()
        assert module(1) == 4
    module.recompile()
    assert module(1) == 2


class ListCodeGen(fx.CodeGen):
    """A function of one list."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        return (
            f"def forward(self, args_list: List[torch.Tensor]){maybe_return_annotation}:\n"
            f"    {', '.join(free_vars)} = args_list"
        )

    def additional_globals(self):
        return [("List", list)]

    def process_inputs(self, *inputs):
        (values,) = inputs
        return values


def test_codegen_of_the_user_changes_the_signature():
    graph = fx.symbolic_trace(lambda a, b: a + b).graph
    graph.set_codegen(ListCodeGen())
    module = fx.GraphModule(nn.Module(), graph)
    assert module([1, 2]) == 3 and fx.Interpreter(module).run([1, 2]) == 3


def test_readable_text_has_types_sizes_and_parts():
    from torch.fx.passes.shape_prop import ShapeProp

    module = fx.symbolic_trace(Outer())
    module.add_submodule("inner", fx.symbolic_trace(lambda z: z * 2))
    ShapeProp(module).propagate(torch.ones(2, 3))
    text = module.print_readable(print_output=False, include_stride=True)
    assert text.startswith("class Outer(torch.nn.Module):\n    def forward(self, x")
    assert 'relu: "f32[2, 3][3, 1]" = torch.relu(mul)' in text
    assert "    class inner(torch.nn.Module):\n        def forward(self, z):" in text


def test_module_written_to_a_folder_is_importable(tmp_path, monkeypatch):
    module = fx.symbolic_trace(Block())
    module.to_folder(tmp_path / "saved_fx_block", "Saved")
    monkeypatch.syspath_prepend(str(tmp_path))
    from saved_fx_block import Saved

    made, x = Saved(), torch.randn(2, 3)
    assert torch.equal(made(x), module(x))
    for name in [n for n in sys.modules if n.startswith("saved_fx_block")]:
        del sys.modules[name]


def test_lazy_modules_generate_code_when_it_is_needed():
    with _use_lazy_graph_module(True):
        module = fx.symbolic_trace(lambda x: x.sin())
        assert isinstance(module, _LazyGraphModule) and module._needs_recompile()
        forward = module.forward
        assert torch.equal(forward(torch.ones(1)), torch.ones(1).sin())
        assert not module._needs_recompile()
        module.recompile()
        assert module._needs_recompile() and "sin" in module.code and not module._needs_recompile()
        loaded = pickle.loads(pickle.dumps(module))
        assert isinstance(loaded, _LazyGraphModule) and "sin" in str(loaded)
        assert type(fx.symbolic_trace(module)(torch.ones(1))) is torch.Tensor
    assert type(fx.symbolic_trace(lambda x: x)).__mro__[1] is fx.GraphModule


# ---- interpreter and transformer
def test_interpreter_runs_the_graph_and_frees_values():
    module = fx.symbolic_trace(Outer())
    alive: list[int] = []

    class Watching(fx.Interpreter):
        def run_node(self, n):
            alive.append(len(self.env))
            return super().run_node(n)

    x = torch.randn(2, 3)
    assert torch.equal(Watching(module).run(x)["a"], module(x)["a"])
    assert max(alive) <= 4
    assert torch.equal(fx.Interpreter(module).boxed_run([x, 2])["a"], module(x)["a"])
    given = {module.graph.find_nodes(op="call_module")[0]: torch.zeros(2, 3)}
    assert torch.equal(
        fx.Interpreter(module).run(x, initial_env=given)["a"], torch.full((2, 3), 3.0)
    )


def test_interpreter_error_names_the_node():
    module = fx.symbolic_trace(lambda x: torch.relu(x.foo))
    with pytest.raises(AttributeError, match=r"While executing %getattr_1.*args = \(%x, foo\)"):
        fx.Interpreter(module).run(torch.ones(1))
    with pytest.raises(RuntimeError, match="Expected positional argument for parameter x"):
        fx.Interpreter(module).run()


def test_transformer_rewrites_calls():
    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(
                torch.sigmoid if target is torch.relu else target, args, kwargs
            )

        def call_method(self, target, args, kwargs):
            if target == "neg":
                return args[0] * -2
            return super().call_method(target, args, kwargs)

    class Uses(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x, *, scale=3):
            return self.block(x).neg() * scale

    module = fx.symbolic_trace(Uses())
    node = module.graph.find_nodes(op="get_attr")[0]
    node.meta["stack_trace"] = "where"
    made = Swap(module).transform()
    targets = [n.target for n in made.graph.nodes]
    assert torch.sigmoid in targets and torch.relu not in targets and "neg" not in targets
    assert made.graph.find_nodes(op="get_attr")[0].meta["stack_trace"] == "where"
    x = torch.ones(1, 3)
    linear = module.block.linear
    expected = (torch.sigmoid(linear(x) * module.block.weight) + 1) * -2 * 3
    assert torch.allclose(made(x), expected)


def test_boxed_code_empties_its_list():
    from torch.fx.graph import _BoxedCodeGen

    graph = fx.symbolic_trace(lambda a, b: operator.sub(a, b)).graph
    graph.set_codegen(_BoxedCodeGen())
    module = fx.GraphModule(nn.Module(), graph)
    values = [5, 3]
    assert module(values) == 2 and values == []


@pytest.mark.parametrize("base", [-8.0, -3, 2.0])
def test_a_power_of_a_negative_number_is_written_as_it_was_called(base):
    def function(x):
        return base**x, (-x) ** 2

    x = torch.tensor([1.0, 2.0, 3.0])
    for module in (fx.symbolic_trace(function), torch.compile(function, backend="eager")):
        for got, wanted in zip(module(x), function(x), strict=True):
            assert torch.equal(got, wanted)
