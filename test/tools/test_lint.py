"""The checks of tools/lint on small examples: what they catch and what they must leave alone."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lint"))

import budgets  # noqa: E402
import hygiene  # noqa: E402
import layers  # noqa: E402
import shapes  # noqa: E402


def lengths(text: str) -> dict[str, int]:
    return {name: count for name, _, count in budgets.cpp_functions(text)}


def test_cpp_functions_free_function_counts_from_signature_to_brace():
    assert lengths("int f(int a) {\n  return a;\n}\n") == {"f": 3}


def test_cpp_functions_method_in_class_in_namespace_is_found():
    text = "namespace a::b {\nclass C {\n  void g() const {\n  }\n};\n}\n"
    assert lengths(text) == {"g": 2}


def test_cpp_functions_template_function_is_not_taken_for_a_class():
    assert lengths("template <class T, int N> T h(T x) {\n return x;\n}\n") == {"h": 3}


def test_cpp_functions_braces_in_strings_and_comments_are_ignored():
    text = "void f() {\n  g(\"{\"); // {\n  char c = '{';\n}\nvoid k() {}\n"
    assert lengths(text) == {"f": 4, "k": 1}


def test_cpp_functions_tables_are_exempt():
    assert lengths("static const int table[] = {\n1,\n2,\n};\n") == {}


@pytest.mark.parametrize(
    ("include", "layer", "allowed"),
    [
        ("c10/util/ArrayRef.h", "c10/core", True),
        ("ATen/core/Tensor.h", "c10/core", False),
        ("torch/csrc/autograd/engine.h", "aten/src/ATen/native", False),
        ("ATen/ops/add.h", "aten/src/ATen/core", True),
        ("ATen/native/pointwise/Unary.h", "aten/src/ATen/iter", False),
    ],
)
def test_layers_include_follows_the_table(include, layer, allowed):
    table = layers.load_table()["cpp"]
    uses = [*table[layer]["uses"], layer]
    assert layers.is_allowed(layers.included_path(include), uses) is allowed


def test_layers_generated_sources_follow_the_table_too(tmp_path):
    command = [sys.executable, "-m", "torchgen.gen", "--out", str(tmp_path)]
    command += ["--yaml", "aten/src/ATen/native/native_functions.yaml"]
    command += ["--derivatives", "tools/autograd/derivatives.yaml"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    table, found, seen = layers.load_table(), [], 0
    for path in tmp_path.rglob("*"):
        if path.suffix in (".h", ".cpp"):
            name = layers.included_path(path.relative_to(tmp_path).as_posix())
            found += layers.check_includes(table, name, path.read_text())
            seen += 1
    assert seen > 100 and [str(finding) for finding in found] == []


def test_layers_an_include_from_above_is_found_in_any_source():
    table = layers.load_table()
    text = "#include <torch/csrc/autograd/engine.h>\n"
    found = list(layers.check_includes(table, "aten/src/ATen/Ops_reduce_0.cpp", text))
    assert len(found) == 1 and found[0].line == 1


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("torch.nn.modules.linear", "torch.fx.proxy", False),
        ("torch.fx.graph", "torch.nn.Module", True),
        ("torch._dynamo.eval_frame", "torch.fx.graph", True),
        ("torch.fx.graph", "torch._dynamo.config", False),
        ("torch.utils.data", "torch.testing.assert_close", False),
    ],
)
def test_layers_module_level_imports_point_to_lower_tiers(importer, imported, allowed):
    order = layers.load_table()["tiers"]["order"]
    assert (layers.tier_of(imported, order) <= layers.tier_of(importer, order)) is allowed


def test_layers_import_inside_a_function_counts_as_lazy():
    import ast

    tree = ast.parse("import os\ndef f():\n    import numpy\n")
    assert [(name, lazy) for _, name, lazy in layers.imports(tree)] == [
        ("os", False),
        ("numpy", True),
    ]


def test_hygiene_opening_comment_may_follow_pragma_once():
    assert hygiene.opens_with_comment("a.h", "#pragma once\n\n// What it is for.\n")
    assert not hygiene.opens_with_comment("a.h", "#pragma once\n#include <vector>\n")


ENTRY = """
# ==== family: sort ====
- func: topk(Tensor self, int k) -> (Tensor values, Tensor indices)
  structured: {meta: topk, "CPU, CUDA": topk_cpu}
"""


@pytest.mark.parametrize(
    "shape_file, allowed",
    [("sort/Sort.cpp", True), ("sort/SortMeta.cpp", True), ("sort/Search.cpp", False),
     ("reduce/Sort.cpp", False)],
)  # fmt: skip
def test_shapes_shape_function_stands_beside_its_kernel_or_in_the_meta_file(shape_file, allowed):
    kernel = shapes.NATIVE + "sort/Sort.cpp"
    sources = {kernel: "void topk_cpu(const Tensor& self) {}\n"}
    path = shapes.NATIVE + shape_file
    sources[path] = sources.get(path, "\n") + "void meta_topk(OutputBuilder& out) {}\n"
    found = list(shapes.misplaced(ENTRY, sources))
    assert [(f.path, f.line) for f in found] == ([] if allowed else [(path, 2)])


@pytest.mark.parametrize(
    "text, words",
    [
        ("def f() -> int: ...\n", []),
        ("def f(x: Any) -> Any: ...\n", ["2 uses of Any; the budget is 1"]),
        ("def f(): ...\ndef g() -> int: ...\n", ["1 of 2 functions"]),
    ],
)
def test_budgets_of_types_are_held(text, words):
    limits = {"returns": 0.9, "any": {"torch/nn": 1}}
    found = [str(f) for f in budgets.check_types(limits, {"torch/nn/file.py": text})]
    assert len(found) == len(words) and all(w in f for w, f in zip(words, found, strict=True))
