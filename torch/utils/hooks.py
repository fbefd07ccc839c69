"""Handles of registered hooks."""

import weakref

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class RemovableHandle:
    """Removes a hook from its dictionary. Hooks keep their order: ids only grow."""

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            self.extra_dict_ref = ()
        else:
            extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self.extra_dict_ref = tuple(weakref.ref(d) for d in extras)

    def remove(self):
        """Takes the hook out; a second call does nothing."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self):
        if not self.extra_dict_ref:
            return (self.hooks_dict_ref(), self.id)
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        # A dictionary that was not pickled with us has no hooks left to remove.
        self.hooks_dict_ref = weakref.ref(state[0] if state[0] is not None else _Empty())
        self.id = state[1]
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extras = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(d if d is not None else _Empty()) for d in extras)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


class _Empty(dict):
    """A dictionary that weak references can point to."""


def unserializable_hook(f):
    """Marks a hook that is left out, with a warning, when its tensor is pickled."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor):
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
