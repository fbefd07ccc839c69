// See autograd_anomaly.h.
#include <torch/csrc/python/autograd/anomaly.h>

#include <torch/csrc/autograd/engine.h>

#include <c10/util/Exception.h>

namespace torch::python {
namespace {

PyObject* format_stack = nullptr;

struct Record final : autograd::AnomalyRecord {
  Record() : metadata(checked(PyDict_New())) {}
  ~Record() override {
    autograd::release_node(std::move(parent));
    if (!python_exists()) {
      metadata.release();
      return;
    }
    WithGil gil;
    metadata = PyRef();
  }
  void print(const std::string& node_name) override;
  std::string where() override;
  PyRef metadata;
  // The node in whose backward this one was made (double backward).
  c10::intrusive_ptr<autograd::Node> parent;
};

std::string traceback_of(const Record& record) {
  PyObject* lines = PyDict_GetItemString(record.metadata.get(), "traceback_");
  std::string out;
  for (Py_ssize_t i = 0; lines && PyList_Check(lines) && i < PyList_GET_SIZE(lines); ++i) {
    out += text_of(PyList_GET_ITEM(lines, i));
  }
  return out;
}

std::string Record::where() {
  WithGil gil;
  return traceback_of(*this);
}

// Where warnings are errors the text goes to sys.stderr: another error is on its way already.
void warn_or_print(const std::string& text) {
  try {
    TORCH_WARN(text);
    return;
  } catch (...) {
    PyErr_Clear();
  }
  PyObject* stream = PySys_GetObject("stderr");
  if (stream && stream != Py_None && PyFile_WriteString((text + "\n").c_str(), stream) < 0)
    PyErr_Clear();
}

void Record::print(const std::string& node_name) {
  WithGil gil;
  // The error that is on its way out must survive the warning.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  try {
    const std::string forward = traceback_of(*this);
    if (forward.empty()) {
      warn_or_print(c10::str(
          "Error detected in ", node_name,
          ". No forward pass information available. Enable detect anomaly during forward pass "
          "for more information."));
    } else {
      warn_or_print(c10::str("Error detected in ", node_name,
                             ". Traceback of forward call that caused the error:\n", forward));
    }
    c10::intrusive_ptr<autograd::Node> above = parent;
    while (above) {
      const auto* record = dynamic_cast<const Record*>(above->anomaly());
      if (!record) break;
      warn_or_print(c10::str("\n\nPrevious calculation was induced by ", above->name(),
                             ". Traceback of forward call that induced the previous calculation:\n",
                             traceback_of(*record)));
      above = record->parent;
    }
  } catch (...) {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
}

std::unique_ptr<autograd::AnomalyRecord> make_record() {
  if (!python_exists()) return nullptr;
  WithGil gil;
  auto record = std::make_unique<Record>();
  PyObject* format = cached_attribute(format_stack, "traceback", "format_stack");
  PyRef lines(format ? PyObject_CallNoArgs(format) : nullptr);
  if (!lines || PyDict_SetItemString(record->metadata.get(), "traceback_", lines.get()) < 0) {
    throw python_error();
  }
  if (autograd::Node* node = autograd::current_node()) {
    record->parent = c10::intrusive_ptr<autograd::Node>::unsafe_retain(node);
  }
  return record;
}

PyObject* py_set_anomaly(PyObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"enabled", "check_nan", nullptr};
  int enabled = 0, check_nan = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "p|p", const_cast<char**>(names), &enabled,
                                   &check_nan)) {
    return nullptr;
  }
  autograd::anomaly_mode().enabled = enabled != 0;
  autograd::anomaly_mode().check_nan = check_nan != 0;
  return new_none();
}
PyObject* py_is_anomaly(PyObject*, PyObject*) { return new_bool(autograd::anomaly_mode().enabled); }
PyObject* py_is_check_nan(PyObject*, PyObject*) {
  return new_bool(autograd::anomaly_mode().check_nan);
}

PyMethodDef functions[] = {
    {"set_anomaly_enabled", as_method(py_set_anomaly), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"is_anomaly_enabled", py_is_anomaly, METH_NOARGS, nullptr},
    {"is_anomaly_check_nan_enabled", py_is_check_nan, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

} // namespace

PyObject* anomaly_metadata(autograd::Node& node) {
  if (!node.anomaly()) node.set_anomaly(std::make_unique<Record>());
  auto* record = dynamic_cast<Record*>(node.anomaly());
  TORCH_CHECK(record != nullptr, node.name(), " keeps no Python metadata");
  PyObject* out = record->metadata.get();
  Py_INCREF(out);
  return out;
}

bool init_autograd_anomaly(PyObject* module) {
  autograd::make_anomaly_record = make_record;
  return PyModule_AddFunctions(module, functions) == 0;
}

} // namespace torch::python
