"""What a new operator costs: one of each kind is added to a copy of the tree, as
aten/src/ATen/native/README.md says, and the files that had to be written or edited by hand are
counted. The generator has to accept the result and emit functions, bindings, stubs and autograd.
The compiler has to accept the kernels and the generated code around them."""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NATIVE = pathlib.PurePosixPath("aten/src/ATen/native")
YAML = NATIVE / "native_functions.yaml"
DERIVATIVES = pathlib.PurePosixPath("tools/autograd/derivatives.yaml")
COMPILED = re.compile(r"ATen/(PointwiseLoops|Ops)_.*\.cpp$")

# A kernel that walks lines of the reduced dimension itself, as one does before it is worth loops
# per instruction set.
COST_SPAN = """\
#include <ATen/native/reduce/Native.h>

#include <algorithm>

#include <ATen/native/DTypeSwitch.h>
#include <ATen/ops/movedim.h>

namespace at::native {
void cost_span_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  const Tensor lines = at::movedim(self, dim, -1).contiguous();
  const int64_t length = lines.size(-1);
  const Tensor result = out.contiguous();
  dtype_switch<FloatingTypes>(self.scalar_type(), "cost_span", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = lines.data_ptr<T>();
    T* y = result.data_ptr<T>();
    for (int64_t i = 0; i < result.numel(); ++i, x += length) {
      const auto [low, high] = std::minmax_element(x, x + length);
      y[i] = static_cast<T>(*high - *low);
    }
  });
  if (!result.is_same(out)) out.copy_(result);
}
} // namespace at::native
"""


