"""Unification of Python values with logic variables: `unify(a, b)` finds values for variables that
make two values equal, `reify` puts them in."""

from torch.fx.experimental.unification.core import reify, unify
from torch.fx.experimental.unification.more import unifiable
from torch.fx.experimental.unification.variable import Var, isvar, var, variables, vars

__all__ = ["Var", "isvar", "reify", "unifiable", "unify", "var", "variables", "vars"]
