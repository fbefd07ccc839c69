// Values, options and lists of tensors on C++ streams.
#undef CRESSET_KERNEL_TU // members for users
#include <ATen/core/Formatting.h>
#include <ATen/core/ivalue.h>
#include <c10/core/TensorOptions.h>

#include <charconv>
#include <cmath>
#include <iostream>

namespace at {
namespace {

// The shortest text that reads back as the number; integers have a point: "2.", "2.5", "1e+20".
void print_number(std::ostream& out, double number) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  const std::string_view written(text, static_cast<size_t>(end - text));
  out << written;
  if (std::isfinite(number) && written.find_first_of(".e") == std::string_view::npos) out << '.';
}

void print_items(std::ostream& out, const std::vector<IValue>& items) {
  for (size_t i = 0; i < items.size(); ++i) out << (i == 0 ? "" : ", ") << items[i];
}

void print_dict(std::ostream& out, const DictValue& dict) {
  out << "{";
  for (size_t i = 0; i < dict.entries.size(); ++i)
    out << (i == 0 ? "" : ", ") << dict.entries[i].first << ": " << dict.entries[i].second;
  out << "}";
}

} // namespace

void print(const Tensor& tensor, int64_t line_width) { print(std::cout, tensor, line_width); }

std::ostream& operator<<(std::ostream& out, const std::vector<Tensor>& list) {
  for (size_t i = 0; i < list.size(); ++i) out << (i == 0 ? "" : " ") << list[i];
  return out;
}

std::ostream& operator<<(std::ostream& out, const IValue& value) {
  if (value.isTensor()) return out << value.toTensor();
  if (value.isString()) return out << value.toStringRef();
  if (value.isDouble()) {
    print_number(out, value.toDouble());
    return out;
  }
  if (value.isComplexDouble()) {
    const c10::complex<double> number = value.toComplexDouble();
    print_number(out, number.real());
    out << (std::signbit(number.imag()) ? "" : "+");
    print_number(out, number.imag());
    return out << "j";
  }
  if (value.isDevice()) return out << value.toDevice();
  if (const auto* dict = ivalue::opaque<DictValue>(value)) {
    print_dict(out, *dict);
    return out;
  }
  if (const auto* tuple = ivalue::opaque<TupleValue>(value)) {
    out << "(";
    print_items(out, tuple->items);
    return out << (tuple->items.size() == 1 ? ",)" : ")");
  }
  if (ivalue::is_list(value)) {
    out << "[";
    print_items(out, ivalue::list_items(value));
    return out << "]";
  }
  return out << ivalue::repr(value);
}

} // namespace at

namespace c10 {
namespace {

// The C++ type of an element.
std::string element_name(ScalarType type) {
  switch (type) {
  case ScalarType::Bool:
    return "bool";
  case ScalarType::Byte:
    return "unsigned char";
  case ScalarType::Char:
    return "signed char";
  case ScalarType::Short:
    return "short int";
  case ScalarType::UInt16:
    return "short unsigned int";
  case ScalarType::Int:
    return "int";
  case ScalarType::UInt32:
    return "unsigned int";
  case ScalarType::Long:
    return "long int";
  case ScalarType::UInt64:
    return "long unsigned int";
  case ScalarType::Float:
    return "float";
  case ScalarType::Double:
    return "double";
  case ScalarType::ComplexHalf:
    return "c10::complex<c10::Half>";
  case ScalarType::ComplexFloat:
    return "c10::complex<float>";
  case ScalarType::ComplexDouble:
    return "c10::complex<double>";
  default:
    return str("c10::", toString(type));
  }
}

template <class T>
void print_option(std::ostream& out, const char* name, const T& value, bool is_default) {
  out << name << "=" << value << (is_default ? " (default), " : ", ");
}

} // namespace

std::ostream& operator<<(std::ostream& out, const TensorOptions& options) {
  const auto text = [](bool value) { return value ? "true" : "false"; };
  out << "TensorOptions(";
  print_option(out, "dtype", element_name(options.dtype()), !options.dtype_opt());
  print_option(out, "device", options.device(), !options.device_opt());
  print_option(out, "layout", options.layout(), !options.layout_opt());
  print_option(out, "requires_grad", text(options.requires_grad()), !options.requires_grad_opt());
  print_option(out, "pinned_memory", text(options.pinned_memory()), !options.pinned_memory_opt());
  const std::optional<MemoryFormat> format = options.memory_format_opt();
  return out << "memory_format=" << (format ? stream_name(*format) : "(nullopt)") << ")";
}

} // namespace c10