class Tree:
    """A copy of the files an operator's author works on."""

    def __init__(self, root):
        self.root = root
        for folder in (NATIVE / "pointwise", NATIVE / "reduce", "tools/autograd"):
            shutil.copytree(ROOT / folder, root / folder)
        shutil.copy(ROOT / YAML, root / YAML)
        (root / "test/ops").mkdir(parents=True)
        for family in ("pointwise", "reduce"):
            source = ROOT / "test" / "ops" / f"test_ops_{family}.py"
            if source.exists():
                shutil.copy(source, root / "test/ops")
        self.before = self.contents()

    def contents(self):
        files = (p for p in self.root.rglob("*") if p.is_file())
        return {p.relative_to(self.root).as_posix(): p.read_bytes() for p in files}

    def entry(self, family, text):
        """Adds a yaml entry at the head of the family's section."""
        path = self.root / YAML
        header = f"# ==== family: {family} ====\n"
        whole = path.read_text()
        assert header in whole
        path.write_text(whole.replace(header, header + "\n" + text, 1))

    def append(self, relative, text):
        path = self.root / relative
        with open(path, "a") as file:
            file.write(text)

    def edited(self):
        after = self.contents()
        return sorted(name for name in after if after[name] != self.before.get(name))

    def generate(self):
        out = self.root / "gen"
        command = [sys.executable, "-m", "torchgen.gen", "--yaml", str(self.root / YAML)]
        command += ["--derivatives", str(self.root / DERIVATIVES), "--out", str(out)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return {p.relative_to(out).as_posix(): p.read_text() for p in out.rglob("*") if p.is_file()}

    def compile(self, files, *words):
        """Lets the compiler check the edited sources and the generated loops and calls that name
        the operator, against the edited headers. Fails with what the compiler says."""
        by_hand = [name for name in self.edited() if not name.startswith("gen/")]
        sources = [self.root / name for name in by_hand if name.endswith(".cpp")]
        sources += [
            self.root / "gen" / name
            for name, text in files.items()
            if COMPILED.match(name) and any(word in text for word in words)
        ]
        python = sysconfig.get_path("include")
        include = [self.root / "aten/src", self.root / "gen", ROOT, ROOT / "aten/src", python]
        command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-DCRESSET_HAVE_X86_ISA"]
        command += ["-DCRESSET_KERNEL_TU=", "-DCRESSET_ISA=avx2", "-mavx2", "-mfma", "-mf16c"]
        command += [f"-I{folder}" for folder in include]
        assert sources
        for source in sources:
            done = subprocess.run([*command, str(source)], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr[:4000]


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


def places(files, word):
    return [name for name, text in files.items() if word in text]


def check_emitted(files, name):
    """The operator stands in the C++ functions, the bindings, the stubs and the reference."""
    found = places(files, name)
    assert any(p.endswith(f"ops/{name}.h") for p in found), found
    assert any(p.endswith(".pyi") for p in found), found
    assert any(p.endswith(".cpp") and "ython" in p for p in found), found
    assert any(p.endswith(".md") for p in found), found


def test_pointwise_operator_takes_at_most_six_files(tree):
    tree.entry(
        "pointwise",
        "- func: cost_cube(Tensor self) -> Tensor\n"
        "  variants: function, method\n"
        "  inplace: function, method\n"
        "  out: True\n"
        "  pointwise: {functor: CostCube, header: Unary.h, types: floating, promote: float}\n"
        "  tags: [pointwise]\n"
        '  doc: "The third power of each element."\n',
    )
    tree.append(
        NATIVE / "pointwise/Unary.h",
        "namespace at::native::fn {\n"
        "inline namespace CRESSET_ISA {\n"
        "struct CostCube {\n"
        "  template <class V> CRESSET_FN V apply(V x) { return x * x * x; }\n"
        "};\n"
        "} // namespace CRESSET_ISA\n"
        "} // namespace at::native::fn\n",
    )
    tree.append(DERIVATIVES, "- name: cost_cube\n  self: grad * (3 * self * self)\n")
    tree.append(
        "test/ops/test_ops_pointwise.py",
        "def test_cost_cube():\n    assert torch.tensor(2.0).cost_cube().item() == 8\n",
    )
    edited = tree.edited()
    assert len(edited) <= 6, edited
    files = tree.generate()
    check_emitted(files, "cost_cube")
    assert places(files, "fn::CostCube")
    assert places(files, "CostCubeBackward0")
    assert places(files, "cost_cube_")
    tree.compile(files, "CostCube", "cost_cube")
    # CUDA comes with it.
    assert places(files, "CRESSET_POINTWISE(loops_CostCube_1_0, CostCube, 1, 0, Same, bf16)")


def test_structured_operator_takes_at_most_eight_files(tree):
    tree.entry(
        "reduce",
        "- func: cost_span(Tensor self, int dim) -> Tensor\n"
        "  variants: function, method\n"
        "  out: True\n"
        "  structured: {meta: cost_span, CPU: cost_span_cpu}\n"
        '  doc: "The largest minus the smallest element along dim."\n',
    )
    tree.append(
        NATIVE / "reduce/ReduceMeta.cpp",
        "namespace at::meta {\n"
        "void meta_cost_span(OutputBuilder& out, const Tensor& self, int64_t dim) {\n"
        "  out.set(0, reduced_shape(self.sizes(), dim_mask(dim, self.dim()), false),\n"
        "          self.scalar_type());\n"
        "}\n"
        "} // namespace at::meta\n",
    )
    tree.append(NATIVE / "reduce/CostSpan.cpp", COST_SPAN)
    tree.append(DERIVATIVES, "- name: cost_span\n  self: grad.unsqueeze(dim) * self\n")
    tree.append(
        "test/ops/test_ops_reduce.py",
        "def test_cost_span():\n    assert torch.rand(3).cost_span(0) < 1\n",
    )
    edited = tree.edited()
    assert len(edited) <= 8, edited
    files = tree.generate()
    check_emitted(files, "cost_span")
    assert places(files, "meta_cost_span")
    assert places(files, "cost_span_cpu")
    tree.compile(files, "cost_span", "CostSpan")


def test_composite_operator_takes_at_most_four_files(tree):
    tree.entry(
        "reduce",
        "- func: cost_spread(Tensor self) -> Tensor\n"
        "  variants: function, method\n"
        '  doc: "The largest element minus the smallest."\n',
    )
    tree.append(
        NATIVE / "reduce/Composite.cpp",
        "#include <ATen/ops/amax.h>\n#include <ATen/ops/amin.h>\nnamespace at::native {\n"
        "Tensor cost_spread(const Tensor& self) {\n"
        "  return at::sub(at::amax(self), at::amin(self));\n"
        "}\n"
        "} // namespace at::native\n",
    )
    tree.append(
        "test/ops/test_ops_reduce.py",
        "def test_cost_spread():\n    assert torch.ones(3).cost_spread() == 0\n",
    )
    edited = tree.edited()
    assert len(edited) <= 4, edited
    files = tree.generate()
    check_emitted(files, "cost_spread")
    tree.compile(files, "cost_spread")


def test_wrong_entry_is_refused_with_its_line(tree):
    tree.entry("reduce", "- func: cost_wrong(Tensr self) -> Tensor\n  variants: function\n")
    command = [
        sys.executable,
        "-m",
        "torchgen.gen",
        "--yaml",
        str(tree.root / YAML),
        "--out",
        str(tree.root / "g"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "native_functions.yaml:" in done.stderr and "Tensr" in done.stderr
