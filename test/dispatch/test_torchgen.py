"""The code generator: what the schema parser accepts and rejects, what one yaml entry turns into,
and that a mistake is reported as file, line and a sentence. Needs no built library.
"""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = str(pathlib.Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from torchgen import cpp_types, gen, model, python_sigs, schema  # noqa: E402
from torchgen.errors import GenError  # noqa: E402

HEADER = "# ==== family: test ====\n\n"
FACTORY = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def load(tmp_path, text, header=HEADER):
    path = tmp_path / "native_functions.yaml"
    path.write_text(header + text)
    return model.load(str(path))


def generate(tmp_path, text):
    return gen.generate(load(tmp_path, text))


def failure(tmp_path, text, header=HEADER):
    with pytest.raises(GenError) as caught:
        gen.generate(load(tmp_path, text, header))
    return str(caught.value)


# ---- schemas -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        "add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)",
        "topk(Tensor self, SymInt k, int dim=-1) -> (Tensor values, Tensor indices)",
        "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
        "_foreach_add_.List(Tensor(a!)[] self, Tensor[] other, *, Scalar alpha=1) -> ()",
        "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values) -> Tensor(a!)",
        "mean.dim(Tensor self, int[1]? dim, *, ScalarType? dtype=None) -> Tensor",
        "conv2d(Tensor input, Tensor weight, Tensor? bias=None, SymInt[2] stride=[1, 1]) -> Tensor",
        'conv2d.padding(str padding="valid", float eps=1e-05, float[]? s=None) -> Tensor',
        "backward(Tensor self, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        "empty(*, Device? device=None) -> Tensor",
        "_linalg_norm(Tensor self, Scalar ord=inf) -> Tensor result",
        "nothing() -> ()",
    ],
)
def test_schema_round_trips_to_its_text(text):
    assert str(schema.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("add(Tensr self) -> Tensor", "unknown type 'Tensr'"),
        ("add(Tensor self -> Tensor", "expected ',' but found '->'"),
        ("add(Tensor self) Tensor", "expected '->' but found 'Tensor'"),
        ("add(Tensor self) ->", "expected a type but found 'the end'"),
        ("add(Tensor self, Tensor self) -> Tensor", "the argument 'self' is given twice"),
        ("add(Tensor self, int dim=None) -> Tensor", "the default 'None' does not fit int dim"),
        ("add(Tensor self, int dim=1.5) -> Tensor", "the default '1.5' does not fit int dim"),
        ("add(Tensor self, bool flag=1) -> Tensor", "the default '1' does not fit bool flag"),
        ("add(Tensor self, int[2] size=[1, x]) -> Tensor", "does not fit int[2] size"),
        ("add(int a=1, int b) -> Tensor", "'b' has no default but follows 'a'"),
        ("add(int(a!) a) -> Tensor", "only a Tensor can have an alias set"),
        ("add(Tensor self) -> Tensor(a)", "belongs to no argument"),
        ("add(Tensor(a) self) -> Tensor(a!)", "is not a written argument"),
        ("add_(Tensor self) -> Tensor", "in-place name but no argument is marked as written"),
        ("add(Tensor self, *) -> Tensor", "'*' must be followed by a keyword argument"),
        ("add(int[0] size) -> Tensor", "the size of a list must be 1 to 64"),
        ("add(Tensor self) -> Tensor extra more", "unexpected 'more' after the returns"),
        ("add(Tensor self; int a) -> Tensor", "unexpected character ';'"),
        ("(Tensor self) -> Tensor", "expected an operator name"),
    ],
)
def test_wrong_schema_is_named_in_a_sentence(text, sentence):
    with pytest.raises(GenError) as caught:
        schema.parse(text)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "cpp"),
    [
        ("Tensor x", "const at::Tensor&"),
        ("Tensor(a!) x", "at::Tensor&"),
        ("Tensor? x", "const ::std::optional<at::Tensor>&"),
        ("Tensor[] x", "at::TensorList"),
        ("Tensor?[] x", "at::OptionalTensorList"),
        ("SymInt[2] x", "c10::SymIntArrayRef"),
        ("int[1]? x", "at::OptionalIntArrayRef"),
        ("SymInt? x", "::std::optional<c10::SymInt>"),
        ("Scalar x", "const at::Scalar&"),
        ("bool[3] x", "::std::array<bool,3>"),
        ("Generator? x", "::std::optional<at::Generator>"),
        ("float[]? x", "::std::optional<at::ArrayRef<double>>"),
    ],
)
def test_argument_type_in_cpp(argument, cpp):
    parsed = schema.parse(f"f({argument}) -> ()")
    assert cpp_types.arg_type(parsed.args[0]) == cpp


