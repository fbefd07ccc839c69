"""The data-only unpickler of torch.load: a machine over the opcodes that data needs, written so
that a pickle can build nothing but data. It imports nothing and looks up no attribute: a global is
a key of a fixed table, calling one goes through a checked function of that table, and each opcode
insists on the exact type of what it works on. It does not recurse on the input, all reads are
bounded by the bytes that are there, and so are the memory of what it builds and the time that
takes: a byte can stand for an object of hundreds of bytes or for a copy of all that came before,
and a compressed pickle for a thousand times its length, so all of these are counted."""

from __future__ import annotations

import itertools
import struct
from collections import Counter, OrderedDict

import torch
from torch._serialization.errors import FAULTS, CheckpointError, refused
from torch.nn.parameter import Parameter

__all__ = ["KeyGuard", "SafeUnpickler", "check_depth", "room_for", "steps_for"]

_MAX_DEPTH = 1000
_MAX_KEY_ITEMS = 100
_MAX_SAME_HASH = 1000
_ROOM = 48 << 20
_STEPS = 2_000_000
# Bytes that an object takes besides its elements, about.
_CALL_COST = 300
_MARK_COST, _TEXT_COST, _TUPLE_COST, _FROZENSET_COST = 48, 40, 40, 232
_MEMO_COST, _PAIR_COST, _MEMBER_COST = 80, 80, 40
_KEY_LEAVES = frozenset((str, bytes, bool, float, complex, type(None)))
_KEY_TORCH_TYPES = frozenset((torch.dtype, torch.device, torch.Size, torch.layout))
_LEAVES = _KEY_LEAVES | {int, bytearray}
_SEQUENCES = frozenset((list, tuple, set, frozenset))
_MAPPINGS = frozenset((dict, OrderedDict, Counter))
# Tensors are hashed and compared by identity where they are keys; not inside of tuples.
_BY_IDENTITY = frozenset((torch.Tensor, Parameter))
# The hash of these is arithmetic that a file can solve for keys that all share one.
_SOLVABLE = frozenset((tuple, frozenset, complex, torch.Size))
# Bytes per element that a call copies from an argument of the type, about.
_WEIGHTS = {str: 1, bytes: 1, bytearray: 1, tuple: 8, list: 24, dict: 24, OrderedDict: 24}


class _Mark:
    """Stands on the stack where the items of a container begin."""

    __slots__ = ()


_MARK = _Mark()


class KeyGuard:
    """Admits the keys of dicts and sets: plain values and short tuples of them, of which not too
    many may share a hash, since that makes a dict quadratic."""

    def __init__(self) -> None:
        self._first, self._same = {}, {}

    def check(self, key):
        """The key, or an error."""
        if type(key) in _BY_IDENTITY:
            return key
        # Hashing recurses into tuples, once for each way to reach an element.
        pending, visits = [key], 0
        while pending:
            item = pending.pop()
            visits += 1
            if visits > _MAX_KEY_ITEMS:
                raise refused("a key with too many elements")
            kind = type(item)
            if kind in _KEY_LEAVES:
                continue
            if kind is int:
                # Longer integers can be made to share one hash.
                if not -(1 << 63) <= item < (1 << 64):
                    raise refused("an integer of more than 64 bits as a key")
            elif kind is tuple or kind is frozenset:
                pending.extend(item)
            elif kind not in _KEY_TORCH_TYPES:
                raise refused(f"a key of type {kind.__name__} in a dict or set")
        if type(key) in _SOLVABLE:
            self._count(key)
        return key

    def _count(self, key) -> None:
        code = hash(key)
        if self._first.setdefault(code, key) != key:
            self._same[code] = self._same.get(code, 0) + 1
            if self._same[code] > _MAX_SAME_HASH:
                raise refused("many different keys have the same hash")


def room_for(pickled: int, file: int) -> int:
    """Memory for the objects of a pickle of that many bytes in a file of that many, which are fewer
    where the pickle is compressed."""
    return _ROOM + 12 * min(pickled, file) + file


def steps_for(file: int) -> int:
    """Opcodes that the pickle of a file of that many bytes may have."""
    return _STEPS + 8 * file


