// What extensions of Python written in C++ include: tensors and all of the C++ front end, and the
// converters of pybind11 for them. The one public header, with torch/python.h, that needs Python.h.
#pragma once
#include <torch/all.h>
#include <torch/python.h>
#include <torch/script.h>
