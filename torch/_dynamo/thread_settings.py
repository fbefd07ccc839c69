"""What a compilation changes in its thread and process while it runs. Each part of it is put back
where it was changed; but the handler of a signal may raise while that is under way, and then it is
put back once more as a whole."""

from __future__ import annotations

import sys

import torch
from torch import _guards
from torch._dynamo import utils


class ThreadSettings:
    """The settings as they are when the object is made."""

    __slots__ = (
        *("compilation", "compiling", "fake_mode", "functions", "grad", "levels", "limit"),
        *("modes", "overrides", "stages", "trace"),
    )

    def __init__(self) -> None:
        local = _guards._local
        self.trace, self.compilation = local.tracing_context, local.compile_context
        self.compiling = torch.compiler._is_compiling_flag
        self.limit = sys.getrecursionlimit()
        self.grad = torch.is_grad_enabled()
        self.levels = len(torch._C._functorch._level_kinds())
        self.fake_mode = torch._C._get_dispatch_mode(_FAKE)
        self.modes = torch._C._len_torch_dispatch_stack()
        count = torch._C._len_torch_function_stack()
        self.functions = [torch._C._get_function_stack_at(i) for i in range(count)]
        self.overrides = torch._C._get_torch_function_state()
        self.stages = len(utils.current_stages)

    def put_back(self) -> None:
        """Makes the settings those again, even if a handler raises meanwhile."""
        try:
            self._put_back()
        except BaseException:
            self._put_back()
            raise

    def _put_back(self) -> None:
        _guards._local.tracing_context = self.trace
        _guards._local.compile_context = self.compilation
        torch.compiler._is_compiling_flag = self.compiling
        sys.setrecursionlimit(self.limit)
        torch._C._set_grad_enabled(self.grad)
        if torch._C._get_dispatch_mode(_FAKE) is not self.fake_mode:
            torch._C._unset_dispatch_mode(_FAKE)
            if self.fake_mode is not None:
                torch._C._set_dispatch_mode(self.fake_mode)
        while torch._C._len_torch_dispatch_stack() > self.modes:
            torch._C._pop_torch_dispatch_stack()
        count = torch._C._len_torch_function_stack()
        if [torch._C._get_function_stack_at(i) for i in range(count)] != self.functions:
            while torch._C._len_torch_function_stack():
                torch._C._pop_torch_function_stack()
            for mode in self.functions:
                torch._C._push_on_torch_function_stack(mode)
        torch._C._set_torch_function_state(self.overrides)
        for kind in reversed(torch._C._functorch._level_kinds()[self.levels :]):
            name = "func" if kind == "functionalize" else kind
            getattr(torch._C._functorch, f"_{name}_decrement_nesting")()
        del utils.current_stages[self.stages :]


_FAKE = torch._C._TorchDispatchModeKey.FAKE
