"""torch._C._jit_check_alias_annotation: operators whose schema hides what they do are found."""

import pytest

import torch
from torch._C import _jit_check_alias_annotation as check

LIBRARY = torch.library.Library("alias_check", "DEF")
LIBRARY.define("honest(Tensor(a!) x) -> Tensor(a!)")
LIBRARY.define("sharing(Tensor x) -> Tensor")
LIBRARY.define("writing(Tensor x) -> Tensor")
LIBRARY.impl("honest", lambda x: x.add_(1), "CompositeExplicitAutograd")
LIBRARY.impl("sharing", lambda x: x.view(-1), "CompositeExplicitAutograd")
LIBRARY.impl("writing", lambda x: x.add_(1).clone(), "CompositeExplicitAutograd")


@torch.jit.script
def program(x):
    y = x + 1
    a = torch.ops.alias_check.honest(y)
    b = torch.ops.alias_check.sharing(y)
    c = torch.ops.alias_check.writing(y)
    return a, b, c, y.split(1), y.view(-1), y.triu(1)


@pytest.mark.parametrize("name", ["alias_check::honest", "split", "view", "triu", "aten::add"])
def test_operator_that_keeps_its_annotation_passes(name):
    check(program.graph, (torch.ones(2, 2),), name)


def test_operator_that_is_not_in_the_graph_passes():
    check(program.graph, (torch.ones(2, 2),), "tril")


@pytest.mark.parametrize(("name", "says"), [("sharing", "shares memory"), ("writing", "wrote to")])
def test_operator_that_breaks_its_annotation_raises(name, says):
    with pytest.raises(RuntimeError, match=says):
        check(program.graph, (torch.ones(2, 2),), f"alias_check::{name}")


def test_fusion_strategy_has_its_name_in_torch_c_too():
    before = torch._C._jit_set_fusion_strategy([("STATIC", 3)])
    assert torch.jit.set_fusion_strategy(before) == [("STATIC", 3)]
