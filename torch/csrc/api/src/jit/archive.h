// An archive of scripted code in memory: what its records say as classes, functions and objects.
#pragma once
#include <memory>
#include <optional>

#include <torch/csrc/api/src/jit/unit.h>

namespace torch::jit {

// Everything a module needs beside its object. Records are kept for saving.
struct ModuleCode {
  std::map<std::string, std::string> records; // code and constants
  std::unique_ptr<source::Unit> unit;
  // Of every class that a loaded object has; an object without one is not of this archive.
  const source::Class& class_of(const Object& object) const;
};

struct Loaded {
  c10::intrusive_ptr<Object> object;
  std::shared_ptr<ModuleCode> code;
};
Loaded read_archive(std::string_view file, std::optional<at::Device> device,
                    std::unordered_map<std::string, std::string>* extra_files);
std::string write_archive(const Object& object, const ModuleCode& code,
                          const std::unordered_map<std::string, std::string>& extra_files);

// Tuples and dictionaries of programs are other objects than those of C++ users.
IValue for_users(const IValue& value);
IValue for_programs(const IValue& value, const Type& type);

} // namespace torch::jit
