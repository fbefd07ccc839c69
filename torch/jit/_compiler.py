"""From the syntax tree of a function to its graph: statements and control flow. Expressions are in
_expressions, calls in _calls, what a name can stand for in _sugar.

Variables are turned into single assignments while the tree is walked. Each block has a frame of
names; where blocks join, names that either assigned become outputs of the node. Leaving a block
early (return, break, continue) sets flags, and what follows goes into a block of its own that runs
only when none is set; where one branch always leaves, what follows goes into the other branch and
no flag is
needed. Flags that nobody reads are removed with other dead code."""

from __future__ import annotations

import ast
import importlib
import typing
from collections.abc import Callable, Sequence

from torch.jit import _types as T
from torch.jit._calls import Calls
from torch.jit._expressions import Expressions
from torch.jit._ir import Block, Graph, Node, Place, Value
from torch.jit._sugar import Module, Sugar, Undefined, iterable_of
from torch.jit._syntax import assigned_names, leaves_always, may_leave

Step = ast.stmt | Callable[[], None]


class Bottom(T.Type):
    """The type of a value that is never read."""

    kind_name = "AnyType"

    def __repr__(self) -> str:
        return "Any"


class Frame:
    """The names of one block."""

    def __init__(self, block: Block, parent: Frame | None) -> None:
        self.block, self.parent = block, parent
        self.names: dict[str, Value | Sugar] = {}

    def find(self, name: str) -> Value | Sugar | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.parent
        return None


