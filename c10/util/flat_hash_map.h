// The map C++ code written for PyTorch names; a plain hash map here.
#pragma once
#include <unordered_map>

namespace ska {
template <class K, class V> using flat_hash_map = std::unordered_map<K, V>;
} // namespace ska
