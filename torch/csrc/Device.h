// Where extensions look for devices as Python objects: the converters of torch/python.h take and
// make them.
#pragma once
#include <torch/csrc/utils/pybind.h>
