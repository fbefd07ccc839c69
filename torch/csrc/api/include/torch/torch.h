// The C++ front end in one include, with the headers of the standard library that programs which
// include it take for granted.
#pragma once
#include <cassert>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <torch/all.h>