# ---- entries -------------------------------------------------------------------------------------


def test_pointwise_entry_gives_three_operators_and_one_loop_table(tmp_path):
    files = generate(
        tmp_path,
        "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
        "  variants: function, method\n  inplace: True\n  out: out\n"
        "  pointwise: {functor: Add, header: Arithmetic.h, params: [alpha]}\n"
        "- func: add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor\n"
        "  pointwise: {functor: Add, header: Arithmetic.h, params: [alpha]}\n",
    )
    header = files["ATen/ops/add.h"]
    for struct in ("add_Tensor", "add__Tensor", "add_out", "add_Scalar"):
        assert f"struct TORCH_API {struct} " in header
    assert '"add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)"' in header
    assert (
        '"add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"'
        in header
    )
    assert files["ATen/PointwiseLoops_Arithmetic_0.simd.cpp"].count("make_loop_table") == 1
    assert "at::Tensor& add_(const at::Tensor& other" in files["ATen/core/TensorMethods.inc"]


def test_structured_entry_calls_shape_function_before_kernel(tmp_path):
    files = generate(
        tmp_path,
        "- func: topk(Tensor self, SymInt k, int dim=-1) -> (Tensor values, Tensor indices)\n"
        "  out: values\n  structured: {meta: topk, CPU: topk_cpu}\n",
    )
    native = files["ATen/native/test/Native.h"]
    assert (
        "void meta_topk(at::OutputBuilder& out, const at::Tensor& self, int64_t k, int64_t dim);"
        in native
    )
    assert "const at::Tensor& values, const at::Tensor& indices);" in native
    source = files["ATen/Ops_test_0.cpp"]
    assert source.index("meta_topk(outputs, self, c10::as_int(k), dim)") < source.index(
        "topk_cpu(self, c10::as_int(k)"
    )
    assert "{&values, &indices}" in source


def test_factory_out_variant_drops_options_and_takes_them_from_out(tmp_path):
    files = generate(
        tmp_path, f"- func: zeros(SymInt[] size, *, {FACTORY}) -> Tensor\n  out: True\n"
    )
    assert (
        '"zeros.out(SymInt[] size, *, Tensor(a!) out) -> Tensor(a!)"' in files["ATen/ops/zeros.h"]
    )
    assert (
        "call(size, out.scalar_type(), out.layout(), out.device(), ::std::nullopt)"
        in files["ATen/Ops_test_0.cpp"]
    )
    assert "at::TensorOptions options = {}" in files["ATen/ops/zeros.h"]


def test_composite_entry_needs_no_kernel_key(tmp_path):
    loaded = load(tmp_path, "- func: flatten(Tensor(a) self) -> Tensor(a)\n")
    (kernel,) = loaded.ops[0].kernels
    assert (kernel.key, kernel.fn) == ("CompositeImplicitAutograd", "flatten")


def test_alias_calls_the_variant_of_its_target(tmp_path):
    files = generate(
        tmp_path,
        "- func: acos(Tensor self) -> Tensor\n  inplace: True\n  out: True\n"
        "- func: arccos(Tensor self) -> Tensor\n  inplace: True\n  out: True\n  alias: acos\n",
    )
    source = files["ATen/Ops_test_0.cpp"]
    assert "return at::_ops::acos::call(self);" in source
    assert "return at::_ops::acos_::call(self);" in source
    assert "return at::_ops::acos_out::call(self, out);" in source