def _call_cost(args, depth=0) -> int:
    """Bytes that a call may copy: what its arguments hold, and the tensors that make another."""
    total = 0
    for item in args[:16]:
        kind = type(item)
        total += len(item) * _WEIGHTS[kind] if kind in _WEIGHTS else 0
        if kind is tuple and depth < 2:
            total += _call_cost(item, depth + 1)
        elif depth and kind is torch.Tensor:
            total += item.numel() * item.itemsize
    return total


def _children(item):
    """What can be reached from an object in one step; None for plain values."""
    kind = type(item)
    if kind in _LEAVES:
        return None
    if kind in _SEQUENCES:
        return list(item)
    inside = list(item.values()) if kind in _MAPPINGS else []
    attributes = getattr(item, "__dict__", None)
    if type(attributes) is dict:
        inside.extend(attributes.values())
    return inside or None


def check_depth(root) -> None:
    """Raises if containers are nested deeper than Python code can walk. Each is visited once, so
    the time is linear even where parts are shared; cycles are left alone."""
    depths, open_ids = {}, {id(root)}
    path = [[id(root), iter(_children(root) or ()), 1]]
    while path:
        frame = path[-1]
        for child in frame[1]:
            known = depths.get(id(child))
            if known is not None:
                frame[2] = max(frame[2], known + 1)
                continue
            inside = None if id(child) in open_ids else _children(child)
            if inside is not None:
                open_ids.add(id(child))
                path.append([id(child), iter(inside), 1])
                break
        else:
            path.pop()
            open_ids.discard(frame[0])
            depths[frame[0]] = frame[2]
            if path:
                path[-1][2] = max(path[-1][2], frame[2] + 1)
        if len(path) > _MAX_DEPTH or frame[2] > _MAX_DEPTH:
            raise refused(f"containers are nested more than {_MAX_DEPTH} deep")


