"""torch.utils._traceback: short forms, captured stacks, sources of generated code."""

import pickle
import traceback

import pytest

from torch.utils._traceback import (
    CapturedTraceback,
    format_traceback_short,
    report_compile_source_on_error,
    shorten_filename,
)


def test_errors_of_generated_code_show_its_source():
    source = "def f(x):\n    raise ValueError(x)  # the line\n"
    made = {}
    exec(compile(source, "<string>", "exec"), {"__compile_source__": source}, made)
    with pytest.raises(ValueError, match="3") as caught, report_compile_source_on_error():
        made["f"](3)
    assert "# the line" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_a_captured_stack_names_its_functions_and_skips_the_innermost():
    def inner(skip):
        return CapturedTraceback.extract(skip=skip)

    whole, outer = inner(0), inner(1)
    assert whole.summary()[-1].name == "inner"
    assert outer.summary()[-1].name.startswith("test_a_captured_stack_names")
    assert "inner(0), inner(1)" in "".join(outer.format())
    assert CapturedTraceback.format_all([whole, outer])[1] == outer.format()


def test_a_captured_stack_can_be_pickled_and_emptied():
    captured = CapturedTraceback.extract()
    again = pickle.loads(pickle.dumps(captured))
    assert [frame.name for frame in again.summary()] == [f.name for f in captured.summary()]
    captured.cleanup()
    assert captured.format() == []


def test_short_forms_leave_out_the_folder():
    assert shorten_filename("/a/b/c.py", base="/a") == "b/c.py"
    assert shorten_filename("/x/c.py", base="/a") == "/x/c.py"
    try:
        raise RuntimeError
    except RuntimeError as error:
        assert "in test_short_forms_leave_out_the_folder" in format_traceback_short(
            error.__traceback__
        )
