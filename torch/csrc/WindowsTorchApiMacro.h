// Where programs look for the macros of exported symbols.
#pragma once
#include <c10/macros/Macros.h>
