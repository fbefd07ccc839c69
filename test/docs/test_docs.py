"""The code in the documentation runs, page by page, as a reader would type it; the tables of the
migration page follow the package."""

import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import torch

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md") if "```python" in page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_a_page_run_in_order(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    namespace = {"__name__": f"docs.{page.stem}"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert blocks


def test_page_of_symbolic_sizes_states_how_many_operators_fix_them():
    # In a process of its own: operators that other tests define would be counted.
    tool = DOCS.parent / "tools" / "symbolic_ops.py"
    done = subprocess.run([sys.executable, tool], capture_output=True, text=True, check=True)
    ran, fixed = re.findall(r"\d+", done.stdout)
    text = " ".join((DOCS / "symbolic_shapes.md").read_text().split())
    assert f"counts and lists these operators: {fixed} of the {ran} that run" in text


@pytest.fixture(scope="module")
def migration():
    """The tool that fills in the tables of the migration page."""
    pytest.importorskip("yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS.parent / "tools"))
        yield importlib.import_module("migration")


@pytest.fixture(scope="module")
def packages(migration):
    return migration.names_by_package()


def test_migration_counts_names_to_use_and_names_that_raise(migration, packages):
    works = packages["torch.nn"][0]
    assert {"torch.nn.Linear", "torch.nn.functional.relu", "torch.nn.init.zeros_"} <= works
    assert not any(re.search(r"\._", path) for names in packages.values() for path in names[0])
    raising = {path for _, names in packages.values() for path in names}
    assert raising, "the section of missing names would be empty"
    for path in sorted(raising)[::20]:
        module, _, name = path.rpartition(".")
        with pytest.raises(NotImplementedError):
            getattr(importlib.import_module(module), name)()


def test_migration_lists_a_package_under_same_or_missing(migration, packages):
    operators, formulas = migration.load_tables()
    same = migration.same(packages, operators)
    missing = migration.missing(packages, operators, formulas)
    for name, (works, raises) in packages.items():
        row = f"| `{name}` |"
        assert (row in same) + (row in missing) == bool(works or raises), name
    assert "| `torch.nn` |" in same and "| `torch.mps` |" in missing
    for name in migration.ABSENT:
        assert not getattr(torch, name.removeprefix("torch.")).is_available()


def test_migration_page_has_a_place_for_every_table(migration):
    text = (DOCS / "migration.md").read_text()
    filled = migration.fill(text, {"same": "| A |\n", "better": "| B |\n", "missing": "| C |\n"})
    assert re.findall(r"^\| ([ABC]) \|$", filled, re.M) == ["A", "B", "C"]
    assert "<!-- table" not in filled
    with pytest.raises(SystemExit, match="markers"):
        migration.fill("no tables\n", {"same": ""})


def test_migration_takes_measurements_from_the_readme(migration, monkeypatch):
    monkeypatch.setattr(migration, "import_cost", lambda: "import torch: 1 ms")
    text = migration.better()
    assert "| what | Cresset | PyTorch | ratio |" in text and "import torch: 1 ms" in text
    assert "## " not in text
