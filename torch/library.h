// What extensions include to register operators and classes.
#pragma once
#include <ATen/core/Library.h>
#include <torch/custom_class.h>
