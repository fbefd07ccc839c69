"""Lists and dicts that cannot be changed: the arguments of a node hold these, because an edit that
goes around `node.args = ...` would leave the users of its inputs wrong."""

from collections.abc import Callable
from typing import NoReturn

from torch.fx._compatibility import compatibility
from torch.utils import _pytree as pytree

__all__ = ["immutable_dict", "immutable_list"]

_ADVICE = (
    " object does not support mutation. If you are attempting to modify the kwargs or args of a "
    "torch.fx.Node object,\ninstead create a new copy of it and assign the copy to the node:\n\n"
    "    new_args = ...  # copy and mutate args\n    node.args = new_args\n"
)
_LIST_EDITS = (
    "__delitem__ __iadd__ __imul__ __setitem__ append clear extend insert pop remove reverse sort"
)
_DICT_EDITS = "__delitem__ __ior__ __setitem__ clear pop popitem setdefault update"


def _refusal(name: str) -> Callable[..., NoReturn]:
    def refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__!r}{_ADVICE}")

    refuse.__name__ = name
    return refuse


@compatibility(is_backward_compatible=True)
class immutable_list(list):
    """A list without the methods that change it; hashable when its items are."""

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return immutable_list, (tuple(self),)


@compatibility(is_backward_compatible=True)
class immutable_dict(dict):
    """A dict without the methods that change it; hashable when its items are."""

    def __hash__(self) -> int:
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return immutable_dict, (tuple(self.items()),)


for _name in _LIST_EDITS.split():
    setattr(immutable_list, _name, _refusal(_name))
for _name in _DICT_EDITS.split():
    setattr(immutable_dict, _name, _refusal(_name))


def _list_parts(items: immutable_list) -> tuple[list, None]:
    return list(items), None


def _list_whole(values: object, context: None) -> immutable_list:
    return immutable_list(values)


def _dict_parts(items: immutable_dict) -> tuple[list, list]:
    return list(items.values()), list(items)


def _dict_whole(values: object, context: list) -> immutable_dict:
    return immutable_dict(zip(context, values, strict=True))


pytree.register_pytree_node(
    immutable_list,
    _list_parts,
    _list_whole,
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
)
pytree.register_pytree_node(
    immutable_dict,
    _dict_parts,
    _dict_whole,
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
)
