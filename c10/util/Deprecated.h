// Marks of what programs should not use any more.
#pragma once

#define C10_DEPRECATED [[deprecated]]
#define C10_DEPRECATED_MESSAGE(message) [[deprecated(message)]]
#define C10_DEFINE_DEPRECATED_USING(Name, Type) using Name [[deprecated]] = Type;
