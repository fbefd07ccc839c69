"""The runner of other projects' suites: ids and options must not depend on where the unpacked
source lies, which may be below a tree that has a configuration of its own."""

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "tools" / "ecosystem"


@pytest.fixture
def runner(monkeypatch):
    pytest.importorskip("pip")
    monkeypatch.syspath_prepend(str(FOLDER))
    import project
    import suite

    return project.Project, suite


def unpacked(tmp_path, files):
    """A work folder below a tree whose options no foreign suite knows."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--unknown"\n')
    work = tmp_path / "build" / "run-ours"
    for name, text in {"tests/test_one.py": "def test_one(): pass\n", **files}.items():
        path = work / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return work


def collected(suite, project, work):
    words = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    words += [*suite.place_of(project, work), *project.tests]
    environment = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    done = subprocess.run(
        words, cwd=work / "src" / project.cwd, env=environment, capture_output=True, text=True
    )
    return done.stdout.splitlines()[0] if done.stdout else done.stderr


def test_options_of_the_tree_around_a_source_do_not_hold(runner, tmp_path):
    make, suite = runner
    work = unpacked(tmp_path, {"pyproject.toml": "[project]\nname = 'x'\n"})
    project = make("x", [], sdist="x==1", tests=["tests"])
    assert "-c" in suite.place_of(project, work)
    assert collected(suite, project, work) == "tests/test_one.py::test_one"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.ini", ""),
        ("tox.ini", "[pytest]\n"),
        ("setup.cfg", "[metadata]\nname = x\n[tool:pytest]\n"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n"),
        ("tests/pytest.ini", "[pytest]\n"),
    ],
)
def test_a_source_keeps_its_own_options(runner, tmp_path, name, text):
    make, suite = runner
    work = unpacked(tmp_path, {name: text})
    project = make("x", [], sdist="x==1", tests=["tests"])
    assert suite.place_of(project, work) == [f"--rootdir={work / 'src'}"]
    assert collected(suite, project, work) == "tests/test_one.py::test_one"


def test_ids_start_where_pytest_starts(runner, tmp_path):
    make, suite = runner
    work = unpacked(tmp_path, {"part/tests/test_two.py": "def test_two(): pass\n"})
    project = make("x", [], sdist="x==1", tests=["tests"], cwd="part")
    assert collected(suite, project, work) == "tests/test_two.py::test_two"
