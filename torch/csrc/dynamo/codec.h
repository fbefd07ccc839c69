// The codec of bytecode: what CPython of the running version compiles, as one instruction set
// (docs/dynamo.md, "Normal form"), and back. The symbolic interpreter sees only that set, so a new
// version of Python is a change here and nowhere else.
//
// Numbers of CPython's own instructions are read from its module `opcode` when the codec is first
// used; the tables here are keyed by name. Everything needs the GIL and throws python_error.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace torch::dynamo {

using python::PyRef;

inline constexpr bool kPython312 = PY_VERSION_HEX >= 0x030C0000;
inline constexpr bool kPython313 = PY_VERSION_HEX >= 0x030D0000;
inline constexpr bool kCodecSupported = PY_VERSION_HEX >= 0x030A0000 && PY_VERSION_HEX < 0x030E0000;

// What the number of an instruction means.
enum class Operand : uint8_t {
  None,
  Number,
  Const,
  Name,
  Local,
  Cell,
  Compare,
  Binary,
  Jump,
  Call
};

struct OpInfo {
  std::string_view name;
  Operand operand;
};

// The instruction set. An instruction's number is its place in the table.
inline constexpr OpInfo kOps[] = {
    {"NOP", Operand::None},
    {"RESUME", Operand::Number},
    {"POP_TOP", Operand::None},
    {"COPY", Operand::Number},
    {"SWAP", Operand::Number},
    {"LOAD_CONST", Operand::Const},
    {"LOAD_FAST", Operand::Local},
    {"STORE_FAST", Operand::Local},
    {"DELETE_FAST", Operand::Local},
    {"LOAD_FAST_AND_CLEAR", Operand::Local},
    {"MAKE_CELL", Operand::Cell},
    {"LOAD_CLOSURE", Operand::Cell},
    {"LOAD_DEREF", Operand::Cell},
    {"STORE_DEREF", Operand::Cell},
    {"DELETE_DEREF", Operand::Cell},
    {"LOAD_CLASSDEREF", Operand::Cell},
    {"LOAD_FROM_DICT_OR_DEREF", Operand::Cell},
    {"LOAD_GLOBAL", Operand::Name},
    {"STORE_GLOBAL", Operand::Name},
    {"DELETE_GLOBAL", Operand::Name},
    {"LOAD_NAME", Operand::Name},
    {"STORE_NAME", Operand::Name},
    {"DELETE_NAME", Operand::Name},
    {"LOAD_FROM_DICT_OR_GLOBALS", Operand::Name},
    {"LOAD_LOCALS", Operand::None},
    {"LOAD_ATTR", Operand::Name},
    {"STORE_ATTR", Operand::Name},
    {"DELETE_ATTR", Operand::Name},
    {"BINARY_OP", Operand::Binary},
    {"UNARY_POSITIVE", Operand::None},
    {"UNARY_NEGATIVE", Operand::None},
    {"UNARY_NOT", Operand::None},
    {"UNARY_INVERT", Operand::None},
    {"COMPARE_OP", Operand::Compare},
    {"IS_OP", Operand::Number},
    {"CONTAINS_OP", Operand::Number},
    {"BINARY_SUBSCR", Operand::None},
    {"STORE_SUBSCR", Operand::None},
    {"DELETE_SUBSCR", Operand::None},
    {"BUILD_TUPLE", Operand::Number},
    {"BUILD_LIST", Operand::Number},
    {"BUILD_SET", Operand::Number},
    {"BUILD_MAP", Operand::Number},
    {"BUILD_CONST_KEY_MAP", Operand::Number},
    {"BUILD_STRING", Operand::Number},
    {"BUILD_SLICE", Operand::Number},
    {"LIST_APPEND", Operand::Number},
    {"SET_ADD", Operand::Number},
    {"MAP_ADD", Operand::Number},
    {"LIST_EXTEND", Operand::Number},
    {"SET_UPDATE", Operand::Number},
    {"DICT_UPDATE", Operand::Number},
    {"DICT_MERGE", Operand::Number},
    {"LIST_TO_TUPLE", Operand::None},
    {"UNPACK_SEQUENCE", Operand::Number},
    {"UNPACK_EX", Operand::Number},
    {"FORMAT_VALUE", Operand::Number},
    {"CALL", Operand::Call},
    {"CALL_FUNCTION_EX", Operand::Number},
    {"MAKE_FUNCTION", Operand::Number},
    {"LOAD_BUILD_CLASS", Operand::None},
    {"LOAD_ASSERTION_ERROR", Operand::None},
    {"GET_ITER", Operand::None},
    {"GET_LEN", Operand::None},
    {"FOR_ITER", Operand::Jump},
    {"JUMP", Operand::Jump},
    {"JUMP_NO_INTERRUPT", Operand::Jump},
    {"POP_JUMP_IF_TRUE", Operand::Jump},
    {"POP_JUMP_IF_FALSE", Operand::Jump},
    {"POP_JUMP_IF_NONE", Operand::Jump},
    {"POP_JUMP_IF_NOT_NONE", Operand::Jump},
    {"RETURN_VALUE", Operand::None},
    {"RAISE_VARARGS", Operand::Number},
    {"PUSH_EXC_INFO", Operand::None},
    {"POP_EXCEPT", Operand::None},
    {"CHECK_EXC_MATCH", Operand::None},
    {"CHECK_EG_MATCH", Operand::None},
    {"PREP_RERAISE_STAR", Operand::None},
    {"RERAISE", Operand::Number},
    {"BEFORE_WITH", Operand::None},
    {"WITH_EXCEPT_START", Operand::None},
    {"BEFORE_ASYNC_WITH", Operand::None},
    {"MATCH_MAPPING", Operand::None},
    {"MATCH_SEQUENCE", Operand::None},
    {"MATCH_KEYS", Operand::None},
    {"MATCH_CLASS", Operand::Number},
    {"COPY_DICT_WITHOUT_KEYS", Operand::None},
    {"IMPORT_NAME", Operand::Name},
    {"IMPORT_FROM", Operand::Name},
    {"IMPORT_STAR", Operand::None},
    {"RETURN_GENERATOR", Operand::None},
    {"YIELD_VALUE", Operand::Number},
    {"SEND", Operand::Jump},
    {"GET_YIELD_FROM_ITER", Operand::None},
    {"GET_AWAITABLE", Operand::Number},
    {"GET_AITER", Operand::None},
    {"GET_ANEXT", Operand::None},
    {"END_ASYNC_FOR", Operand::None},
    {"ASYNC_GEN_WRAP", Operand::None},
    {"CLEANUP_THROW", Operand::None},
    {"END_SEND", Operand::None},
    {"STOPITERATION_ERROR", Operand::None},
    {"SETUP_ANNOTATIONS", Operand::None},
    {"PRINT_EXPR", Operand::None},
    {"CALL_INTRINSIC_1", Operand::Number},
    {"CALL_INTRINSIC_2", Operand::Number},
};
inline constexpr int kOpCount = static_cast<int>(sizeof(kOps) / sizeof(kOps[0]));

