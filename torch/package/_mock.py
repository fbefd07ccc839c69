"""Stands in for modules that were left out of a package: names can be imported, not used.

The text of this file travels in packages that mock modules."""

_methods = """__abs__ __add__ __aenter__ __aexit__ __aiter__ __and__ __anext__ __await__ __call__
    __complex__ __contains__ __delete__ __delitem__ __divmod__ __enter__ __eq__ __exit__ __float__
    __floordiv__ __format__ __ge__ __get__ __getitem__ __gt__ __iadd__ __iand__ __ifloordiv__
    __ilshift__ __imatmul__ __imod__ __imul__ __index__ __int__ __invert__ __ior__ __ipow__
    __irshift__ __isub__ __iter__ __itruediv__ __ixor__ __le__ __len__ __lshift__ __lt__ __matmul__
    __mod__ __mul__ __ne__ __neg__ __next__ __or__ __pos__ __pow__ __radd__ __rand__ __rdivmod__
    __reversed__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__
    __rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __set__ __setitem__ __sub__ __truediv__
    __xor__""".split()


class MockedObject:
    """A name of a mocked module. Every use raises."""

    def __init__(self, name, *, _suppress_err):
        if not _suppress_err:
            raise NotImplementedError(
                f"Object '{name}' was mocked out during packaging but it is being used in "
                f"'__init__'. If this error is happening during 'load_pickle', please ensure that "
                f"your pickled object doesn't contain any mocked objects. Try interning or "
                f"externing '{name}' if you would like to use it at runtime."
            )
        self.__dict__["_name"] = name

    def __getattr__(self, attr):
        if attr.startswith("__") and attr.endswith("__"):
            raise AttributeError(attr)
        return MockedObject(f"{self._name}.{attr}", _suppress_err=True)


def _declare(method):
    def used(self, *args, **kwargs):
        raise NotImplementedError(
            f"Object '{self._name}' was mocked out during packaging but it is being used in "
            f"{method}"
        )

    setattr(MockedObject, method, used)


for _method in _methods:
    _declare(_method)
