"""tools/opmap.py finds the places of an operator by the conventions of the tree."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def opmap(name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tools/opmap.py", name]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def test_opmap_pointwise_op_names_schema_and_functor():
    result = opmap("add")
    assert result.returncode == 0
    assert "aten/src/ATen/native/native_functions.yaml:" in result.stdout
    assert "aten/src/ATen/native/pointwise/Arithmetic.h:" in result.stdout


def test_opmap_structured_op_names_shape_function_and_kernel():
    lines = opmap("cat").stdout.splitlines()
    assert any(line.startswith("shape ") and "meta_cat(" in line for line in lines)
    assert any(line.startswith("kernel ") and "cat_cpu(" in line for line in lines)


def test_opmap_inplace_and_overload_spellings_lead_to_the_base_op():
    assert opmap("aten::add_.Tensor").stdout == opmap("add").stdout


def test_opmap_unknown_name_suggests_a_close_one():
    result = opmap("addd")
    assert result.returncode == 1
    assert "did you mean" in result.stdout


def test_opmap_finds_the_derivative_of_every_operator_that_has_one():
    """The formulas name operators with and without overload, in place and not."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import opmap as tool
    finally:
        sys.path.remove(str(ROOT / "tools"))
    heads = re.findall(r"^- name:\s*(\S+)", tool.DERIVATIVES.read_text(), re.MULTILINE)
    assert len(heads) > 500
    bases = {tool.base_name(head) for head in heads}
    found = {
        base
        for base in bases
        if any(place.what == "derivative" for place in tool.derivative_places(base))
    }
    assert found == bases
