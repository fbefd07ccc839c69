// The entry into compiled code.
//
// torch.compile(fn) is a CompiledFunction: it binds the arguments to fn's parameters, checks the
// guards of fn's compiled forms on that vector, and calls the first that holds; fn's own frame is
// never made. Where none holds, a callback in Python compiles another. Where code cannot be
// compiled it runs as it is, and so that calls below it are compiled nevertheless, the interpreter
// then hands every new frame of this thread to us (PEP 523). The hook is installed only while some
// thread needs it.
//
// What was compiled belongs to the code object (CodeCache) and dies with it.
#pragma once
#include <torch/csrc/dynamo/guards.h>

#include <c10/util/SmallVector.h>

namespace torch::dynamo {

// One compiled form of a function: code whose parameters are those of the original, all by position
// (`*args` and `**kwargs` as one value each), with the same free variables.
struct EntryObject {
  PyObject_HEAD PyObject* code;
  PyObject* guards;   // a RootGuardManager, or None: always
  PyObject* backend;  // entries of other backends are not looked at
  PyObject* globals;  // of the compiled code
  char has_break;     // runs user code: frames below it are to be compiled
  PyObject* function; // of code that reads no closure, made on the first call
  PyObject* dict;
  PyObject* weakrefs;
};

// All that is known about one code object.
struct CacheObject {
  PyObject_HEAD PyObject* entries; // list, the one used last first
  PyObject* code;                  // borrowed: the code owns the cache
  char skip;                       // is not to be compiled; calls below it are
  char run_only;                   // is not to be compiled again
  char compiled;                   // was written by us: never looked at
  PyObject* dict;
  PyObject* weakrefs;
  CacheObject *prev, *next; // all caches of the process
};

extern PyTypeObject EntryType;
extern PyTypeObject CacheType;
extern PyTypeObject CompiledFunctionType;

// The cache of a code object (borrowed), made where there is none and `make` is set; null
// otherwise.
CacheObject* cache_of(PyObject* code, bool make);

// Parameters of a code object.
struct Parameters {
  int positional; // with those that are positional only
  int positional_only;
  int keyword_only;
  bool varargs, varkeywords;
  int all() const { return positional + keyword_only + (varargs ? 1 : 0) + (varkeywords ? 1 : 0); }
  static Parameters of(PyCodeObject* code);
};

// The values a frame begins with: parameters, then cells of the closure. Borrowed, or owned by
// `held`.
struct BoundFrame {
  c10::SmallVector<PyObject*, 16> values;
  std::vector<PyRef> held;
};
// Binds arguments as a call of the function does; false, without an error set, where the call would
// raise.
bool bind(PyObject* function, const Parameters& parameters, PyObject* const* args, size_t nargs,
          PyObject* kwnames, BoundFrame& out);

// How frames of this thread are treated.
struct ThreadState {
  PyObject* callback = nullptr; // compiles frames; null: they run as they are
  PyObject* backend = nullptr;  // whose entries are used
  bool run_only = false;        // compiled forms are used and none is made
  PyObject* let_run = nullptr;  // the next frame of this code runs as it is
};
ThreadState& thread_state();
// Sets the state for a scope, keeps the objects alive, and keeps the hook installed while needed.
class StateScope {
 public:
  StateScope(PyObject* callback, PyObject* backend, bool run_only = false);
  ~StateScope();
  StateScope(const StateScope&) = delete;
  StateScope& operator=(const StateScope&) = delete;

 private:
  ThreadState saved_;
  PyRef callback_, backend_;
};
// Whether this Python lets us take frames over.
bool hook_supported();

// What is to be done with a frame.
enum class Verdict { Run, Skip, SkipBelow, Failed };
// Finds or makes a compiled form for the frame and calls it: `result` holds what it returned (null
// with the error set). Skip: the frame has to run as it is; `result` is untouched. SkipBelow:
// likewise, and nothing is compiled below it either.
Verdict run_compiled(PyObject* code, PyObject* globals, PyObject* closure, const BoundFrame& frame,
                     const ThreadState& state, PyObject*& result);

bool init_code_cache(PyObject* module);
bool init_graph_call(PyObject* module);
bool init_thread_settings(PyObject* module);
bool init_eval_frame(PyObject* module);

} // namespace torch::dynamo
