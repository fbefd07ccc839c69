"""The code in the documentation runs, page by page, as a reader would type it."""

import pathlib
import re

import pytest

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
PAGES = sorted(page for page in DOCS.glob("*.md") if "```python" in page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_blocks_of_a_page_run_in_order(page):
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    namespace = {"__name__": f"docs.{page.stem}"}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)
    assert blocks
