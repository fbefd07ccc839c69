"""Trackers: values of a traced program, one class per kind of behaviour."""

from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.constant import ConstantVariable, EnumVariable
from torch._dynamo.variables.dicts import ConstDictVariable, DefaultDictVariable
from torch._dynamo.variables.functions import (
    NestedUserFunctionVariable,
    SkipFunctionVariable,
    UserFunctionVariable,
    UserMethodVariable,
)
from torch._dynamo.variables.lists import (
    BaseListVariable,
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from torch._dynamo.variables.misc import PythonModuleVariable, SuperVariable
from torch._dynamo.variables.partials import FunctoolsPartialVariable
from torch._dynamo.variables.sets import SetVariable
from torch._dynamo.variables.tensor import SymNodeVariable, TensorVariable
from torch._dynamo.variables.user_defined import (
    UserDefinedClassVariable,
    UserDefinedObjectVariable,
)

__all__ = [
    "BaseListVariable",
    "ConstDictVariable",
    "ConstantVariable",
    "DefaultDictVariable",
    "EnumVariable",
    "FunctoolsPartialVariable",
    "ListVariable",
    "NamedTupleVariable",
    "NestedUserFunctionVariable",
    "PythonModuleVariable",
    "RangeVariable",
    "SetVariable",
    "SizeVariable",
    "SkipFunctionVariable",
    "SliceVariable",
    "SuperVariable",
    "SymNodeVariable",
    "TensorVariable",
    "TupleVariable",
    "UserDefinedClassVariable",
    "UserDefinedObjectVariable",
    "UserFunctionVariable",
    "UserMethodVariable",
    "VariableTracker",
]