def test_pointwise_plain_functor_serves_the_parameter_one(tmp_path):
    files = generate(
        tmp_path,
        "- func: add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor\n"
        "  pointwise: {functor: Add, header: A.h, params: [alpha], plain: AddPlain, check: ok}\n",
    )
    source = files["ATen/Ops_test_0.cpp"]
    assert "at::native::ok(self, other, alpha);" in source
    assert "pointwise(plain_add_Tensor, {self, other});" in source
    assert "loops_AddPlain_2_0" in files["ATen/PointwiseLoops_A_0.simd.cpp"]
    assert "void ok(const at::Tensor& self" in files["ATen/native/test/Native.h"]


def test_new_pointwise_entry_changes_the_programs_and_loops_of_its_header_alone(tmp_path):
    def programs(count):
        entries = [
            f"- func: f{i}(Tensor self) -> Tensor\n"
            f"  pointwise: {{functor: F{i}, header: {'AB'[i % 2]}.h}}\n"
            for i in range(count)
        ]
        files = generate(tmp_path, "".join(entries))
        return {n: text for n, text in files.items() if n.endswith((".cu", ".simd.cpp"))}

    before, after = programs(48), programs(49)
    changed = {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
    assert {n.rpartition("/")[2].split("_")[1] for n in changed} == {"A"}


FOREACH = """
- func: exp(Tensor self) -> Tensor
  inplace: function, method
  pointwise: {functor: Exp, header: Unary.h}
- func: trace(Tensor self) -> Tensor
- func: _foreach_{op}(Tensor[] self) -> Tensor[]
  each: [exp]
  inplace: True
  out: True
  foreach: "{op}"
- func: _foreach_trace(Tensor[] self) -> Tensor[]
  foreach: trace
"""


def test_foreach_entry_plans_pointwise_targets_and_loops_over_others(tmp_path):
    found = load(tmp_path, FOREACH)
    by_name = {op.schema.full_name: op for op in found.ops}
    assert str(by_name["_foreach_exp_"].schema) == "_foreach_exp_(Tensor(a!)[] self) -> ()"
    assert by_name["_foreach_exp_"].target is by_name["exp_"]
    assert {k.key for k in by_name["_foreach_trace"].kernels} == {
        "CompositeExplicitAutograd",
        "Autograd",
    }
    text = "".join(gen.generate(found).values())
    assert "at::iter::PointwiseBatch batch(spec_exp, self.size());" in text
    assert "result.push_back(at::_ops::trace::call(self[i]));" in text


def test_foreach_without_target_is_an_error(tmp_path):
    text = "- func: _foreach_no(Tensor[] self) -> Tensor[]\n  foreach: nothing\n"
    assert "'foreach' names 'nothing', which has no functional variant" in failure(tmp_path, text)


def test_family_comes_from_the_section(tmp_path):
    text = "- func: a() -> Tensor\n# ==== family: second ====\n- func: b() -> Tensor\n"
    assert list(load(tmp_path, text).families()) == ["second", "test"]


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        ("- func: f(Tensor self) -> Tensor\n  varants: method\n", 4, "f: unknown key 'varants'"),
        ("- func: f(Tensor self) -> Tenser\n", 3, "unknown type 'Tenser'"),
        (
            "- func: f(Tensor self) -> Tensor\n- func: f(Tensor self) -> Tensor\n",
            4,
            "'f' is already defined at line 3",
        ),
        ("- func: f(int a) -> Tensor\n  variants: method\n", 4, "needs an argument 'Tensor self'"),
        (
            "- func: f(Tensor self) -> Tensor\n  variants: methods\n",
            4,
            "'variants' must be 'function', 'method'",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch: {XPU9: f}\n",
            4,
            "unknown dispatch key 'XPU9'",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch: {}\n",
            4,
            "must map dispatch keys to function names",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  dispatch: {CPU: 'a b'}\n",
            4,
            "is not a C++ function name",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  structured: {CPU: f}\n",
            4,
            "needs at least {meta: NAME, CPU: FN}",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  pointwise: {functor: F}\n",
            4,
            "needs at least {functor: NAME",
        ),
        (
            "- func: f(Tensor self) -> int\n  inplace: True\n",
            3,
            "needs exactly one return of the type of self",
        ),
        (
            "- func: f(Tensor self) -> int\n  out: True\n",
            3,
            "'out' needs returns that are new Tensors",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  out_dispatch: {CPU: g}\n",
            4,
            "'out_dispatch' without 'out'",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  python_module: foo\n",
            4,
            "'python_module' must be one of",
        ),
        (
            "- func: f(Tensor self) -> Tensor\n  doc: a\n  doc: b\n",
            5,
            "the key 'doc' is given twice",
        ),
        ("- func: f(Tensor self\n  - x: [\n", 4, "is not valid yaml"),
        (
            "- func: f(SymInt a) -> Tensor\n- func: f.int(int a) -> Tensor\n",
            4,
            "has the same parameters as that of 'f' (line 3)",
        ),
        (
            "- func: f() -> Tensor\n- func: f.out(int a) -> Tensor\n- func: f_out() -> Tensor\n",
            5,
            "need the same C++ name",
        ),
        (
            "- func: f() -> Tensor\n  alias: g\n",
            3,
            "'alias' names the operator 'g', which does not",
        ),
        (
            "- func: g(int a) -> Tensor\n- func: f() -> Tensor\n  alias: g\n",
            4,
            "its arguments differ from those of 'g(int a) -> Tensor'",
        ),
        (
            "- func: f(Tensor self, int n) -> Tensor\n  pointwise: {functor: F, header: F.h}\n",
            4,
            "does not say what the argument 'n' is for",
        ),
    ],
)
def test_wrong_entry_is_reported_with_file_line_and_sentence(tmp_path, text, line, sentence):
    message = failure(tmp_path, text)
    assert message.startswith(f"native_functions.yaml:{line}: ")
    assert sentence in message


