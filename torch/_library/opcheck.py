"""The tests behind torch.library.opcheck."""

import torch
from torch.utils._pytree import tree_iter, tree_map_only


def _fault(what: str) -> Exception:
    """The error of a check that failed. Its class is a part of the testing package, which is
    loaded when it is needed."""
    from torch.testing._internal.optests import OpCheckError

    return OpCheckError(what)


def _bound(op, args, kwargs):
    for index, argument in enumerate(op._schema.arguments):
        if index < len(args):
            yield argument, args[index]
        elif argument.name in kwargs:
            yield argument, kwargs[argument.name]


def _tensors(value):
    return [t for t in tree_iter(value) if isinstance(t, torch.Tensor)]


def _copies(args, kwargs):
    def copy(t):
        return t.detach().clone().requires_grad_(t.requires_grad)

    return tree_map_only(torch.Tensor, copy, (args, kwargs))


def test_schema(op, args, kwargs) -> None:
    """Arguments are written to, and results share memory, exactly as the schema says."""
    args, kwargs = _copies(args, kwargs)
    before = {id(t): t.detach().clone() for t in _tensors((args, kwargs))}
    with torch.no_grad():
        result = op(*args, **kwargs)
    owners = {}
    for argument, value in _bound(op, args, kwargs):
        for tensor in _tensors(value):
            owners[tensor.untyped_storage()._cdata] = argument
            same = torch.equal(before[id(tensor)], tensor) or bool(
                ((before[id(tensor)] == tensor) | (tensor != tensor)).all()
            )
            if not same and not argument.is_write:
                raise _fault(
                    f"Argument {argument.name} is not defined as mutable but was mutated: "
                    f"{op._schema}"
                )
    promised = any(entry.alias_info is not None for entry in op._schema.returns)
    for tensor in _tensors(result):
        if tensor.untyped_storage()._cdata in owners and not promised:
            name = owners[tensor.untyped_storage()._cdata].name
            raise _fault(
                f"Argument {name} is not defined to alias output but was aliasing: {op._schema}"
            )


def test_faketensor(op, args, kwargs) -> None:
    """On the meta device the operator gives results of the same shapes, strides and dtypes."""
    real_args, real_kwargs = _copies(args, kwargs)
    with torch.no_grad():
        real = op(*real_args, **real_kwargs)
        meta_args, meta_kwargs = tree_map_only(torch.Tensor, lambda t: t.to("meta"), (args, kwargs))
        try:
            fake = op(*meta_args, **meta_kwargs)
        except NotImplementedError as error:
            raise _fault(
                f"{op} has no fake form, which torch.library.register_fake would add: {error}"
            ) from error
    for r, f in zip(_tensors(real), _tensors(fake), strict=True):
        if r.shape != f.shape or r.dtype is not f.dtype or r.stride() != f.stride():
            raise _fault(
                f"the fake form of {op} gives {f.dtype}{list(f.shape)} with strides "
                f"{f.stride()}, the operator "
                f"{r.dtype}{list(r.shape)} with strides {r.stride()}"
            )


def test_autograd_registration(op, args, kwargs) -> None:
    """An operator with differentiable inputs has its gradient registered where autograd looks for
    it.
    """
    if not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    keys = ("Autograd", "AutogradCPU", "CompositeImplicitAutograd")
    if not any(op._op.has_kernel_for_dispatch_key(key) for key in keys):
        raise _fault(
            f"{op} has no autograd kernel; register one with torch.library.register_autograd"
        )


_TESTS = {
    "test_schema": test_schema,
    "test_faketensor": test_faketensor,
    "test_autograd_registration": test_autograd_registration,
}


def run(op, args, kwargs, names, raise_exception):
    """Runs the named tests; a dictionary of "SUCCESS" or the error of each."""
    results = {}
    for name in names:
        test = _TESTS.get(name)
        if test is None:
            raise NotImplementedError(
                f"opcheck: {name} is not implemented; available are {list(_TESTS)}"
            )
        try:
            test(op, args, kwargs)
            results[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise _fault(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            results[name] = error
    return results
