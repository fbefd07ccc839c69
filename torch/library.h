// What extensions include to register operators.
#pragma once
#include <ATen/core/Library.h>
