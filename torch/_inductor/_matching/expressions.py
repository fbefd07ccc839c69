"""The language of patterns. A pattern is a tree of expressions; matching walks the tree and the
graph together and writes what it finds into one `Search`, which can be taken back to an earlier
mark. So alternatives are tried without copying what was found before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import fx
from torch.utils import _pytree as pytree

__all__ = [
    "MULTIPLE",
    "Arg",
    "CallFunction",
    "CallFunctionVarArgs",
    "CallMethod",
    "CallMethodVarArgs",
    "CallModule",
    "CallModuleVarArgs",
    "ExclusiveKeywordArg",
    "FailedMatch",
    "Ignored",
    "KeywordArg",
    "ListOf",
    "MultiOutputPattern",
    "Multiple",
    "PatternExpr",
    "RepeatedExpr",
    "Search",
    "target_name",
]


class Multiple:
    """The number of users of a node that may have any number of them."""

    def __repr__(self) -> str:
        return "MULTIPLE"


MULTIPLE = Multiple()
Users = int | Multiple


class FailedMatch(RuntimeError):
    """Why a pattern does not fit: false where a Match is true. Most are never read, so the text is
    written when it is."""

    def __init__(self, format_string: str, *args: object, **kwargs: object) -> None:
        super().__init__(format_string)
        self.format_string, self.given, self.named = format_string, args, kwargs

    def __str__(self) -> str:
        return self.format_string.format(*self.given, **self.named)

    def __bool__(self) -> bool:
        return False


_UNBOUND = object()


class Search:
    """What is bound so far: expressions to values, and the arguments in the order of the walk.
    Everything is only ever added, so that a state is four lengths."""

    def __init__(self, outputs: Sequence[PatternExpr | None]) -> None:
        self.outputs = list(outputs)
        self.bound: dict[PatternExpr, object] = {}
        self.nodes: dict[fx.Node, None] = {}
        self.args: list[object] = []
        self.kwargs: dict[str, object] = {}
        self.reason: tuple[object, ...] = ("no match",)

    def mark(self) -> tuple[int, int, int, int]:
        """The present state, for undo."""
        return len(self.bound), len(self.nodes), len(self.args), len(self.kwargs)

    def undo(self, mark: tuple[int, int, int, int]) -> None:
        """Back to a mark."""
        for table, length in zip((self.bound, self.nodes), mark[:2], strict=True):
            while len(table) > length:
                table.popitem()
        del self.args[mark[2] :]
        while len(self.kwargs) > mark[3]:
            self.kwargs.popitem()

    def forget(self, mark: tuple[int, int, int, int], occurrence: PatternExpr) -> None:
        """Unbinds what was bound since the mark and belongs to one occurrence alone."""
        for pattern in list(self.bound)[mark[0] :]:
            if pattern is occurrence or not pattern.has_multiple_users():
                del self.bound[pattern]

    def fail(self, reason: str, *args: object) -> bool:
        """Notes why, and is false."""
        self.reason = (reason, *args)
        return False

    def name(self, name: str, value: object) -> bool:
        """Binds a named argument; a name stands for one value."""
        known = self.kwargs.get(name, _UNBOUND)
        if known is _UNBOUND:
            self.kwargs[name] = value
            return True
        if known is value or _same_constant(known, value):
            return True
        return self.fail("argument {} stands for {} and {}", name, known, value)

    def match(self, pattern: object, value: object) -> bool:
        """Whether a part of a pattern fits a value; a failed attempt leaves nothing behind."""
        if not isinstance(pattern, PatternExpr):
            if isinstance(pattern, (list, tuple, dict)):
                return self._match_structure(pattern, value)
            if not isinstance(value, fx.Node) and _same_constant(pattern, value):
                return True
            return self.fail("{} is not the constant {}", value, pattern)
        known = self.bound.get(pattern, _UNBOUND)
        if known is not _UNBOUND:
            return known is value or self.fail("{} stands for {} and {}", pattern, known, value)
        mark = self.mark()
        if pattern.matches(value, self):
            self.bound[pattern] = value
            return True
        self.undo(mark)
        return False

    def _match_structure(self, pattern: list | tuple | dict, value: object) -> bool:
        if isinstance(pattern, dict):
            if not isinstance(value, dict) or set(pattern) != set(value):
                return self.fail("{} has other keys than the pattern", value)
            return all(self.match(pattern[key], value[key]) for key in pattern)
        if not isinstance(value, (list, tuple)) or len(pattern) != len(value):
            return self.fail("{} is no sequence of {}", value, len(pattern))
        return all(self.match(p, v) for p, v in zip(pattern, value, strict=True))


def _same_constant(a: object, b: object) -> bool:
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        return a is b
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    try:
        return bool(a == b)
    except (TypeError, RuntimeError):
        return False


def target_name(target: object) -> str:
    """The name by which pages of patterns call a target."""
    if isinstance(target, str):
        return target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return str(target)
    module = getattr(target, "__module__", "") or ""
    module = {"_operator": "operator", "torch._VariableFunctions": "torch"}.get(module, module)
    return f"{module}.{getattr(target, '__name__', target)}".lstrip(".")


class PatternExpr:
    """A part of a pattern."""

    def matches(self, value: object, search: Search) -> bool:
        """Whether it fits the value; writes what it stands for into the search."""
        raise NotImplementedError(f"{type(self).__name__} does not define matches")

    def match(self, node: fx.Node) -> object:
        """A Match of the whole pattern that ends at a node, or a FailedMatch."""
        from torch._inductor._matching.match import Match

        search = Search([self])
        if search.match(self, node):
            return Match.of(search, self)
        return FailedMatch(*search.reason)

    def children(self) -> Iterator[PatternExpr]:
        """The expressions directly below."""
        return iter(())

    def candidates(self, search: Search) -> Iterator[fx.Node]:
        """Nodes where it may fit, found from what is bound already: the node itself, or users of
        candidates of what is below."""
        known = search.bound.get(self, _UNBOUND)
        if known is not _UNBOUND:
            if isinstance(known, fx.Node):
                yield known
            return
        seen: set[fx.Node] = set()
        for child in self.children():
            for node in child.candidates(search):
                for user in list(node.users):
                    if user not in seen and self.may_be(user):
                        seen.add(user)
                        yield user

    def may_be(self, node: fx.Node) -> bool:
        """Whether the node has the target that the expression asks for."""
        return False

    def pattern_eq(self, other: object) -> bool:
        """Whether two patterns say the same."""
        from torch._inductor._matching.printing import PatternPrettyPrinter

        return type(self) is type(other) and (
            PatternPrettyPrinter.run(self) == PatternPrettyPrinter.run(other)
        )

    def has_multiple_users(self) -> bool:
        """Whether the node may have more than one user."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Arg(PatternExpr):
    """Any value; it becomes the next positional argument of the handler."""

    def matches(self, value: object, search: Search) -> bool:
        search.args.append(value)
        return True


