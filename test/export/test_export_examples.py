"""The examples of torch._export.db, scripts as programs, and records of programs."""

import copy
import io
import json

import numpy as np
import pytest

import torch
from torch._export.converter import TS2EPConverter
from torch._export.db.case import SupportLevel
from torch._export.db.examples import all_examples, filter_examples_by_support_level
from torch._export.serde import schema
from torch._export.serde.serialize import deserialize, serialize
from torch.utils import _pytree as pytree


def same(found, expected):
    for a, b in zip(pytree.tree_leaves(found), pytree.tree_leaves(expected), strict=True):
        if isinstance(b, torch.Tensor):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())
        else:
            assert a == b


@pytest.mark.parametrize("name", filter_examples_by_support_level(SupportLevel.SUPPORTED))
def test_supported_example_exports_saves_and_computes_the_same(name):
    case = all_examples()[name]
    args, kwargs = case.example_args, case.example_kwargs
    program = torch.export.export(
        case.model, copy.deepcopy(args), kwargs, dynamic_shapes=case.dynamic_shapes
    )
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    for given in (args, case.extra_args):
        if given is not None:
            expected = copy.deepcopy(case.model)(*copy.deepcopy(given), **kwargs)
            same(program.module()(*copy.deepcopy(given), **kwargs), expected)
            same(loaded(*copy.deepcopy(given), **kwargs), expected)


@pytest.mark.parametrize("name", filter_examples_by_support_level(SupportLevel.NOT_SUPPORTED_YET))
def test_unsupported_example_raises(name):
    case = all_examples()[name]
    with pytest.raises((torch._dynamo.exc.UserError, AssertionError, RuntimeError)):
        torch.export.export(case.model, case.example_args, dynamic_shapes=case.dynamic_shapes)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        for step in range(3):
            x = x + step
        y = self.linear(x) + self.shift
        return y * 2 if x.dim() == 2 else y


@pytest.mark.parametrize("how", ["script", "trace"])
def test_script_converts_to_a_program_with_its_state(how):
    net, x = Net(), torch.randn(4, 3)
    script = torch.jit.script(net) if how == "script" else torch.jit.trace(net, (x,))
    program = TS2EPConverter(script, (x,)).convert()
    assert set(program.state_dict) == {"linear.weight", "linear.bias", "shift"}
    weight, bias = net.linear.weight.detach().numpy(), net.linear.bias.detach().numpy()
    expected = ((x.numpy() + 3) @ weight.T + bias + 1) * 2
    np.testing.assert_allclose(program.module()(x).detach().numpy(), expected, rtol=1e-5, atol=1e-5)


def test_scripted_function_converts():
    @torch.jit.script
    def doubled(x):
        return x * 2

    program = TS2EPConverter(doubled, (torch.ones(2),)).convert()
    assert program.module()(torch.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="script"):
        TS2EPConverter(torch.nn.Linear(1, 1), ())


def test_record_of_a_program_is_written_as_it_was_read():
    artifact = serialize(torch.export.export(Net(), (torch.randn(2, 3),)))
    record = torch._C._export.deserialize_exported_program(artifact.exported_program)
    text = torch._C._export.serialize_exported_program(record)
    assert json.loads(text) == json.loads(artifact.exported_program)
    artifact.exported_program = text.encode()
    assert deserialize(artifact).module()(torch.ones(2, 3)).shape == (2, 2)
    with pytest.raises(schema.SchemaError):
        torch._C._export.deserialize_exported_program(b'{"graph_module": 1}')
