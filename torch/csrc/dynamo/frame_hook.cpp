// The hook of PEP 523: while a thread runs user code that could not be compiled, its new frames
// come here first. Internals of CPython are read (code, function and arguments of a frame that
// starts) and never built or changed. Only 3.11 leaves a frame that was not run to its caller to
// free; on other versions the hook stays away, and functions called from code that broke run as
// they are.
#include <torch/csrc/dynamo/eval_frame.h>

#if PY_VERSION_HEX >= 0x030B0000 && PY_VERSION_HEX < 0x030C0000
#define CRESSET_FRAME_HOOK 1
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE
#endif

namespace torch::dynamo {
namespace {

thread_local ThreadState current_state;

#ifdef CRESSET_FRAME_HOOK

// Scopes of all threads that need the hook; touched under the GIL.
int users = 0;

constexpr int kGenerators = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;

PyObject* run_frame(PyThreadState* thread, _PyInterpreterFrame* frame, int throwing) {
  const ThreadState& state = current_state;
  PyCodeObject* code = frame->f_code;
  if (throwing || (!state.callback && !state.run_only) || (code->co_flags & kGenerators) ||
      !(code->co_flags & CO_OPTIMIZED)) {
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  if (state.let_run == reinterpret_cast<PyObject*>(code)) {
    current_state.let_run = nullptr;
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  BoundFrame bound;
  const int count = Parameters::of(code).all();
  for (int i = 0; i < count; ++i) {
    // A parameter may be missing only where the frame was started by hand.
    if (!frame->localsplus[i]) return _PyEval_EvalFrameDefault(thread, frame, throwing);
    bound.values.push_back(frame->localsplus[i]);
  }
  PyObject* closure = frame->f_func->func_closure;
  if (closure)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(closure); ++i)
      bound.values.push_back(PyTuple_GET_ITEM(closure, i));
  PyObject* result = nullptr;
  const Verdict verdict = run_compiled(reinterpret_cast<PyObject*>(code), frame->f_globals, closure,
                                       bound, state, result);
  if (verdict == Verdict::Skip) return _PyEval_EvalFrameDefault(thread, frame, throwing);
  if (verdict == Verdict::SkipBelow) {
    const StateScope scope(nullptr, nullptr, true);
    return _PyEval_EvalFrameDefault(thread, frame, throwing);
  }
  return verdict == Verdict::Failed ? nullptr : result;
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
