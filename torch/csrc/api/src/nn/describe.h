// Writes a module's text: describe(stream, "Linear").add("in_features", 3) gives
// "torch::nn::Linear(in_features=3)". The bracket closes with the object.
#pragma once
#include <ostream>
#include <vector>

#include <torch/enum.h>

namespace torch::nn {

class Describe {
 public:
  Describe(std::ostream& stream, const char* name) : stream_(stream), flags_(stream.flags()) {
    stream_ << std::boolalpha << "torch::nn::" << name << "(";
  }
  ~Describe() {
    stream_ << ")";
    stream_.flags(flags_);
  }
  template <class T> Describe& add(const char* key, const T& value) {
    next() << key << "=";
    write(value);
    return *this;
  }
  template <class T> Describe& bare(const T& value) {
    next();
    write(value);
    return *this;
  }
  template <class T> Describe& add_if(bool condition, const char* key, const T& value) {
    return condition ? add(key, value) : *this;
  }
  template <class T, class U>
  Describe& add_unless(const U& usual, const char* key, const T& value) {
    return add_if(!(value == usual), key, value);
  }

 private:
  std::ostream& next() {
    if (!first_) stream_ << ", ";
    first_ = false;
    return stream_;
  }
  template <class T> void write(const T& value) { stream_ << value; }
  template <class... Names> void write(const std::variant<Names...>& value) {
    stream_ << enumtype::get_enum_name(value);
  }
  template <class T> void write(const std::vector<T>& values) {
    stream_ << "[";
    for (size_t i = 0; i < values.size(); ++i) stream_ << (i ? ", " : "") << values[i];
    stream_ << "]";
  }
  std::ostream& stream_;
  std::ios_base::fmtflags flags_;
  bool first_ = true;
};

} // namespace torch::nn
