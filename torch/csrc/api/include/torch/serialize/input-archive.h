// Where programs look for archives.
#pragma once
#include <torch/serialize/archive.h>
