// What a worker thread threw, on its way to the thread that asked for the batch.
#pragma once
#include <exception>
#include <string>
#include <utility>

#include <c10/macros/Macros.h>

namespace torch::data {

struct TORCH_API WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original);
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

} // namespace torch::data