def test_entry_outside_a_section_is_an_error(tmp_path):
    assert "must stand below a line" in failure(
        tmp_path, "- func: f(Tensor self) -> Tensor\n", header=""
    )


def test_malformed_section_line_is_an_error(tmp_path):
    assert "a section line reads" in failure(tmp_path, "", header="# ==== famly: x ====\n")


# ---- Python signatures ---------------------------------------------------------------------------


def signatures(tmp_path, text, module="torch"):
    functions = python_sigs.build(load(tmp_path, text))
    return {
        f.name: [s.message_text for s in f.signatures if not s.hidden] for f in functions[module]
    }


def test_out_variant_is_merged_and_self_is_called_input(tmp_path):
    text = "- func: exp(Tensor self) -> Tensor\n  variants: function, method\n  out: True\n"
    assert signatures(tmp_path, text) == {"exp": ["exp(Tensor input, *, Tensor out = None)"]}
    assert signatures(tmp_path, text, "method") == {"exp": ["exp()"]}


def test_out_variant_given_as_its_own_entry_is_merged(tmp_path):
    text = (
        "- func: mm(Tensor self, Tensor mat2) -> Tensor\n"
        "- func: mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)\n"
    )
    assert signatures(tmp_path, text) == {
        "mm": ["mm(Tensor input, Tensor mat2, *, Tensor out = None)"]
    }


def test_python_out_false_hides_the_out_argument(tmp_path):
    text = "- func: exp(Tensor self) -> Tensor\n  out: True\n  python_out: False\n"
    assert signatures(tmp_path, text) == {"exp": ["exp(Tensor input)"]}


