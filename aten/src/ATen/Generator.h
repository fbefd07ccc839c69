// ATen's name for generators.
#pragma once
#include <ATen/core/GeneratorUser.h>