// The number of an instruction, -1 for other names. Constant arguments cost nothing.
constexpr int op(std::string_view name) {
  for (int i = 0; i < kOpCount; ++i)
    if (kOps[i].name == name) return i;
  return -1;
}

struct InstructionObject {
  PyObject_HEAD PyObject* opname;
  PyObject* arg;
  PyObject* argval;
  PyObject* target;    // an Instruction or None
  PyObject* handler;   // an Instruction or None
  PyObject* positions; // a tuple of four or None
  PyObject* offset;
  int opcode;
  int depth;
  char lasti;
};
extern PyTypeObject InstructionType;

inline InstructionObject* as_instruction(PyObject* o) {
  return reinterpret_cast<InstructionObject*>(o);
}
// A new instruction of the set; `arg` and `argval` may be null.
PyRef new_instruction(int opcode, PyRef arg, PyRef argval);

// CPython's own instruction set, as its module `opcode` describes it.
struct RawSet {
  std::array<std::string, 256> name;      // empty: no such instruction
  std::array<uint8_t, 256> caches{};      // code units that follow
  std::array<bool, 256> jumps{};          // relative jump
  std::array<bool, 256> absolute_jumps{}; // 3.10 alone
  std::array<int16_t, 256> normal{};      // the instruction of the same name in kOps, or -1
  std::vector<PyRef> compare_operators;   // texts by number
  std::vector<PyRef> binary_operators;

