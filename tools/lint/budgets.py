"""Check the size of files and functions, and how far the package is typed, against budgets.toml.

Python functions are measured by their syntax tree. C++ has no parser here: braces are matched
after comments and literals are blanked out, and a brace pair counts as a function when it is not
inside another and the text before it has a parameter list. That is right for this code base's
style and errs towards silence.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from common import ROOT, Finding, cpp_files, python_files, read
from layers import tomllib

LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]{0,16})\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])\'(?:\\.|[^\'\\\n])+\''
    r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
    re.DOTALL | re.MULTILINE,
)
BRACE_OR_END = re.compile(r"[{};]")
SCOPE = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?![^()]*\))")
TEMPLATE = re.compile(r"\btemplate\s*<[^{};]*?>\s*(?=[A-Za-z_:\[])")
NAME = re.compile(r"([~\w:]+|operator\s*[^\s(]+)\s*\(")


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def is_scope(header: str) -> bool:
    return SCOPE.search(TEMPLATE.sub("", header)) is not None


def cpp_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """(name, first line, number of lines) of each outermost function body."""
    text = LITERAL.sub(blank, text)
    stack: list[str] = []
    header_start, body_start, name = 0, 0, ""
    for match in BRACE_OR_END.finditer(text):
        position = match.start()
        header = text[header_start:position]
        header_start = position + 1
        if match[0] == "{":
            if "function" in stack:
                stack.append("block")
            elif is_scope(header):
                stack.append("scope")
            elif ")" in header:
                stack.append("function")
                found = NAME.search(header)
                name, body_start = (found[1] if found else "?"), position - len(header.lstrip())
            else:
                stack.append("table")
        elif match[0] == "}" and stack and stack.pop() == "function":
            first = text.count("\n", 0, body_start) + 1
            yield name, first, text.count("\n", body_start, position) + 1


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:  # reported by the layer check
        return
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def uses_of_any(tree: ast.Module) -> int:
    return sum(
        (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(tree)
    )


def check_types(limits: dict, sources: dict[str, str]) -> Iterator[Finding]:
    """Findings about the files of the package, given by path."""
    functions = typed = 0
    used = dict.fromkeys(limits["any"], 0)
    for path, text in sources.items():
        try:
            tree = ast.parse(text)
        except SyntaxError:  # reported by the layer check
            continue
        folder = "/".join(path.split("/")[:2])
        if folder in used:
            used[folder] += uses_of_any(tree)
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                functions += 1
                typed += node.returns is not None
    for folder, count in used.items():
        if count > limits["any"][folder]:
            budget = limits["any"][folder]
            yield Finding(folder, 1, f"{count} uses of Any; the budget is {budget}: name the type")
    if typed < limits["returns"] * functions:
        share = f"{typed} of {functions} functions of the package say what they return"
        yield Finding("torch", 1, f"{share}; the budget is {limits['returns']:.0%}")


def check() -> Iterator[Finding]:
    with open(ROOT / "tools/lint/budgets.toml", "rb") as file:
        table = tomllib.load(file)
    package = [path for path in python_files() if path.startswith("torch/")]
    yield from check_types(table["types"], {path: read(path) for path in package})
    limits, exempt = table["limits"], table["exempt"]
    for path in cpp_files() + python_files():
        if path in exempt:
            continue
        text = read(path)
        lines = text.count("\n")
        if lines > limits["file_lines"]:
            yield Finding(path, 1, f"{lines} lines; the budget of a file is {limits['file_lines']}")
        elif lines > limits["file_lines_warn"]:
            target = limits["file_lines_warn"]
            yield Finding(path, 1, f"{lines} lines; aim at {target}", warning=True)
        functions = python_functions if path.endswith(".py") else cpp_functions
        for name, line, length in functions(text):
            if length > limits["function_lines"]:
                budget = limits["function_lines"]
                yield Finding(path, line, f"{name} has {length} lines; the budget is {budget}")