class SafeUnpickler:
    """Executes one pickle in `data` from `start`; `end` is where it stopped.

    `table` has `find(module, name)`, `call(function, args)`, `cost(function, args)`,
    `new(cls, args)` and `build(object, state)`; `persistent_load(id)` gives the storage of a
    persistent id. `room` is the memory in bytes for containers and for what calls build, `steps`
    the number of opcodes; without them, as much as data that torch.save wrote can need.
    """

    def __init__(
        self, data, table, persistent_load, start=0, encoding="utf-8", room=None, steps=None
    ) -> None:
        self._room = room_for(len(data), len(data)) if room is None else room
        self._steps = steps_for(len(data)) if steps is None else steps
        self._keys = KeyGuard()
        self._data = data
        self._at = self._first = start
        self._table = table
        self._persistent_load = persistent_load
        self._encoding = encoding
        self._stack = []
        self._memo = {}
        self._marks = []
        self.end = start

    def load(self):
        """The object that the pickle describes."""
        try:
            result = self._run()
            check_depth(result)
            return result
        except (CheckpointError, MemoryError, torch.OutOfMemoryError):
            raise
        except RecursionError:
            raise refused("the data is nested too deeply") from None
        except FAULTS as error:
            raise refused(f"{type(error).__name__}: {error}") from error

    def _run(self):
        data, size, handlers = self._data, len(self._data), _HANDLERS
        for _ in itertools.repeat(None, self._steps):
            if self._at >= size:
                raise refused("the pickle is cut short")
            opcode = data[self._at]
            self._at += 1
            if opcode == 0x2E:
                break
            handler = handlers[opcode]
            if handler is None:
                raise refused(f"Unsupported operand {opcode} at byte {self._at - 1}")
            handler(self)
        else:
            raise refused(
                f"the pickle has more than {self._steps} opcodes, too many for a file of this "
                "size. If you trust it, torch.serialization.set_load_memory_limit allows more"
            )
        if len(self._stack) != 1 or self._stack[0] is _MARK:
            raise refused(f"the pickle ends with {len(self._stack)} items instead of one")
        self.end = self._at
        return self._stack.pop()

    # ---- operands and stack -------------------------------------------------------------------

    def _take(self, count) -> bytes:
        start = self._at
        if count > len(self._data) - start:
            raise refused(f"an operand of {count} bytes is cut short")
        self._at = start + count
        return self._data[start : start + count]

    def _number(self, form, count) -> float:
        return struct.unpack(form, self._take(count))[0]

    def _line(self) -> str:
        end = self._data.find(b"\n", self._at, self._at + 1024)
        if end < 0:
            raise refused("a name is cut short or too long")
        line = self._data[self._at : end]
        self._at = end + 1
        return bytes(line).decode("utf-8")

    def _pop(self):
        if not self._stack or self._stack[-1] is _MARK:
            raise refused("the pickle takes more from the stack than is there")
        return self._stack.pop()

    def _top(self):
        if not self._stack or self._stack[-1] is _MARK:
            raise refused("the pickle takes more from the stack than is there")
        return self._stack[-1]

    def _spend(self, count) -> None:
        self._room -= count
        if self._room < 0:
            raise refused(
                "the objects in the pickle need much more memory than a file of this size should. "
                "If you trust it, torch.serialization.set_load_memory_limit allows more"
            )

    def _pop_to_mark(self):
        if not self._marks:
            raise refused("a mark is missing")
        mark = self._marks.pop()
        items = self._stack[mark + 1 :]
        del self._stack[mark:]
        return items

    # ---- opcodes ------------------------------------------------------------------------------

    def _proto(self) -> None:
        version = self._number("<B", 1)
        if self._at != self._first + 2 or not 2 <= version <= 5:
            raise refused(f"pickle protocol {version} is not supported")

    def _frame(self) -> None:
        if self._number("<Q", 8) > len(self._data) - self._at:
            raise refused("a frame is cut short")

    def _mark(self) -> None:
        self._spend(_MARK_COST)
        self._marks.append(len(self._stack))
        self._stack.append(_MARK)

    def _pop_mark(self) -> None:
        self._pop_to_mark()

    def _long(self, form, count) -> None:
        length = self._number(form, count)
        if length < 0:
            raise refused("an integer of negative length")
        self._stack.append(int.from_bytes(self._take(length), "little", signed=True))

    def _unicode(self, form, count) -> None:
        self._spend(_TEXT_COST)
        text = bytes(self._take(self._number(form, count)))
        self._stack.append(text.decode("utf-8", "surrogatepass"))

    def _bytes(self, form, count, make=bytes) -> None:
        self._spend(_TEXT_COST)
        self._stack.append(make(self._take(self._number(form, count))))

    def _string(self, form, count) -> None:
        self._spend(_TEXT_COST)
        raw = bytes(self._take(self._number(form, count)))
        self._stack.append(raw if self._encoding == "bytes" else raw.decode(self._encoding))

    def _tuple(self, count) -> None:
        self._spend(_TUPLE_COST + 8 * count)
        items = [self._pop() for _ in range(count)]
        self._stack.append(tuple(reversed(items)))

    def _marked_tuple(self) -> None:
        items = self._pop_to_mark()
        self._spend(_TUPLE_COST + 8 * len(items))
        self._stack.append(tuple(items))

    def _append(self) -> None:
        value = self._pop()
        self._list_on_top().append(value)

    def _list_on_top(self):
        target = self._top()
        if type(target) is not list:
            raise refused(f"can only append to lists, not to {type(target).__name__}")
        return target

    def _appends(self) -> None:
        items = self._pop_to_mark()
        self._list_on_top().extend(items)

    def _set_items(self, items) -> None:
        if len(items) % 2:
            raise refused("a key without its value")
        target = self._top()
        if type(target) not in _MAPPINGS:
            raise refused(f"can only set items of dicts, not of {type(target).__name__}")
        self._spend(_PAIR_COST * (len(items) // 2))
        for i in range(0, len(items), 2):
            target[self._keys.check(items[i])] = items[i + 1]

    def _setitem(self) -> None:
        value = self._pop()
        key = self._pop()
        self._set_items([key, value])

    def _setitems(self) -> None:
        self._set_items(self._pop_to_mark())

    def _additems(self) -> None:
        items = self._pop_to_mark()
        target = self._top()
        if type(target) is not set:
            raise refused(f"can only add items to sets, not to {type(target).__name__}")
        self._spend(_MEMBER_COST * len(items))
        for item in items:
            target.add(self._keys.check(item))

    def _frozenset(self) -> None:
        items = self._pop_to_mark()
        self._spend(_FROZENSET_COST + _MEMBER_COST * len(items))
        self._stack.append(frozenset(map(self._keys.check, items)))

    def _put(self, index) -> None:
        if index not in self._memo:
            self._spend(_MEMO_COST)
        self._memo[index] = self._top()

    def _get(self, index) -> None:
        if index not in self._memo:
            raise refused(f"the memo has nothing under {index}")
        self._stack.append(self._memo[index])

    def _global(self) -> None:
        module = self._line()
        self._stack.append(self._table.find(module, self._line()))

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise refused("the name of a global is not text")
        self._stack.append(self._table.find(module, name))

    def _args(self):
        args = self._pop()
        if type(args) is not tuple:
            raise refused(f"arguments are {type(args).__name__}, not a tuple")
        return args

    def _reduce(self) -> None:
        args = self._args()
        function = self._pop()
        self._spend(_CALL_COST + _call_cost(args) + self._table.cost(function, args))
        self._stack.append(self._table.call(function, args))

    def _newobj(self) -> None:
        args = self._args()
        self._spend(_CALL_COST + _call_cost(args))
        self._stack.append(self._table.new(self._pop(), args))

    def _build(self) -> None:
        state = self._pop()
        self._spend(_call_cost((state,)))
        self._table.build(self._top(), state)

    def _binpersid(self) -> None:
        self._stack.append(self._persistent_load(self._pop()))


def _constant(value):
    return lambda vm: vm._stack.append(value)


def _fresh(make):
    cost = make().__sizeof__() + 16

    def push(vm) -> None:
        vm._spend(cost)
        vm._stack.append(make())

    return push


def _scalar(form, count):
    return lambda vm: vm._stack.append(vm._number(form, count))


def _handlers() -> list[None]:
    vm = SafeUnpickler
    table = [None] * 256
    for code, handler in {
        b"\x80": vm._proto,
        b"\x95": vm._frame,
        b"(": vm._mark,
        b"0": lambda m: m._pop() and None,
        b"1": vm._pop_mark,
        b"2": lambda m: m._stack.append(m._top()),
        b"N": _constant(None),
        b"\x88": _constant(True),
        b"\x89": _constant(False),
        b"J": _scalar("<i", 4),
        b"K": _scalar("<B", 1),
        b"M": _scalar("<H", 2),
        b"G": _scalar(">d", 8),
        b"\x8a": lambda m: m._long("<B", 1),
        b"\x8b": lambda m: m._long("<i", 4),
        b"X": lambda m: m._unicode("<I", 4),
        b"\x8c": lambda m: m._unicode("<B", 1),
        b"\x8d": lambda m: m._unicode("<Q", 8),
        b"B": lambda m: m._bytes("<I", 4),
        b"C": lambda m: m._bytes("<B", 1),
        b"\x8e": lambda m: m._bytes("<Q", 8),
        b"\x96": lambda m: m._bytes("<Q", 8, bytearray),
        b"T": lambda m: m._string("<I", 4),
        b"U": lambda m: m._string("<B", 1),
        b"]": _fresh(list),
        b"}": _fresh(dict),
        b"\x8f": _fresh(set),
        b")": _constant(()),
        b"t": vm._marked_tuple,
        b"\x85": lambda m: m._tuple(1),
        b"\x86": lambda m: m._tuple(2),
        b"\x87": lambda m: m._tuple(3),
        b"a": vm._append,
        b"e": vm._appends,
        b"s": vm._setitem,
        b"u": vm._setitems,
        b"\x90": vm._additems,
        b"\x91": vm._frozenset,
        b"q": lambda m: m._put(m._number("<B", 1)),
        b"r": lambda m: m._put(m._number("<I", 4)),
        b"\x94": lambda m: m._put(len(m._memo)),
        b"h": lambda m: m._get(m._number("<B", 1)),
        b"j": lambda m: m._get(m._number("<I", 4)),
        b"c": vm._global,
        b"\x93": vm._stack_global,
        b"R": vm._reduce,
        b"\x81": vm._newobj,
        b"b": vm._build,
        b"Q": vm._binpersid,
    }.items():
        table[code[0]] = handler
    return table


_HANDLERS = _handlers()
