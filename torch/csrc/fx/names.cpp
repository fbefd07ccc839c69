// Names of values. A graph hands out Python identifiers that are not taken, no keyword and no
// builtin: "relu", then "relu_1", "relu_2". Texts are ASCII in practice; whatever else a target
// holds becomes "_".
#include <torch/csrc/fx/fx.h>

namespace torch::fx {

PyTypeObject NamespaceType = python::type_object("torch._C._fx._Namespace");
Words words;

namespace {

using python::check_status;
using python::checked;
using python::python_error;

bool is_word(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }

PyObject* new_text(const std::string& text) {
  return checked(PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size())))
      .release();
}

// An identifier that looks like the text: each run of other characters becomes one "_".
std::string identifier(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 1);
  if (!text.empty() && is_digit(text[0])) out.push_back('_');
  bool in_run = false;
  for (const char c : text) {
    const bool word = is_word(static_cast<unsigned char>(c));
    if (word || !in_run) out.push_back(word ? c : '_');
    in_run = !word;
  }
  return out.empty() ? "_unnamed" : out;
}

// "a_12" is "a" and 12. A number too long to count with is part of the name.
struct Numbered {
  std::string_view base;
  long long number = -1;
};
Numbered split_number(std::string_view text) {
  size_t digits = text.size();
  while (digits > 0 && is_digit(text[digits - 1])) --digits;
  const size_t count = text.size() - digits;
  if (count == 0 || count > 15 || digits == 0 || text[digits - 1] != '_') return {text};
  return {text.substr(0, digits - 1), std::stoll(std::string(text.substr(digits)))};
}

// Taken, or a word that means something else unless it stands for that very object.
bool is_free(NamespaceObject* names, PyObject* name, PyObject* object) {
  const int used = PyDict_Contains(names->used, name);
  check_status(used);
  if (used) return false;
  PyObject* meaning = PyDict_GetItemWithError(words.reserved, name);
  if (!meaning && PyErr_Occurred()) throw python_error();
  return !meaning || (object && object != Py_None && meaning == object);
}

// The number last handed out for a base, 0 when none was.
long long counter(NamespaceObject* names, PyObject* base) {
  PyObject* count = PyDict_GetItemWithError(names->counters, base);
  if (!count) {
    if (PyErr_Occurred()) throw python_error();
    return 0;
  }
  const long long value = PyLong_AsLongLong(count);
  if (value == -1 && PyErr_Occurred()) throw python_error();
  return value;
}

void set_counter(NamespaceObject* names, PyObject* base, long long number) {
  PyRef value = checked(PyLong_FromLongLong(number));
  check_status(PyDict_SetItem(names->counters, base, value.get()));
}

PyObject* lookup_object(NamespaceObject* names, PyObject* object) {
  if (!object || object == Py_None || !names->object_names) return nullptr;
  PyRef key = checked(PyLong_FromVoidPtr(object));
  PyObject* entry = PyDict_GetItemWithError(names->object_names, key.get());
  if (!entry && PyErr_Occurred()) throw python_error();
  return entry ? PyTuple_GET_ITEM(entry, 1) : nullptr;
}

// Objects are remembered by identity, since not every value has a hash; the entry keeps the object.
void remember_object(NamespaceObject* names, PyObject* object, PyObject* name) {
  if (!names->object_names) names->object_names = checked(PyDict_New()).release();
  PyRef key = checked(PyLong_FromVoidPtr(object));
  PyRef entry = checked(PyTuple_Pack(2, object, name));
  check_status(PyDict_SetItem(names->object_names, key.get(), entry.get()));
}

PyObject* py_create_name(PyObject* self, PyObject* args, PyObject* kwargs) {
  const char* words_[] = {"candidate", "obj", nullptr};
  PyObject* candidate = nullptr;
  PyObject* object = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|O:create_name", const_cast<char**>(words_),
                                   &candidate, &object))
    return nullptr;
  return python::guarded([&]() -> PyObject* {
    auto* names = reinterpret_cast<NamespaceObject*>(self);
    if (PyObject* known = lookup_object(names, object)) return Py_NewRef(known);
    PyRef name(unique_name(names, candidate, object));
    if (object != Py_None) remember_object(names, object, name.get());
    return name.release();
  });
}

PyObject* py_associate(PyObject* self, PyObject* args, PyObject* kwargs) {
  const char* words_[] = {"name", "obj", nullptr};
  PyObject *name = nullptr, *object = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "UO:associate_name_with_obj",
                                   const_cast<char**>(words_), &name, &object))
    return nullptr;
  return python::guarded([&]() -> PyObject* {
    auto* names = reinterpret_cast<NamespaceObject*>(self);
    remember_object(names, object, name);
    check_status(PyDict_SetItem(names->used, name, Py_None));
    return python::new_none();
  });
}