class Ignored(PatternExpr):
    """Any value; nobody asks for it."""

    def matches(self, value: object, search: Search) -> bool:
        return True

    def __repr__(self) -> str:
        return "*"


class KeywordArg(PatternExpr):
    """Any value; it becomes an argument of this name. The same name elsewhere is the same value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def matches(self, value: object, search: Search) -> bool:
        return search.name(self.name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class ExclusiveKeywordArg(KeywordArg):
    """A named node that nothing outside of the pattern uses."""

    def matches(self, value: object, search: Search) -> bool:
        if not isinstance(value, fx.Node) or len(value.users) != 1:
            return search.fail("{} has other users", value)
        return search.name(self.name, value)


class _Node(PatternExpr):
    """A node with one of some targets."""

    op = ""

    def __init__(self, fns: object, _users: Users = 1) -> None:
        many = list(fns) if isinstance(fns, (list, tuple, set)) else [fns]
        self.fns = list(many)
        for fn in many:
            if isinstance(fn, torch._ops.OpOverloadPacket):
                self.fns.extend(getattr(fn, overload) for overload in fn.overloads())
        self.fns_set = frozenset(self.fns)
        self.users = _users

    def has_multiple_users(self) -> bool:
        return isinstance(self.users, Multiple) or self.users > 1

    def may_be(self, node: fx.Node) -> bool:
        return isinstance(node, fx.Node) and node.op == self.op and self.target_of(node)

    def target_of(self, node: fx.Node) -> bool:
        """Whether the target is one of those asked for."""
        try:
            return node.target in self.fns_set
        except TypeError:
            return False

    def fits(self, value: object, search: Search) -> bool:
        """Kind, target and number of users."""
        if not isinstance(value, fx.Node) or not self.may_be(value):
            return search.fail("{} is no {} of {}", value, self.op, self.fns[0])
        if self in search.outputs or isinstance(self.users, Multiple):
            return True
        if len(value.users) != self.users:
            return search.fail("{} has {} users instead of {}", value, len(value.users), self.users)
        return True

    def fns_repr(self) -> str:
        """The targets in messages."""
        first = target_name(self.fns[0])
        return first if len(self.fns) == 1 else f"[{first}, ...]"


class _NodeWithArgs(_Node):
    """A node whose arguments are matched one by one."""

    def __init__(self, fns: object, *args: object, _users: Users = 1, **kwargs: object) -> None:
        super().__init__(fns, _users)
        self.args = tuple(args)
        self.kwargs = dict(kwargs)

    def children(self) -> Iterator[PatternExpr]:
        return iter(_patterns_in((self.args, self.kwargs)))

    def matches(self, value: object, search: Search) -> bool:
        if not self.fits(value, search):
            return False
        pairs = self._pairs(value)
        if pairs is None:
            return search.fail("{} has other arguments", value)
        for pattern, given in pairs:
            if not search.match(pattern, given):
                return False
        search.nodes[value] = None
        return True

    def _pairs(self, node: fx.Node) -> list[tuple[object, object]] | None:
        """Each part of the pattern beside the argument it is for. What the pattern leaves out must
        have its default."""
        args, kwargs = list(node.args), dict(node.kwargs)
        if len(args) == len(self.args) and set(kwargs) == set(self.kwargs):
            return [
                *zip(self.args, args, strict=True),
                *((self.kwargs[name], kwargs[name]) for name in self.kwargs),
            ]
        parameters = _parameters(node.target)
        if parameters is None:
            return None
        names = [name for name, _ in parameters]
        if len(self.args) > len(names) or len(args) > len(names):
            return None
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        asked = {**dict(zip(names, self.args, strict=False)), **self.kwargs}
        pairs = []
        for name, default in parameters:
            value = given.get(name, default)
            if name in asked:
                if value is _UNBOUND:
                    return None
                pairs.append((asked.pop(name), value))
            elif name in given and not _same_constant(value, default):
                return None
        return None if asked else pairs

    def __repr__(self) -> str:
        parts = [self.fns_repr(), *map(repr, self.args)]
        parts += [f"{name}={value!r}" for name, value in self.kwargs.items()]
        return f"{type(self).__name__}({', '.join(parts)})"


def _parameters(target: object) -> list[tuple[str, object]] | None:
    """Names and defaults of the parameters of an operator."""
    if isinstance(target, torch._ops.OpOverloadPacket):
        target = getattr(target, "default", None)
    if not isinstance(target, torch._ops.OpOverload):
        return None
    return [
        (a.name, a.default_value if a.has_default_value() else _UNBOUND)
        for a in target._schema.arguments
    ]


def _patterns_in(value: object) -> list[PatternExpr]:
    return [leaf for leaf in pytree.tree_leaves(value) if isinstance(leaf, PatternExpr)]


class CallFunction(_NodeWithArgs):
    """CallFunction(target or targets, *arguments, _users=1, **named arguments). A packet of
    operators stands for all its overloads."""

    op = "call_function"


class CallMethod(_NodeWithArgs):
    """A call of a method by its name."""

    op = "call_method"


class CallModule(_NodeWithArgs):
    """A call of a submodule, by its path or its class."""

    op = "call_module"

    def target_of(self, node: fx.Node) -> bool:
        owner = node.graph.owning_module
        module = owner.get_submodule(node.target) if owner is not None else None
        return node.target in self.fns_set or type(module) in self.fns_set


class _NodeAnyArgs(_Node):
    """A node with any arguments; they become those of the handler."""

    def matches(self, value: object, search: Search) -> bool:
        if not self.fits(value, search):
            return False
        search.args.extend(value.args)
        for name, given in value.kwargs.items():
            if not search.name(name, given):
                return False
        search.nodes[value] = None
        return True


class CallFunctionVarArgs(_NodeAnyArgs):
    """A call of a function with any arguments."""

    op = "call_function"


class CallMethodVarArgs(_NodeAnyArgs):
    """A call of a method with any arguments."""

    op = "call_method"


class CallModuleVarArgs(_NodeAnyArgs):
    """A call of a submodule with any arguments."""

    op = "call_module"

    target_of = CallModule.target_of


class ListOf(PatternExpr):
    """A list whose items all fit one pattern; with `partial`, some of them. Positional arguments
    found below become one tuple."""

    def __init__(self, pattern: PatternExpr, partial: bool = False) -> None:
        self.pattern = pattern
        self.partial = partial

    def children(self) -> Iterator[PatternExpr]:
        yield self.pattern

    def matches(self, value: object, search: Search) -> bool:
        if not isinstance(value, (list, tuple)) or not value:
            return search.fail("{} is no list of nodes", value)
        start, found = len(search.args), False
        for item in value:
            mark = search.mark()
            fits = isinstance(item, fx.Node) and search.match(self.pattern, item)
            if not fits and not self.partial:
                return search.fail("{} in a list does not fit", item)
            search.forget(mark, self.pattern)
            found = found or fits
        inner = search.args[start:]
        if inner:
            search.args[start:] = [tuple(inner)]
        return found

    def __repr__(self) -> str:
        return f"ListOf({self.pattern!r})"


class MultiOutputPattern(PatternExpr):
    """Several outputs that share something: the first is looked for, the others are found from it.
    None stands for an output that nobody needs."""

    def __init__(self, outputs: Sequence[PatternExpr | None]) -> None:
        if not isinstance(outputs[0], _Node):
            raise AssertionError(f"the first output of a pattern must be a call, got {outputs[0]}")
        self.outputs = list(outputs)
        self.op = outputs[0].op

    @property
    def fns(self) -> list[object]:
        """Targets of the first output."""
        return self.outputs[0].fns

    @property
    def fns_set(self) -> frozenset[object]:
        """Targets of the first output."""
        return self.outputs[0].fns_set

    def children(self) -> Iterator[PatternExpr]:
        return (output for output in self.outputs if output is not None)

    def match(self, node: fx.Node) -> object:
        from torch._inductor._matching.match import Match

        search = Search(self.outputs)
        if self.matches(node, search):
            return Match.of(search, self)
        return FailedMatch(*search.reason)

    def matches(self, value: object, search: Search) -> bool:
        if not search.match(self.outputs[0], value):
            return False
        return all(output is None or self._anywhere(output, search) for output in self.outputs[1:])

    def _anywhere(self, output: PatternExpr, search: Search) -> bool:
        if output in search.bound:
            return True
        for node in output.candidates(search):
            if search.match(output, node):
                return True
        return search.fail("no node fits the output {}", output)

    def __repr__(self) -> str:
        return f"MultiOutputPattern({self.outputs!r})"


class RepeatedExpr(PatternExpr):
    """A pattern that fits at every node which reads the same shared values."""

    def __init__(self, inner_pattern: _Node) -> None:
        self.inner_pattern = inner_pattern
        self.op = inner_pattern.op

    @property
    def fns(self) -> list[object]:
        """Targets of the repeated node."""
        return self.inner_pattern.fns

    @property
    def fns_set(self) -> frozenset[object]:
        """Targets of the repeated node."""
        return self.inner_pattern.fns_set

    def children(self) -> Iterator[PatternExpr]:
        yield self.inner_pattern

    def match(self, node: fx.Node) -> object:
        from torch._inductor._matching.match import Match

        search = Search([self.inner_pattern])
        if self.matches(node, search):
            return Match.of(search, self)
        return FailedMatch(*search.reason)

    def matches(self, value: object, search: Search) -> bool:
        start = search.mark()
        if not search.match(self.inner_pattern, value):
            return False
        search.forget(start, self.inner_pattern)
        for node in list(self.inner_pattern.candidates(search)):
            if node is value:
                continue
            mark = search.mark()
            if not search.match(self.inner_pattern, node):
                return False
            search.forget(mark, self.inner_pattern)
        return True