class Compiler(Expressions, Calls):
    """Compiles one function. `resolve` gives what a free name stands for."""

    def __init__(self, function, source, resolve, types) -> None:
        self.function, self.source = function, source
        self.resolve, self.types = resolve, types
        self.graph = Graph()
        self.frame = Frame(self.graph.block, None)
        self.declared: dict[str, T.Type] = {}
        self.annotated: set[str] = set()  # those that the body itself declared
        self.left: str | None = None  # how the current block was left for good
        self.place_node: ast.AST | None = None
        self.loops = 0
        self.returned: T.Type | None = function.returns

    # ---- building

    def place(self) -> Place | None:
        node = self.place_node
        if node is None or not hasattr(node, "lineno"):
            return None
        return Place(self.source, node.lineno, node.col_offset, self.function.name)

    def fail(self, message: str, node: ast.AST | None = None) -> typing.NoReturn:
        """RuntimeError with the place in the source."""
        if node is not None:
            self.place_node = node
        place = self.place()
        raise RuntimeError(f"\n{message}:\n{place.text()}" if place else message)

    def node(
        self, kind: str, inputs: Sequence[Value] = (), types: Sequence[T.Type] = (), **attrs
    ) -> Node:
        made = Node(kind, self.frame.block, inputs, self.place())
        made.attrs.update(attrs)
        for t in types:
            made.add_output(t)
        self.frame.block.nodes_list.append(made)
        return made

    def value(self, kind: str, inputs: Sequence[Value], type: T.Type, **attrs) -> Value:
        return self.node(kind, inputs, (type,), **attrs).output()

    def const(self, value: object, type: T.Type | None = None) -> Value:
        known = type or T.infer(value)
        if known is None:
            self.fail(f"a constant of type {value.__class__} cannot be used in scripted code")
        return self.value("prim::Constant", (), known, value=value)

    def none(self) -> Value:
        return self.const(None, T.NoneT)

    def uninitialized(self, type: T.Type) -> Value:
        return self.value("prim::Uninitialized", (), type)

    # ---- names

    def define(self, name: str, value: Value | Sugar) -> None:
        if isinstance(value, Value) and not name.startswith("$") and not value.hint():
            value.setDebugName(name)
        self.frame.names[name] = value

    def assign(self, name: str, value: Value | Sugar, node: ast.AST) -> None:
        """An assignment of the program: inside a block the variable keeps its type."""
        outer = self.frame.parent.find(name) if self.frame.parent else None
        if isinstance(outer, Value) and isinstance(value, Module):
            self.fail(f"Cannot re-assign '{name}' to a value of type module", node)
        if (isinstance(outer, Value) and name not in self.frame.names) or (
            isinstance(outer, Value) and isinstance(self.frame.names.get(name), Value)
        ):
            value = self.as_value(value)
            wanted = self.declared.get(name) or outer.type()
            value = self.fit_assigned(value, wanted)
            if not T.is_subtype(value.type(), wanted) and not isinstance(outer.type(), Bottom):
                self.fail(
                    f"Variable '{name}' previously had type {wanted.annotation_str} but is now "
                    f"being"
                    f" assigned to a value of type {value.type().annotation_str}",
                    node,
                )
        elif name in self.annotated and (isinstance(value, Value) or hasattr(value, "items")):
            # Where nothing else holds the variable, it may get a value of another type.
            fitted = self.fit_assigned(self.as_value(value), self.declared[name])
            if T.is_subtype(fitted.type(), self.declared[name]):
                value = fitted
            else:
                self.annotated.discard(name)
        if name not in self.annotated and self.frame.parent is None:
            self.declared.pop(name, None)
        self.define(name, value)

    def fit_assigned(self, value: Value, wanted: T.Type) -> Value:
        """An empty list or dictionary takes the type of the variable, a tuple may become a list."""
        plain = wanted.element if isinstance(wanted, T.OptionalType) else wanted
        if value.type() is T.Number and plain in (T.Float, T.Int):  # of x.item()
            return self.op("aten::Float" if plain is T.Float else "aten::Int", [value])
        if isinstance(value.type(), T.TupleType) and isinstance(plain, T.ListType):
            return self.try_fit(value, wanted) or value
        origin = value.origin
        if isinstance(origin, Node) and origin.attrs.get("untyped") and value.type() is not wanted:
            if isinstance(wanted, T.ListType | T.DictType) and origin.kind_name.startswith(
                ("prim::ListC", "prim::DictC")
            ):
                return self.value(origin.kind_name, (), wanted)
        return value

    # ---- blocks

    def in_block(self, block: Block, body: Callable[[], None]) -> tuple[Frame, str | None]:
        """Runs `body` with a frame of its own; the frame and how the block was left."""
        frame, before = Frame(block, self.frame), self.left
        outer, self.frame, self.left = self.frame, frame, None
        try:
            body()
            return frame, self.left
        finally:
            self.frame, self.left = outer, before

    def branch(self, condition: Value, then: Callable[[], None], other: Callable[[], None]) -> None:
        """An If whose branches may assign names; the names of both are joined."""
        node = self.node("prim::If", (condition,))
        sides = []
        for body in (then, other):
            block = node.add_block()
            frame, left = self.in_block(block, body)
            sides.append((frame, left))
        self.join(node, sides)
        if all(left for _, left in sides):
            self.left = "both"

    def join(self, node: Node, sides: list[tuple[Frame, str | None]]) -> None:
        names = list(dict.fromkeys(n for frame, _ in sides for n in frame.names))
        for name in names:
            values = [frame.find(name) for frame, _ in sides]
            gone = [left for _, left in sides]
            joined = self.join_name(node, name, sides, values, gone)
            if joined is not None:
                self.define(name, joined)

    def join_name(self, node, name, sides, values, gone) -> Value | Sugar | None:
        if values[0] is values[1]:
            # Both may return one value that was there before, under a name that is new.
            return None if self.frame.find(name) is values[0] else values[0]
        if name in ("$left", "$broke", "$returned"):
            values = [v if v is not None else False for v in values]
        for i in (0, 1):
            other = values[1 - i]
            missing = values[i] is None or isinstance(values[i], Undefined)
            if not missing and not (gone[i] == "raise" or (gone[i] == "return" and name[0] != "$")):
                continue
            # The branch never arrives, or nobody can read what it leaves.
            if (gone[i] or name == "$return") and isinstance(other, Value):
                if missing or name[0] != "$":
                    values[i] = self.at_end(
                        sides[i][0], lambda o=other: self.uninitialized(o.type())
                    )
            elif (gone[i]) and isinstance(other, Sugar) and not isinstance(other, Undefined):
                return other
            elif missing:
                word = "true" if i == 0 else "false"
                return Undefined(f"{name} is not defined in the {word} branch")
        made = []
        for (frame, _), value in zip(sides, values, strict=True):
            if value is False:
                made.append(self.at_end(frame, lambda: self.const(False)))
            elif isinstance(value, Value):
                made.append(value)
            else:
                try:
                    made.append(self.at_end(frame, lambda v=value: self.as_value(v)))
                except RuntimeError:
                    return Undefined(f"{name} is not a value that both branches can give")
        types = [v.type() for v in made]
        plain = [t for t in types if not isinstance(t, Bottom)]
        if _uninitialized(made[0]) or _uninitialized(made[1]):
            kind = types[1] if _uninitialized(made[0]) else types[0]
        else:
            kind = plain[0] if len(plain) == 1 else T.unify(*types)
        declared = self.declared.get(name)
        if kind is None and declared is not None and all(T.is_subtype(t, declared) for t in types):
            kind = declared
        wanted = self.function.returns
        if name == "$return" and wanted is not None:
            if all(T.is_subtype(t, wanted) for t in types):
                kind = wanted
        if kind is None and name == "$return":
            kind = self.join_returns(types)
        if kind is None:
            return Undefined(
                f"Type mismatch: {name} is set to type {types[0].annotation_str} in the true "
                f"branch "
                f"and type {types[1].annotation_str} in the false branch"
            )
        for (frame, _), value in zip(sides, made, strict=True):
            frame.block.results.append(value)
        return node.add_output(kind, name if name[0] != "$" else "")

    def join_returns(self, types: list[T.Type]) -> T.Type:
        self.fail(
            f"Previous return statement returned a value of type {types[0].annotation_str} but "
            f"this "
            f"return statement returns a value of type {types[1].annotation_str}"
        )

    def at_end(self, frame: Frame, make: Callable[[], Value]) -> Value:
        """A value made at the end of a block that is already compiled."""
        outer, self.frame = self.frame, frame
        try:
            return make()
        finally:
            self.frame = outer

    # ---- statements

    def statements(self, steps: Sequence[Step]) -> None:
        """Compiles statements in order; what follows one that may leave runs behind a flag."""
        for i, step in enumerate(steps):
            if self.left:
                return
            if not isinstance(step, ast.AST):
                step()
                continue
            self.place_node = step
            rest = steps[i + 1 :]
            if isinstance(step, ast.If):
                if self.if_statement(step, rest):
                    return
            elif isinstance(step, ast.With):
                self.statements([*self.with_steps(step), *rest])
                return
            elif isinstance(step, ast.For) and (items := self.static_items(step)) is not None:
                self.statements([*self.unrolled(step, items), *rest])
                return
            else:
                getattr(self, "do_" + type(step).__name__, self.unsupported)(step)
                if isinstance(step, ast.For | ast.While) and may_leave([step], ("return",)):
                    self.guarded(rest)
                    return

    def unsupported(self, node: ast.AST) -> typing.NoReturn:
        from torch.jit.frontend import UnsupportedNodeError

        self.place_node = node
        place = self.place()
        name = type(node).__name__
        raise UnsupportedNodeError(place, f"{name} statements aren't supported")

    def guarded(self, rest: Sequence[Step]) -> None:
        """Runs `rest` unless a flag says that control has left."""
        flag = self.frame.find("$left")
        if flag is None:
            self.statements(rest)
            return

        def gone() -> None:
            self.left = "flag"

        self.branch(flag, gone, lambda: self.statements(rest))

    def if_statement(self, step: ast.If, rest: Sequence[Step]) -> bool:
        """True when `rest` was compiled as well."""
        condition = self.condition(step.test)
        if condition.static is not None:
            chosen = step.body if condition.static else step.orelse
            (condition.refine_true if condition.static else condition.refine_false)(self)
            self.statements([*chosen, *rest])
            return True
        then, other = step.body, step.orelse
        consumed = False
        if leaves_always(then):
            other, consumed = [*other, *rest], True
        elif leaves_always(other):
            then, consumed = [*then, *rest], True

        def run(body, refine):
            def inside() -> None:
                refine(self)
                self.statements(body)

            return inside

        # What follows may leave, too: then the flag of this statement is already known.
        self.branch(
            condition.value, run(then, condition.refine_true), run(other, condition.refine_false)
        )
        if consumed:
            return True
        if may_leave([step], ("return", "break", "continue")):
            if not self.left:
                self.guarded(rest)
            return True
        return bool(self.left)

    def do_Expr(self, step: ast.Expr) -> None:
        if not isinstance(step.value, ast.Constant):
            self.expression(step.value)

    def do_Pass(self, step: ast.Pass) -> None:
        pass

    def do_Return(self, step: ast.Return) -> None:
        wanted = self.function.returns
        value = self.expression(step.value, wanted) if step.value else self.none()
        value = self.as_value(value)
        if wanted is not None:
            value = self.fit_return(value, wanted)
        self.define("$return", value)
        for flag in ("$left", "$returned", "$broke"):
            self.define(flag, self.const(True))
        self.left = "return"

    def fit_return(self, value: Value, wanted: T.Type) -> Value:
        fitted = self.try_fit(value, wanted)
        if fitted is None:
            self.fail(
                f"Return value was annotated as having type {wanted.annotation_str} but is "
                f"actually "
                f"of type {value.type().annotation_str}"
            )
        if fitted.type() is not wanted and wanted is T.Any:
            return fitted
        return fitted

    def do_Break(self, step: ast.Break) -> None:
        if not self.loops:
            self.fail("SyntaxError: 'break' outside loop", step)
        for flag in ("$left", "$broke"):
            self.define(flag, self.const(True))
        self.left = "break"

    def do_Continue(self, step: ast.Continue) -> None:
        if not self.loops:
            self.fail("SyntaxError: 'continue' not properly in loop", step)
        self.define("$left", self.const(True))
        self.left = "continue"

    def do_Raise(self, step: ast.Raise) -> None:
        if step.exc is None:
            message, cls = self.const(""), self.none()
        else:
            message, cls = self.exception(step.exc)
        self.node("prim::RaiseException", (message, cls))
        self.left = "raise"

    def do_Assert(self, step: ast.Assert) -> None:
        condition = self.condition(step.test)

        def ok() -> None:
            condition.refine_true(self)

        def failed() -> None:
            message = self.const("AssertionError: ")
            if step.msg is not None:
                text = self.op("aten::str", [self.as_value(self.expression(step.msg))])
                message = self.op("aten::add", [message, text])
            self.node("prim::RaiseException", (message, self.none()))
            self.left = "raise"

        if condition.static is True:
            ok()
            return
        if condition.static is False:
            failed()
            return
        self.branch(condition.value, ok, failed)

    def do_Assign(self, step: ast.Assign) -> None:
        value = self.expression(step.value)
        for target in step.targets:
            self.store(target, value, step)

    def do_AnnAssign(self, step: ast.AnnAssign) -> None:
        if step.value is None:
            self.fail("Type annotations without assigned value are not supported", step)
        wanted = self.types.of_ast(step.annotation, self)
        if isinstance(step.target, ast.Attribute) and self.function.name != "__init__":
            self.place_node = step
            raise ValueError(
                "Type annotations on instance attributes must be declared in __init__, not in "
                f"'{self.function.name}':\n{self.place().text()}"
            )
        self.check_container(step.value, wanted)
        value = self.as_value(self.expression(step.value, wanted))
        fitted = self.try_fit(value, wanted)
        if fitted is None:
            target = ast.unparse(step.target)
            self.fail(
                f"Variable '{target}' is annotated with type {wanted.annotation_str} but is being "
                f"assigned to a value of type {value.type().annotation_str}",
                step,
            )
        if isinstance(step.target, ast.Name):
            self.declared[step.target.id] = wanted
            self.annotated.add(step.target.id)
        if fitted.type() is not wanted:
            fitted = self.value("prim::annotate", (fitted,), wanted)
        self.store(step.target, fitted, step)

    def check_container(self, node: ast.expr, wanted: T.Type) -> None:
        """A list or dictionary that is written out needs an annotation that can hold one."""
        for syntax, kind, name in (
            (ast.List | ast.ListComp, T.ListType, "List"),
            (ast.Dict | ast.DictComp, T.DictType, "Dict"),
        ):
            if not isinstance(node, syntax) or wanted is T.Any:
                continue
            if any(isinstance(t, kind) for t in T.members(wanted)):
                continue
            if isinstance(wanted, T.UnionType):
                self.fail(
                    f"Expected an Union type annotation with an inner {name} type, but got "
                    f"{wanted.annotation_str}",
                    node,
                )
            self.fail(
                f"Expected an annotation of type {name} but got {wanted.annotation_str}", node
            )

    def do_AugAssign(self, step: ast.AugAssign) -> None:
        self.augmented(step)

    def do_Delete(self, step: ast.Delete) -> None:
        for target in step.targets:
            if isinstance(target, ast.Subscript):
                self.place_node = target
                where = self.as_value(self.expression(target.value))
                index = self.as_value(self.expression(target.slice))
                if isinstance(where.type(), T.ClassType):
                    if "__delitem__" not in where.type().methods:
                        self.fail("Class does not define __delitem__", target)
                    self.call_method(where, "__delitem__", [index], {})
                    continue
                self.op("aten::Delete", [where, index])
            elif isinstance(target, ast.Name):
                self.define(target.id, Undefined(f"{target.id} was deleted"))
            else:
                self.fail("del can only be used with a variable, a list or a dictionary", step)

    def do_FunctionDef(self, step: ast.FunctionDef) -> None:
        from torch.jit._sugar import Closure

        self.define(step.name, Closure(step, self))

    def do_ImportFrom(self, step: ast.ImportFrom) -> None:
        """Functions of the library import late; programs of users cannot."""
        from torch.jit._resolve import sugar

        if step.level or not (step.module or "").startswith("torch.") or not self.types.live:
            self.unsupported(step)
        module = importlib.import_module(step.module)
        for alias in step.names:
            self.define(alias.asname or alias.name, sugar(getattr(module, alias.name), self))

    # ---- loops

    def do_While(self, step: ast.While) -> None:
        self.loop(step.body, None, lambda: self.condition_value(step.test), step)

    def do_For(self, step: ast.For) -> None:
        items = iterable_of(self, self.expression(step.iter))
        length = items.length(self)

        def bind(index: Value) -> None:
            self.store(step.target, items.item(self, index), step)

        self.loop(step.body, (length, bind), None, step)

    def static_items(self, step: ast.For) -> list[Value | Sugar] | None:
        """The items of a loop whose length the compiler knows, which is unrolled."""
        before = len(self.frame.block.nodes_list)
        source = self.expression(step.iter)
        items = iterable_of(self, source).static(self)
        if items is None:
            del self.frame.block.nodes_list[before:]
        return items

    def unrolled(self, step: ast.For, items: list[Value | Sugar]) -> list[Step]:
        if may_leave(step.body, ("break", "continue")):
            self.fail(
                "loops over modules and tuples are unrolled: we do not support break or continue "
                "inside of them",
                step,
            )
        steps: list[Step] = []
        for item in items:
            steps.append(lambda item=item: self.store(step.target, item, step))
            steps.extend(step.body)
        return steps

    def loop(self, body, counted, condition, step) -> None:
        leaves = may_leave(body, ("break", "return"))
        returns = may_leave(body, ("return",))
        forever = self.const(2**63 - 1)
        count = counted[0] if counted else forever
        start = condition() if condition else self.const(True)
        if returns:
            self.define("$returned", self.const(False))
            if self.frame.find("$return") is None:
                kind = self.function.returns or Bottom.of()
                self.define("$return", self.uninitialized(kind))
        carried = [n for n in assigned_names(body, step) if isinstance(self.frame.find(n), Value)]
        flags = (["$broke"] if leaves else []) + (["$returned", "$return"] if returns else [])
        if leaves:
            self.define("$broke", self.const(False))
        initial = [self.carried_initial(n) for n in (*carried, *flags)]
        node = self.node("prim::Loop", (count, start, *initial))
        block = node.add_block()
        index = block.add_param(T.Int)
        outer_left = self.frame.find("$left")

        def inside() -> None:
            for name, value in zip((*carried, *flags), initial, strict=True):
                self.frame.names[name] = block.add_param(value.type(), _shown(name))
            self.define("$left", self.const(False))
            if counted:
                counted[1](index)
            self.loops += 1
            self.statements(body)
            self.loops -= 1
            self.left = None
            self.loop_end(block, condition, leaves)
            self.close_loop(node, block, carried, flags, initial)

        self.in_block(block, inside)
        if returns:
            self.define("$left", self.frame.find("$returned"))
        elif outer_left is not None:
            self.define("$left", outer_left)

    def carried_initial(self, name: str) -> Value:
        value = self.frame.find(name)
        declared = self.declared.get(name)
        if declared is not None and declared is not value.type():
            return self.value("prim::annotate", (value,), declared)
        return value

    def loop_end(self, block: Block, condition, leaves: bool) -> None:
        go_on = None
        if leaves:
            broke = self.frame.find("$broke")
            if condition:
                node = self.node("prim::If", (broke,))
                for i, make in enumerate((lambda: self.const(False), condition)):
                    inner = node.add_block()

                    def run(make=make, inner=inner) -> None:
                        inner.results.append(make())

                    self.in_block(inner, run)
                    del i
                go_on = node.add_output(T.Bool)
            else:
                go_on = self.op("aten::__not__", [broke])
        elif condition:
            go_on = condition()
        else:
            go_on = self.const(True)
        block.results.append(go_on)

    def close_loop(self, node, block, carried, flags, initial) -> None:
        names = (*carried, *flags)
        for i, (name, first) in enumerate(zip(names, initial, strict=True)):
            value = self.as_value(self.frame.find(name))
            kind = first.type()
            if isinstance(kind, Bottom) and not isinstance(value.type(), Bottom):
                kind = value.type()
                _retype(first, kind)
                block.params[i + 1].setType(kind)
            elif not T.is_subtype(value.type(), kind) and not isinstance(value.type(), Bottom):
                grown = T.unify(value.type(), kind) if _uninitialized(first) else None
                if grown is None:
                    self.fail(
                        f"Variable '{name}' previously had type {kind.annotation_str} but is now "
                        f"being assigned to a value of type {value.type().annotation_str}"
                    )
                kind = grown
            block.results.append(value)
            self.frame.parent.names[name] = node.add_output(kind, _shown(name))

    # ---- with

    def with_steps(self, step: ast.With) -> list[Step]:
        """The statements of a with block between what enters and what leaves its contexts."""
        from torch.jit._contexts import enter

        steps: list[Step] = []
        leave: list[Step] = []
        for item in step.items:
            made = enter(self, item)
            steps.append(made.enter)
            leave.insert(0, made.leave)
        steps.extend(step.body)
        if leaves_always(step.body):
            steps[-1:] = [*_before_return(self, step.body[-1], leave)]
            return steps
        return [*steps, *leave]


def _before_return(compiler: Compiler, last: ast.stmt, leave: list[Step]) -> list[Step]:
    """A return at the end of a with block: the value is made inside, the contexts left before."""
    if not isinstance(last, ast.Return) or last.value is None:
        return [*leave, last] if not isinstance(last, ast.If) else [last, *leave]
    kept: list[Value] = []

    def keep() -> None:
        compiler.place_node = last
        value = compiler.expression(last.value, compiler.function.returns)
        compiler.define("$kept", compiler.as_value(value))
        kept.append(compiler.as_value(value))

    back = ast.copy_location(
        ast.Return(ast.copy_location(ast.Name("$kept", ast.Load()), last)), last
    )
    return [keep, *leave, back]


def _shown(name: str) -> str:
    return "" if name.startswith("$") else name


def _uninitialized(value: Value) -> bool:
    return isinstance(value.origin, Node) and value.origin.kind_name == "prim::Uninitialized"


def _retype(value: Value, kind: T.Type) -> None:
    value.setType(kind)
    if isinstance(value.origin, Node) and value.origin.kind_name == "prim::annotate":
        _retype(value.origin.input(), kind)
