// The hook of PEP 523: while a thread runs user code that could not be compiled, its new frames
// come here first. Internals of CPython are read (code, function and arguments of a frame that
// starts) and never built.
//
// Note [Frames that are not run]
// Up to 3.11 a frame that was not run is freed by whoever made it. From 3.12 on the interpreter's
// own loop has to end it, and the functions that do so are not exported. So the loop gets the frame
// with the result on its stack and an instruction pointer that leads to a lone RETURN_VALUE; an
// exception enters the frame as one thrown in before its first instruction, where no handler is
// and which no traceback names.
#include <torch/csrc/dynamo/codec.h>
#include <torch/csrc/dynamo/eval_frame.h>

#if PY_VERSION_HEX < 0x030B0000
#define CRESSET_FRAME_HOOK 1
#include <frameobject.h>
#elif PY_VERSION_HEX < 0x030E0000
#define CRESSET_FRAME_HOOK 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace torch::dynamo {
namespace {

thread_local ThreadState current_state;

#ifdef CRESSET_FRAME_HOOK

// ---- reading a frame that starts, and ending it

#if PY_VERSION_HEX < 0x030B0000

using RunningFrame = PyFrameObject;

PyCodeObject* code_of(RunningFrame* frame) { return frame->f_code; }

// The values of the parameters, then the cells of the closure; false where one is missing.
bool read_values(RunningFrame* frame, int count, PyRef& closure, BoundFrame& out) {
  PyCodeObject* code = frame->f_code;
  const auto cells = static_cast<int>(PyTuple_GET_SIZE(code->co_cellvars));
  for (int i = 0; i < count; ++i) {
    PyObject* value = frame->f_localsplus[i];
    // A parameter that inner functions use was moved into its cell already.
    for (int j = 0; !value && code->co_cell2arg && j < cells; ++j)
      if (code->co_cell2arg[j] == i) value = PyCell_GET(frame->f_localsplus[code->co_nlocals + j]);
    if (!value) return false;
    out.values.push_back(value);
  }
  const Py_ssize_t free = PyTuple_GET_SIZE(code->co_freevars);
  if (free == 0) return true;
  closure = PyRef(PyTuple_New(free));
  if (!closure) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0; i < free; ++i) {
    PyObject* cell = frame->f_localsplus[code->co_nlocals + cells + i];
    PyTuple_SET_ITEM(closure.get(), i, PyRef::borrow(cell).release());
    out.values.push_back(cell);
  }
  return true;
}

PyObject* ended(PyThreadState*, RunningFrame*, PyObject* result) { return result; }

#else

using RunningFrame = _PyInterpreterFrame;

#if PY_VERSION_HEX >= 0x030D0000
PyCodeObject* code_of(RunningFrame* frame) { return _PyFrame_GetCode(frame); }
#else
PyCodeObject* code_of(RunningFrame* frame) { return frame->f_code; }
#endif

bool read_values(RunningFrame* frame, int count, PyRef& closure, BoundFrame& out) {
  for (int i = 0; i < count; ++i) {
    // A parameter may be missing only where the frame was started by hand.
    if (!frame->localsplus[i]) return false;
    out.values.push_back(frame->localsplus[i]);
  }
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* function = frame->f_funcobj;
#else
  PyObject* function = reinterpret_cast<PyObject*>(frame->f_func);
#endif
  closure = PyRef::borrow(PyFunction_GET_CLOSURE(function));
  if (closure)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure.get()); ++i)
      out.values.push_back(PyTuple_GET_ITEM(closure.get(), i));
  return true;
}

// Note [Frames that are not run]
PyObject* ended(PyThreadState* thread, RunningFrame* frame, PyObject* result) {
#if PY_VERSION_HEX >= 0x030C0000
  if (!result) {
#if PY_VERSION_HEX >= 0x030D0000
    frame->instr_ptr = _PyCode_CODE(code_of(frame)) - 1;
#endif
    return _PyEval_EvalFrameDefault(thread, frame, 1);
  }
  static const auto opcode = static_cast<uint8_t>(raw_set().number("RETURN_VALUE"));
  static _Py_CODEUNIT units[2];
  units[0].op.code = units[1].op.code = opcode;
  _PyFrame_StackPush(frame, result);
#if PY_VERSION_HEX >= 0x030D0000
  frame->instr_ptr = units;
#else
  frame->prev_instr = units; // what runs next is the unit behind
#endif
  return _PyEval_EvalFrameDefault(thread, frame, 0);
#else
  return result;
#endif
}

#endif

// Scopes of all threads that need the hook; touched under the GIL.
int users = 0;

constexpr int kGenerators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

PyObject* run_frame(PyThreadState* thread, RunningFrame* frame, int throwing) {
  const ThreadState& state = current_state;
  PyCodeObject* code = code_of(frame);
  if (throwing || (!state.callback && !state.run_only) || (code->co_flags & kGenerators) ||
      !(code->co_flags & CO_OPTIMIZED)) {
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  if (state.let_run == reinterpret_cast<PyObject*>(code)) {
    current_state.let_run = nullptr;
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  BoundFrame bound;
  PyRef closure;
  if (!read_values(frame, Parameters::of(code).all(), closure, bound))
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  PyObject* result = nullptr;
  const Verdict verdict = run_compiled(reinterpret_cast<PyObject*>(code), frame->f_globals,
                                       closure.get(), bound, state, result);
  if (verdict == Verdict::Skip) return _PyEval_EvalFrameDefault(thread, frame, throwing);
  if (verdict == Verdict::SkipBelow) {
    const StateScope scope(nullptr, nullptr, true);
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  return ended(thread, frame, verdict == Verdict::Failed ? nullptr : result);
}

void add_user() {
  if (users++ == 0) _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), run_frame);
}
void remove_user() {
  if (--users == 0)
    _PyInterpreterState_SetEvalFrameFunc(PyInterpreterState_Get(), _PyEval_EvalFrameDefault);
}

#else

void add_user() {}
void remove_user() {}

#endif

bool needs_hook(const ThreadState& state) { return state.callback || state.run_only; }

} // namespace

ThreadState& thread_state() { return current_state; }

StateScope::StateScope(PyObject* callback, PyObject* backend, bool run_only)
    : saved_(current_state), callback_(PyRef::borrow(callback)), backend_(PyRef::borrow(backend)) {
  current_state = {callback, backend, run_only};
  if (needs_hook(current_state)) add_user();
}

StateScope::~StateScope() {
  const bool needed = needs_hook(current_state);
  current_state = saved_;
  if (needed) remove_user();
}

bool hook_supported() {
#ifdef CRESSET_FRAME_HOOK
  return true;
#else
  return false;
#endif
}

} // namespace torch::dynamo
