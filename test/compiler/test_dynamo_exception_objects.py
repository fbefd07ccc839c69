"""Exceptions whose class in C takes its arguments apart (errno, msg, start, ...), compiled: what is
read, set, shown and handed over at a break is what plain Python has."""

import collections
import errno

import pytest

import torch

FIELDS = "errno strerror filename msg name path start end reason value code text offset".split()


def outcome(fn):
    try:
        return fn(torch.ones(2))
    except Exception as error:
        parts = [repr(getattr(error, name, None)) for name in FIELDS]
        return type(error), str(error), error.args, repr(vars(error)), parts


def unicode_fields(x):
    error = UnicodeEncodeError("baz", "xxxxx", 1, 5, "foo")
    shown = [str(error)]
    error.end = 2
    shown.append(str(error))
    error.reason = "other"
    return shown, str(error), error.encoding, error.object, error.start, error.end


def unicode_field_of_another_type(x):
    UnicodeEncodeError("baz", "xxxxx", 1, 5, "foo").end = "x"


def import_error_across_a_break(x):
    error = ImportError("test", name="n", path="p")
    error.args = ("q",)
    before = [error.args, error.msg, error.name, error.path, str(error)]
    error.msg = "new"
    torch._dynamo.graph_break()
    return before, error.msg, error.name, error.args, str(error)


def syntax_error_across_a_break(x):
    error = SyntaxError("bad", ("bad.py", 1, 2, "abc", 1, 100))
    before = error.filename, error.lineno, error.offset, error.text, error.msg, error.end_offset
    torch._dynamo.graph_break()
    return before, error.filename, error.end_lineno, str(error)


def number_chooses_the_class(x):
    try:
        raise OSError(errno.ENOENT, "nope", "file")
    except FileNotFoundError as error:
        before = error.errno, error.strerror, error.filename, error.args, str(error)
        torch._dynamo.graph_break()
        return before, error.filename, error.args, type(error).__name__


def left_by_an_os_error(x):
    raise OSError(errno.EACCES, "no")


def left_by_an_import_error(x):
    raise ImportError("m", name="abc")


def left_by_a_decode_error(x):
    raise UnicodeDecodeError("utf-8", b"abc", 0, 1, "why")


def keywords_of_a_plain_class(x):
    raise ValueError(x=1)


def tensor_in_stop_iteration(x):
    return (StopIteration(x).value + 1).tolist()


def two_arguments_of_system_exit(x):
    return SystemExit(3, 4).code, SystemExit(3).code, SystemExit().code


def own_init_without_the_base(x):
    class Own(OSError):
        def __init__(self, a):
            self.a = a

    error = Own(3)
    return error.args, error.errno, str(error), error.a


def own_init_with_the_base(x):
    class Own(ImportError):
        def __init__(self, a):
            super().__init__(a, name="q")

    error = Own(3)
    before = error.args, error.msg, error.name, str(error)
    torch._dynamo.graph_break()
    return before, error.args, error.msg, error.name, str(error)


def raised_by_a_method(x):
    try:
        b"\xff".decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start, error.end, error.reason, error.object


def name_of_an_attribute_error(x):
    try:
        _ = [].nothing
    except AttributeError as error:
        return error.name, AttributeError("q", name="n", obj=3).obj, NameError("a").name


def traceback_of_another_type(x):
    ValueError(1).__traceback__ = 5


def cause_of_another_type(x):
    ValueError(1).__cause__ = 5


def raised_from_a_number(x):
    raise ValueError from 5


def circle_of_contexts(x):
    try:
        try:
            raise ValueError(1)
        except ValueError as inner:
            inner.__context__ = inner
            raise TypeError(2)  # noqa: B904
    except TypeError as error:
        return type(error.__context__), error.__context__.__context__ is error.__context__


def module_of_a_named_tuple(x):
    return collections.namedtuple("Pair", "a b").__module__


PROGRAMS = [
    value for value in list(globals().values()) if getattr(value, "__module__", "") == __name__
    and value is not outcome
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda fn: fn.__name__)
def test_exception_is_that_of_plain_python(program):
    torch._dynamo.reset()
    assert outcome(torch.compile(program, backend="eager")) == outcome(program)