  // The number of an instruction; throws if this Python has none of that name.
  int number(std::string_view name) const;
};
const RawSet& raw_set();

// 3.10 has an instruction for each operator; their places are the numbers that 3.11 gave them.
inline constexpr std::array<std::string_view, 26> kBinaryNames310 = {"BINARY_ADD",
                                                                     "BINARY_AND",
                                                                     "BINARY_FLOOR_DIVIDE",
                                                                     "BINARY_LSHIFT",
                                                                     "BINARY_MATRIX_MULTIPLY",
                                                                     "BINARY_MULTIPLY",
                                                                     "BINARY_MODULO",
                                                                     "BINARY_OR",
                                                                     "BINARY_POWER",
                                                                     "BINARY_RSHIFT",
                                                                     "BINARY_SUBTRACT",
                                                                     "BINARY_TRUE_DIVIDE",
                                                                     "BINARY_XOR",
                                                                     "INPLACE_ADD",
                                                                     "INPLACE_AND",
                                                                     "INPLACE_FLOOR_DIVIDE",
                                                                     "INPLACE_LSHIFT",
                                                                     "INPLACE_MATRIX_MULTIPLY",
                                                                     "INPLACE_MULTIPLY",
                                                                     "INPLACE_MODULO",
                                                                     "INPLACE_OR",
                                                                     "INPLACE_POWER",
                                                                     "INPLACE_RSHIFT",
                                                                     "INPLACE_SUBTRACT",
                                                                     "INPLACE_TRUE_DIVIDE",
                                                                     "INPLACE_XOR"};
inline constexpr std::array<const char*, 13> kOperatorTexts = {"+", "&",  "//", "<<", "@", "*", "%",
                                                               "|", "**", ">>", "-",  "/", "^"};

// ---- code_tables.cpp: the tables beside the instructions; units are code units of two bytes.
struct HandlerRange {
  int start, end, target, depth;
  bool lasti;
};
std::vector<HandlerRange> parse_exception_table(PyObject* bytes);
std::string format_exception_table(const std::vector<HandlerRange>& ranges);
// Positions of `units` code units each; the tuple is borrowed, null or None for "no line".
struct PositionRun {
  PyObject* positions;
  int units;
};
std::string format_line_table(const std::vector<PositionRun>& runs, int first_line);
// Names of the slots of a frame: locals, cells that are not arguments, free variables.
std::vector<PyRef> slot_names(PyObject* varnames, PyObject* cellvars, PyObject* freevars);

PyRef decode(PyObject* code);
// Arguments as those of torch._C._dynamo.codec.encode; null where none is given.
struct EncodeOptions {
  PyObject *name = nullptr, *qualname = nullptr, *argcount = nullptr, *posonlyargcount = nullptr,
           *kwonlyargcount = nullptr, *varnames = nullptr, *cellvars = nullptr, *freevars = nullptr,
           *flags = nullptr, *firstlineno = nullptr;
};
PyRef encode(PyObject* instructions, PyObject* code, const EncodeOptions& options);

bool init_codec(PyObject* module);
// torch._C._dynamo.
bool init_dynamo(PyObject* module);

} // namespace torch::dynamo
