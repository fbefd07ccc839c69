// The C++ front end in one include.
#pragma once
#include <torch/all.h>
