// The tables beside the instructions of a code object: which handler covers which code units, which
// line each unit belongs to, and which slots a frame has. The formats are those that CPython 3.11
// introduced and documents (numbers in chunks of six bits).
#include <torch/csrc/dynamo/codec.h>

namespace torch::dynamo {
namespace {

using python::checked;

void append_varint(std::string& out, unsigned long value) {
  while (value >= 64) {
    out.push_back(static_cast<char>(0x40 | (value & 63)));
    value >>= 6;
  }
  out.push_back(static_cast<char>(value));
}
void append_signed(std::string& out, long value) {
  append_varint(out, value < 0 ? (static_cast<unsigned long>(-value) << 1) | 1
                               : static_cast<unsigned long>(value) << 1);
}

// The exception table writes its numbers from the highest chunk; the first byte of an entry is
// marked by bit 7.
void append_big_endian(std::string& out, unsigned value, bool first) {
  int shift = 0;
  while ((value >> shift) >= 64) shift += 6;
  for (bool start = first; shift >= 0; shift -= 6, start = false) {
    unsigned chunk = (value >> shift) & 63;
    if (shift > 0) chunk |= 0x40;
    if (start) chunk |= 0x80;
    out.push_back(static_cast<char>(chunk));
  }
}

long number_or(PyObject* value, long otherwise) {
  if (!value || value == Py_None) return otherwise;
  const long number = PyLong_AsLong(value);
  if (number == -1 && PyErr_Occurred()) throw python::python_error();
  return number;
}

struct Place {
  long line = -1, end_line = -1, column = -1, end_column = -1;
};
Place place_of(PyObject* positions) {
  Place out;
  if (!positions || positions == Py_None) return out;
  if (!PyTuple_Check(positions) || PyTuple_GET_SIZE(positions) != 4)
    python::raise_type_error("Instruction: positions must be a tuple of four or None");
  out.line = number_or(PyTuple_GET_ITEM(positions, 0), -1);
  out.end_line = number_or(PyTuple_GET_ITEM(positions, 1), -1);
  out.column = number_or(PyTuple_GET_ITEM(positions, 2), -1);
  out.end_column = number_or(PyTuple_GET_ITEM(positions, 3), -1);
  return out;
}

void append_place(std::string& out, const Place& place, int units, long& line) {
  enum Form { OneLine = 10, NoColumns = 13, Long = 14, None = 15 };
  const auto begin = [&](int form) {
    out.push_back(static_cast<char>(0x80 | (form << 3) | (units - 1)));
  };
  if (place.line < 0) return begin(None);
  const long delta = place.line - line;
  line = place.line;
  if (place.end_line < place.line || place.column < 0 || place.end_column < 0) {
    begin(NoColumns);
    append_signed(out, delta);
  } else if (delta >= 0 && delta <= 2 && place.end_line == place.line && place.column < 128 &&
             place.end_column < 128) {
    begin(OneLine + static_cast<int>(delta));
    out.push_back(static_cast<char>(place.column));
    out.push_back(static_cast<char>(place.end_column));
  } else {
    begin(Long);
    append_signed(out, delta);
    append_varint(out, static_cast<unsigned long>(place.end_line - place.line));
    append_varint(out, static_cast<unsigned long>(place.column + 1));
    append_varint(out, static_cast<unsigned long>(place.end_column + 1));
  }
}

} // namespace

std::vector<HandlerRange> parse_exception_table(PyObject* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  python::check_status(PyBytes_AsStringAndSize(bytes, &data, &size));
  std::vector<HandlerRange> out;
  Py_ssize_t at = 0;
  const auto number = [&]() -> int {
    int value = 0;
    while (at < size) {
      const auto byte = static_cast<unsigned char>(data[at++]);
      value = (value << 6) | (byte & 63);
      if (!(byte & 0x40)) break;
    }
    return value;
  };
  while (at < size) {
    HandlerRange range{};
    range.start = number();
    range.end = range.start + number();
    range.target = number();
    const int rest = number();
    range.depth = rest >> 1;
    range.lasti = rest & 1;
    out.push_back(range);
  }
  return out;
}

std::string format_exception_table(const std::vector<HandlerRange>& ranges) {
  std::string out;
  for (const HandlerRange& r : ranges) {
    append_big_endian(out, static_cast<unsigned>(r.start), true);
    append_big_endian(out, static_cast<unsigned>(r.end - r.start), false);
    append_big_endian(out, static_cast<unsigned>(r.target), false);
    append_big_endian(out, (static_cast<unsigned>(r.depth) << 1) | (r.lasti ? 1u : 0u), false);
  }
  return out;
}

std::string format_line_table(const std::vector<PositionRun>& runs, int first_line) {
  std::string out;
  long line = first_line;
  for (const PositionRun& run : runs) {
    const Place place = place_of(run.positions);
    for (int left = run.units; left > 0; left -= 8)
      append_place(out, place, left < 8 ? left : 8, line);
  }
  return out;
}

std::vector<PyRef> slot_names(PyObject* varnames, PyObject* cellvars, PyObject* freevars) {
  std::vector<PyRef> out;
  const auto append = [&](PyObject* names, size_t skip_among) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* name = PyTuple_GET_ITEM(names, i);
      bool known = false;
      for (size_t j = 0; j < skip_among && !known; ++j) {
        const int equal = PyObject_RichCompareBool(out[j].get(), name, Py_EQ);
        python::check_status(equal);
        known = equal != 0;
      }
      if (!known) out.push_back(PyRef::borrow(name));
    }
  };
  append(varnames, 0);
  append(cellvars, out.size());
  append(freevars, 0);
  return out;
}

} // namespace torch::dynamo
