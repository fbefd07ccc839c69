"""tools/build/progress.py says how far a build is, and hides nothing the compiler says."""

import importlib.util
import io
import pathlib

PATH = pathlib.Path(__file__).resolve().parents[2] / "tools/build/progress.py"
spec = importlib.util.spec_from_file_location("progress", PATH)
progress = importlib.util.module_from_spec(spec)
spec.loader.exec_module(progress)


def shown(*lines, every=0.0):
    out = io.StringIO()
    progress.show([line + "\n" for line in lines], out, every)
    return out.getvalue()


def test_compiler_messages_pass_unchanged():
    assert shown("a.cpp:3: error: no", every=60.0) == "a.cpp:3: error: no\n"


def test_last_file_is_always_shown():
    assert "2 of 2 files" in shown("[1/2] Building a", "[2/2] Linking", every=60.0)


def test_time_left_is_estimated_once_enough_files_are_done():
    assert "left" not in progress.status_line(5, 100, 10)
    assert progress.status_line(50, 100, 150).endswith("about 2 min 30 s left")
    assert "left" not in progress.status_line(100, 100, 150)
