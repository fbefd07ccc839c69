// torch::save and torch::load: anything with operators << and >> for archives, to and from files,
// streams and memory.
#pragma once
#include <vector>

#include <ATen/core/ivalue.h>
#include <torch/serialize/archive.h>
#include <torch/serialize/tensor.h>
#include <torch/types.h>

namespace torch {

template <class Value, class... SaveToArgs> void save(const Value& value, SaveToArgs&&... args) {
  serialize::OutputArchive archive;
  archive << value;
  archive.save_to(std::forward<SaveToArgs>(args)...);
}
template <class... SaveToArgs> void save(const std::vector<Tensor>& tensors, SaveToArgs&&... args) {
  serialize::OutputArchive archive;
  for (size_t i = 0; i < tensors.size(); ++i) archive.write(std::to_string(i), tensors[i]);
  archive.save_to(std::forward<SaveToArgs>(args)...);
}
template <class Value, class... LoadFromArgs> void load(Value& value, LoadFromArgs&&... args) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<LoadFromArgs>(args)...);
  archive >> value;
}
template <class... LoadFromArgs> void load(std::vector<Tensor>& tensors, LoadFromArgs&&... args) {
  serialize::InputArchive archive;
  archive.load_from(std::forward<LoadFromArgs>(args)...);
  Tensor tensor;
  for (size_t i = 0; archive.try_read(std::to_string(i), tensor); ++i) {
    tensors.push_back(std::move(tensor));
    tensor = Tensor();
  }
}

// One value as a file in memory that torch.load reads, and the other way round: numbers, texts,
// tensors, lists, tuples and dictionaries.
std::vector<char> pickle_save(const c10::IValue& value);
c10::IValue pickle_load(const std::vector<char>& data);

} // namespace torch
