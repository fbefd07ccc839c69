"""Handles of registered hooks, and the hooks of a module's backward pass."""

import weakref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks", "BackwardHook"]


class RemovableHandle:
    """Removes a hook from its dictionary. Hooks keep their order: ids only grow."""

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None) -> None:
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            self.extra_dict_ref = ()
        else:
            extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self) -> None:
        """Takes the hook out; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self):
        if not self.extra_dict_ref:
            return (self.hooks_dict_ref(), self.id)
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state) -> None:
        # A dictionary that was not pickled with us has no hooks left to remove.
        self.hooks_dict_ref = weakref.ref(state[0] if state[0] is not None else _Empty())
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extras = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(d if d is not None else _Empty()) for d in extras)

    def __enter__(self):
        return self

    def __exit__(self, type, value, tb) -> None:
        self.remove()


class _Empty(dict):
    """A dictionary that weak references can point to."""


def unserializable_hook(f):
    """Marks a hook that is left out, with a warning, when its tensor is pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor) -> None:
    """Warns about hooks of `tensor` that pickling leaves out."""
    import warnings

    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is "
                "expected, you can "
                "decorate the function with @torch.utils.hooks.unserializable_hook to suppress "
                "this warning",
                stacklevel=2,
            )


_pass_through = None


def _pass_through_function():
    """An identity that gives all tensors of a call one node in the graph. It is made at first use:
    torch.autograd is not loaded yet when this file is."""
    global _pass_through
    if _pass_through is None:
        import torch

        class BackwardHookFunction(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *args):
                ctx.set_materialize_grads(False)
                return tuple(arg.view_as(arg) for arg in args)

            @staticmethod
            def backward(ctx, *grads):
                return grads

        _pass_through = BackwardHookFunction
    return _pass_through


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class BackwardHook:
    """The full backward hooks of one call of a module. The arguments pass through one node and the
    results through another: what reaches the first node are the gradients of the inputs, what
    reaches the second those of the outputs."""

    def __init__(self, module, user_hooks, user_pre_hooks) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_indices = None
        self.output_indices = None

    def _spread(self, values, indices, length):
        """The gradients at the places of their tensors, None elsewhere."""
        result = [None] * length
        for index, value in zip(indices, values, strict=False):
            result[index] = value
        return tuple(result)

    def _through_node(self, args, register):
        import torch

        indices = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        requires = torch.is_grad_enabled() and any(args[i].requires_grad for i in indices)
        if not requires:
            return args, None
        passed = _pass_through_function().apply(*(args[i] for i in indices))
        nodes = [t.grad_fn for t in passed if t.grad_fn is not None]
        if not nodes:
            raise RuntimeError(
                "Error while setting up backward hooks: none of the tensors that the module was "
                "given or returned has a history"
            )
        register(nodes[0])
        args = list(args)
        for index, tensor in zip(indices, passed, strict=True):
            args[index] = tensor
        return tuple(args), indices

    def setup_input_hook(self, args):
        """The arguments, through the node whose gradients are grad_input."""

        def register(node) -> None:
            def hook(grad_input, _):
                if self.grad_outputs is None:
                    # The outputs did not take part in this backward pass.
                    return None
                given = self._spread(grad_input, self.input_indices, self.n_inputs)
                answer = self._run_user_hooks(given)
                self.grad_outputs = None
                if answer is None:
                    return None
                return tuple(answer[i] for i in self.input_indices)

            node.register_hook(hook)

        args, self.input_indices = self._through_node(args, register)
        self.n_inputs = len(args)
        return args

    def _run_user_hooks(self, grad_input):
        changed = None
        for hook in self.user_hooks:
            current = grad_input if changed is None else changed
            answer = hook(self.module, current, self.grad_outputs)
            if answer is None:
                continue
            answer = _as_tuple(answer)
            if len(answer) != len(grad_input):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, got "
                    f"{len(answer)}, but expected {len(grad_input)}"
                )
            changed = answer
        return changed

    def setup_output_hook(self, args):
        """The results, through the node whose gradients are grad_output."""

        def register(node) -> None:
            def hook(grad_output):
                given = self._spread(grad_output, self.output_indices, self.n_outputs)
                self.grad_outputs = self._run_pre_hooks(given)
                changed = self.grad_outputs is not given
                result = tuple(self.grad_outputs[i] for i in self.output_indices)
                if self.input_indices is None:
                    # No input wants a gradient: nothing comes later, so the hooks run now.
                    if self._run_user_hooks((None,) * self.n_inputs) is not None:
                        raise RuntimeError(
                            "Backward hook for Modules where no input requires gradient should "
                            "always return None or None for all gradients."
                        )
                    self.grad_outputs = None
                return result if changed else None

            node.register_prehook(hook)

        is_tuple = isinstance(args, tuple)
        values, self.output_indices = self._through_node(_as_tuple(args), register)
        self.n_outputs = len(values)
        return values if is_tuple else values[0]

    def _run_pre_hooks(self, grad_output):
        for hook in self.user_pre_hooks:
            answer = hook(self.module, grad_output)
            if answer is None:
                continue
            answer = _as_tuple(answer)
            if len(answer) != self.n_outputs:
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, got "
                    f"{len(answer)}, but expected {self.n_outputs}"
                )
            grad_output = answer
        return grad_output
