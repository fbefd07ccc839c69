// What a trace found in the classes of a program. Python gives a class a new version whenever it or
// one of its bases changes, so an unchanged class costs one comparison; after a change the names
// that were read are looked up again.
#pragma once
#include <torch/csrc/python/runtime/support.h>

#include <vector>

namespace torch::dynamo {

using python::PyRef;

class ClassReads {
 public:
  // Rows (class, names, found): `found` holds what stands under each name, or `missing`. What is no
  // descriptor may change, and is read from its owner by other conditions: of it `found` holds
  // `owned`, and the owner stays.
  ClassReads(PyObject* rows, PyObject* missing, PyObject* owned);
  // Whether every class gives the same answers. Runs no code of the program.
  bool hold();
  int traverse(visitproc visit, void* arg) const;

 private:
  enum class Answer : uint8_t { Missing, Same, Owned };
  struct Read {
    PyRef name;
    Answer answer;
    PyRef held;          // Same: the value, weakly where it can be
    PyTypeObject* owner; // Owned: compared, never followed
  };
  struct Class {
    PyRef ref; // weak
    unsigned int version = 0;
    std::vector<Read> reads;
  };
  static bool matches(PyTypeObject* type, const Read& read);
  std::vector<Class> classes_;
};

} // namespace torch::dynamo