def test_tensor_signature_comes_before_number_signature(tmp_path):
    text = (
        "- func: pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor\n"
        "- func: pow.Scalar(Scalar self, Tensor exponent) -> Tensor\n"
        "- func: pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor\n"
    )
    assert signatures(tmp_path, text)["pow"] == [
        "pow(Tensor input, Tensor exponent)",
        "pow(Tensor input, Number exponent)",
        "pow(Number self, Tensor exponent)",
    ]


def test_factory_takes_requires_grad_and_spread_sizes(tmp_path):
    loaded = load(tmp_path, f"- func: zeros(SymInt[] size, *, {FACTORY}) -> Tensor\n")
    (function,) = python_sigs.build(loaded)["torch"]
    (sig,) = function.signatures
    assert sig.varargs and sig.is_factory
    assert sig.message_text.endswith(
        "torch.device device = None, bool pin_memory = False, bool requires_grad = False)"
    )


def test_method_takes_self_wherever_it_stands_in_the_schema(tmp_path):
    func = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor"
    text = f"- func: {func}\n  variants: method\n"
    assert signatures(tmp_path, text, "method") == {
        "where": ["where(Tensor condition, Tensor other)"]
    }


# ---- the command ---------------------------------------------------------------------------------


def run(*args):
    command = [sys.executable, "-m", "torchgen.gen", *map(str, args)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_command_exits_1_with_the_place_on_standard_error(tmp_path):
    path = tmp_path / "native_functions.yaml"
    path.write_text(HEADER + "- func: f(Tensr self) -> Tensor\n")
    result = run("--yaml", path, "--out", tmp_path / "gen")
    assert result.returncode == 1
    assert result.stderr.startswith("native_functions.yaml:3: unknown type 'Tensr'")
    assert not (tmp_path / "gen").exists()


def test_second_run_touches_nothing_and_removed_entry_removes_its_header(tmp_path):
    path = tmp_path / "native_functions.yaml"
    out = tmp_path / "gen"
    entries = "- func: a(Tensor self) -> Tensor\n- func: b(Tensor self) -> Tensor\n"
    path.write_text(HEADER + entries)
    assert run("--yaml", path, "--out", out).returncode == 0
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    assert run("--yaml", path, "--out", out).returncode == 0
    assert before == {p: p.stat().st_mtime_ns for p in out.rglob("*") if p.is_file()}
    path.write_text(HEADER + "- func: a(Tensor self) -> Tensor\n")
    assert run("--yaml", path, "--out", out).returncode == 0
    assert (out / "ATen/ops/a.h").exists() and not (out / "ATen/ops/b.h").exists()


def test_cmake_list_names_every_source_once(tmp_path):
    path = tmp_path / "native_functions.yaml"
    path.write_text(HEADER + "- func: a(Tensor self) -> Tensor\n")
    listing = tmp_path / "outputs.cmake"
    assert (
        run("--yaml", path, "--out", tmp_path / "gen", "--outputs-cmake", listing).returncode == 0
    )
    text = listing.read_text()
    assert text.count("ATen/OpTable.cpp") == 1 and text.count("bind_torch_0.cpp") == 1
    assert not (tmp_path / "gen").exists()


def test_the_operator_list_of_this_tree_is_valid():
    loaded = model.load(os.path.join(ROOT, "aten/src/ATen/native/native_functions.yaml"))
    assert loaded.ops
    gen.generate(loaded)


def test_a_new_entry_changes_one_shard_of_its_family(tmp_path):
    names = [f"op{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(200)]
    text = "".join(f"- func: {n}(Tensor self) -> Tensor\n" for n in names)
    before = generate(tmp_path, text)
    after = generate(tmp_path, text + "- func: another(Tensor self) -> Tensor\n")
    changed = [n for n, t in after.items() if n.startswith("ATen/Ops_") and before.get(n) != t]
    assert len(changed) == 1
