"""The checks of tools/lint on small examples: what they catch and what they must leave alone."""

import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lint"))

import budgets  # noqa: E402
import hygiene  # noqa: E402
import layers  # noqa: E402


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
