// What the programs of this folder share: the arguments are counted, an error is printed and
// becomes the exit status, and losses are printed with all their digits, so that they can be
// compared with those of the same program in Python (twins.py).
#pragma once
#include <torch/torch.h>

#include <cstdio>
#include <string>
#include <vector>

using Arguments = std::vector<std::string>;

// Runs `program` with the arguments that `usage` names.
inline int run(int argc, char** argv, const char* usage, size_t count,
               void (*program)(const Arguments&)) {
  const Arguments arguments(argv + 1, argv + argc);
  if (arguments.size() != count) {
    std::fprintf(stderr, "usage: %s\n", usage);
    return 2;
  }
  try {
    program(arguments);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

inline void print(const char* name, const torch::Tensor& value) {
  std::printf("%s %.9g\n", name, value.item<double>());
}
