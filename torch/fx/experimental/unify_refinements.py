"""Symbols for unknown dimensions, with those that must be equal made one."""

from typing import Any

from torch.fx.experimental.graph_gradual_typechecker import Refine
from torch.fx.experimental.refinement_types import Equality
from torch.fx.experimental.unification import reify, unify
from torch.fx.graph import Graph
from torch.fx.tensor_type import TensorType

__all__ = ["check_for_type_equality", "infer_symbolic_types", "unify_eq"]


def infer_symbolic_types_single_pass(traced: Any) -> None:
    """One round: symbols, constraints, and what follows from them put in."""
    refiner = Refine(traced)
    refiner.refine()
    substitute_all_types(traced.graph, unify_eq(refiner.constraints))


def infer_symbolic_types(traced: Any) -> None:
    """Gives unknown dimensions symbols; equal ones the same, and computed ones an expression of
    those they come from."""
    infer_symbolic_types_single_pass(traced)
    infer_symbolic_types_single_pass(traced)
    refiner = Refine(traced)
    refiner.symbolic_relations()


def convert_eq(list_of_eq: list[Equality]) -> tuple[tuple, tuple]:
    """The left and the right sides."""
    return tuple(e.lhs for e in list_of_eq), tuple(e.rhs for e in list_of_eq)


def unify_eq(list_of_eq: list[Equality]) -> dict:
    """A substitution under which all equalities hold."""
    left, right = convert_eq(list_of_eq)
    found = unify(left, right)
    if found is False:
        raise TypeError(f"the dimensions cannot all be equal: {list_of_eq}")
    return found


def substitute_solution_one_type(mapping: dict, t: Any) -> Any:
    """A type with what the substitution says."""
    if isinstance(t, TensorType):
        return TensorType(tuple(reify(dim, mapping) for dim in t.__args__))
    if isinstance(t, list | tuple):
        return type(t)(substitute_solution_one_type(mapping, item) for item in t)
    return reify(t, mapping)


def substitute_all_types(graph: Graph, mapping: dict) -> None:
    """Every type of a graph with what the substitution says."""
    for node in graph.nodes:
        node.type = substitute_solution_one_type(mapping, node.type)


def check_for_type_equality(g1: Graph, g2: Graph) -> bool:
    """Whether the nodes of two graphs have the same types."""
    return all(a.type == b.type for a, b in zip(g1.nodes, g2.nodes, strict=True))