PyObject* py_copy(PyObject* self, PyObject*) {
  return python::guarded([&]() -> PyObject* {
    auto* from = reinterpret_cast<NamespaceObject*>(self);
    PyRef out = checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(Py_TYPE(self))));
    auto* to = reinterpret_cast<NamespaceObject*>(out.get());
    check_status(PyDict_Update(to->used, from->used));
    check_status(PyDict_Update(to->counters, from->counters));
    return out.release();
  });
}

PyObject* new_namespace(PyTypeObject* type, PyObject*, PyObject*) {
  PyRef self(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  auto* names = reinterpret_cast<NamespaceObject*>(self.get());
  names->used = PyDict_New();
  names->counters = PyDict_New();
  return names->used && names->counters ? self.release() : nullptr;
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  auto* names = reinterpret_cast<NamespaceObject*>(self);
  Py_VISIT(names->used);
  Py_VISIT(names->counters);
  Py_VISIT(names->object_names);
  return 0;
}
int clear(PyObject* self) {
  auto* names = reinterpret_cast<NamespaceObject*>(self);
  Py_CLEAR(names->used);
  Py_CLEAR(names->counters);
  Py_CLEAR(names->object_names);
  return 0;
}
void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_TYPE(self)->tp_free(self);
}

PyObject* get_used(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<NamespaceObject*>(self)->used);
}
PyObject* get_counters(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<NamespaceObject*>(self)->counters);
}

PyMethodDef methods[] = {
    {"create_name", python::as_method(py_create_name), METH_VARARGS | METH_KEYWORDS,
     "create_name($self, candidate, obj=None)\n--\n\n"
     "A name that nobody has yet, made of candidate; the same one again for the same object."},
    {"associate_name_with_obj", python::as_method(py_associate), METH_VARARGS | METH_KEYWORDS,
     "associate_name_with_obj($self, name, obj)\n--\n\nGives a name that is known to an object."},
    {"_copy", py_copy, METH_NOARGS, "_copy($self)\n--\n\nThe same names, without objects."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {{"_used_names", get_used, nullptr, nullptr, nullptr},
                            {"_base_count", get_counters, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
} // namespace

PyObject* unique_name(NamespaceObject* names, PyObject* candidate, PyObject* object) {
  const std::string text = identifier(python::utf8(candidate));
  PyRef name(text == python::utf8(candidate) ? Py_NewRef(candidate) : new_text(text));
  const Numbered parts = split_number(text);
  PyRef base(parts.number < 0 ? Py_NewRef(name.get()) : new_text(std::string(parts.base)));
  long long number = parts.number;
  const bool free = is_free(names, name.get(), object);
  if (!free) {
    if (number <= 0) number = counter(names, base.get());
    const std::string stem = std::string(parts.base) + '_';
    do {
      name = PyRef(new_text(stem + std::to_string(++number)));
    } while (!is_free(names, name.get(), object));
  }
  check_status(PyDict_SetItem(names->used, name.get(), Py_None));
  if (number > 0) set_counter(names, base.get(), number);
  return name.release();
}

PyObject* name_of_target(PyObject* target) {
  PyRef text;
  if (PyUnicode_Check(target)) {
    text = PyRef::borrow(target);
  } else {
    text = checked(PyObject_GetAttr(target, words.name));
    if (!PyUnicode_Check(text.get())) text = checked(PyObject_Str(text.get()));
  }
  std::string_view view = python::utf8(text.get());
  const size_t n = view.size();
  if (n >= 4 && view.substr(0, 2) == "__" && view.substr(n - 2) == "__") {
    view = view.substr(2, n - 4);
  }
  std::string out;
  bool was_lower = false;
  for (const char c : view) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && was_lower) out.push_back('_');
    out.push_back(upper ? static_cast<char>(c - 'A' + 'a') : c);
    was_lower = c >= 'a' && c <= 'z';
  }
  return out == python::utf8(text.get()) ? text.release() : new_text(out);
}

bool init_names(PyObject* module) {
  NamespaceType.tp_basicsize = sizeof(NamespaceObject);
  NamespaceType.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC;
  NamespaceType.tp_new = new_namespace;
  NamespaceType.tp_dealloc = dealloc;
  NamespaceType.tp_traverse = traverse;
  NamespaceType.tp_clear = clear;
  NamespaceType.tp_methods = methods;
  NamespaceType.tp_getset = attributes;
  return python::add_type(module, &NamespaceType);
}

} // namespace torch::fx
