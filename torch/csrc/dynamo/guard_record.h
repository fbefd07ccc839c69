// What the last check of a value rested on, as a list of machine words.
//
// Note [Records of unchanged values]
// A model's guards look at thousands of values that hardly ever change: attributes and tables of
// its modules, constants, functions. A record of a check that held keeps the addresses of the words
// that every change of those values writes to (versions of dictionaries and classes, items of
// lists, cells, fields of functions and objects) with what stood there. While all of them stand
// there still, the same objects are in the same places and need no look. What changes without
// leaving a mark is looked at each time: tensors by their patterns, other conditions as they are.
//
// No word is read before what keeps its address valid was compared: a dictionary whose version is
// the same has held its items all along, and versions of dictionaries are never used twice. Lists,
// tuples, cells and fields may hold another object at the address of one that died, and so may the
// argument itself; constants found there are kept alive, and conditions that compare more than
// addresses are checked again.
//
// A value that changes often gets no record; its parts get theirs.
#pragma once
#include <torch/csrc/dynamo/guards.h>

namespace torch::dynamo {

// A read of a part of a value: one that is given, or the part that an earlier step read.
struct ReadStep {
  PyRef accessor;
  size_t base;
};

class Record {
 public:
  enum class Outcome : uint8_t { Holds, Fails, Changed };

  // The record of a value for which all guards of the manager hold; null where nothing can be
  // recorded of it.
  static std::unique_ptr<Record> take(ManagerObject* manager, PyObject* value);
  // The record of what the steps lead to from the values, to which the parts are appended; null
  // where a part has to be read each time.
  static std::unique_ptr<Record> follow(const std::vector<ReadStep>& steps,
                                        std::vector<PyObject*>& values);
  // Changed: nothing is known, the guards have to be asked.
  Outcome check(const FrameView& view) const;

 private:
  friend class RecordTaker;
  struct Word {
    const uint64_t* at;
    uint64_t value;
  };
  struct TypeVersion {
    const unsigned* at;
    unsigned value;
  };
  struct TensorCheck {
    PyObject* value;
    const TensorPattern* pattern;
  };
  struct LeafCheck {
    LeafObject* leaf;
    PyObject* value;
  };
  // Parts that are fetched anew; without an accessor the value itself.
  struct PartCheck {
    AccessorObject* accessor;
    ManagerObject* manager;
    PyObject* value;
  };
  bool check_others(const FrameView& view) const;

  std::vector<Word> words_;
  std::vector<TypeVersion> types_;
  std::vector<TensorCheck> tensors_;
  std::vector<LeafCheck> leaves_;
  std::vector<PartCheck> parts_;
  std::vector<PyRef> constants_;
};

// The records of one manager, by the value.
class RecordTable {
 public:
  Record::Outcome check(PyObject* value, uint64_t edits, const FrameView& view);
  // After a check of the guards themselves that held. False once recording does not pay.
  bool note(ManagerObject* manager, PyObject* value);

 private:
  struct Slot {
    PyObject* value; // compared, never followed
    std::unique_ptr<Record> record;
  };
  static constexpr size_t kSlots = 32;
  std::vector<Slot> slots_;
  size_t next_ = 0;
  uint64_t edits_ = 0;
  long hits_ = 0, misses_ = 0;
};

} // namespace torch::dynamo
