// What extensions of Python written in C++ include: tensors and all of the C++ front end, and the
// converters of pybind11 for them. With torch/python.h and
// torch/python_modules.h the public headers that need Python.h.
#pragma once
#include <ATen/core/GeneratorUser.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <torch/all.h>
#include <torch/python.h>
#include <torch/python_modules.h>
#include <torch/script.h>
