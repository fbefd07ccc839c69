// Where programs look for the converters of pybind11.
#pragma once
#include <torch/python.h>
