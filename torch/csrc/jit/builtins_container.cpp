// Lists, dictionaries, tuples and identity in scripted code.
#include <torch/csrc/jit/builtins.h>
#include <torch/csrc/jit/lists.h>
#include <torch/csrc/jit/tasks.h>

#include <algorithm>
#include <complex>
#include <functional>
#include <limits>

namespace torch::jit {

IValue list_item(const IValue* a, size_t) {
  return list_get(a[0], checked_index(a[1].toInt(), list_size(a[0]), "list"));
}
IValue list_set_item(const IValue* a, size_t) {
  list_set(a[0], checked_index(a[1].toInt(), list_size(a[0]), "list"), a[2]);
  return a[0];
}
IValue list_append(const IValue* a, size_t) {
  list_push(a[0], a[1]);
  return a[0];
}
IValue list_length(const IValue* a, size_t) {
  return IValue(static_cast<int64_t>(list_size(a[0])));
}
IValue dict_item(const IValue* a, size_t) {
  const IValue* found = need<Dict>(a[0], "dictionary").find(a[1]);
  if (!found) throw c10::IndexError(c10::str("KeyError: ", value_text(a[1], true)));
  return *found;
}
IValue dict_set_item(const IValue* a, size_t) {
  need<Dict>(a[0], "dictionary").set(a[1], a[2]);
  return IValue();
}
IValue dict_contains(const IValue* a, size_t) {
  return IValue(need<Dict>(a[0], "dictionary").find(a[1]) != nullptr);
}

SliceRange slice_range(int64_t n, const IValue& start, const IValue& end, const IValue& by) {
  // -INT64_MAX instead of the smallest number: its negative must exist, and no list is as long.
  const int64_t step = by.isNone() ? 1 : std::max(by.toInt(), -std::numeric_limits<int64_t>::max());
  TORCH_CHECK_VALUE(step != 0, "slice step cannot be zero");
  auto bound = [&](const IValue& v, int64_t missing) {
    if (v.isNone()) return missing;
    int64_t i = v.toInt();
    if (i < 0) i = std::max(i, -n - 1) + n;
    return step > 0 ? std::clamp<int64_t>(i, 0, n) : std::clamp<int64_t>(i, -1, n - 1);
  };
  const int64_t lo = bound(start, step > 0 ? 0 : n - 1), hi = bound(end, step > 0 ? n : -1);
  const int64_t span = step > 0 ? hi - lo : lo - hi, size = step > 0 ? step : -step;
  return {lo, step, span <= 0 ? 0 : (span - 1) / size + 1};
}

namespace {

int64_t size_of(const IValue& list) { return static_cast<int64_t>(list_size(list)); }
IValue nothing() { return IValue(); }
Dict& dict_of(const IValue& v) { return need<Dict>(v, "dictionary"); }

template <class V> IValue as_list(V items) { return IValue(std::move(items)); }

IValue copy_of(const IValue& list) {
  return visit_list(list, [](const auto& v) { return as_list(std::decay_t<decltype(v)>(v)); });
}

std::vector<IValue> items_of(const IValue& list) {
  std::vector<IValue> out;
  out.reserve(list_size(list));
  for (size_t i = 0; i < list_size(list); ++i) out.push_back(list_get(list, i));
  return out;
}

// Appends the items of `from` to `to`, `times` times; they may be one list.
void append_all(const IValue& to, const IValue& from, size_t times = 1) {
  if (to.tag != from.tag) {
    for (const IValue& item : items_of(from)) list_push(to, item);
    return;
  }
  visit_list(to, [&](auto& v) {
    using T = typename std::remove_reference_t<decltype(v)>::value_type;
    const std::vector<T>& more = vector_of<T>(from);
    const size_t n = more.size();
    v.reserve(v.size() + n * times);
    for (; times > 0; --times)
      for (size_t i = 0; i < n; ++i) v.push_back(static_cast<T>(more[i]));
  });
}

IValue repeated(const IValue* a) {
  IValue out = new_list_like(a[0]);
  const int64_t n = std::max<int64_t>(a[1].toInt(), 0);
  TORCH_CHECK(n == 0 || list_size(a[0]) <= (size_t(1) << 32) / size_t(n), "list is too long");
  append_all(out, a[0], size_t(n));
  return out;
}

IValue slice_of(const IValue& list, const SliceRange& r) {
  return visit_list(list, [&](const auto& v) {
    std::decay_t<decltype(v)> picked;
    picked.reserve(static_cast<size_t>(r.count));
    for (int64_t i = 0; i < r.count; ++i)
      picked.push_back(v[static_cast<size_t>(r.start + i * r.step)]);
    return as_list(std::move(picked));
  });
}

template <class V> void sort_values(V& v, bool reverse) {
  using T = typename V::value_type;
  if constexpr (std::is_arithmetic_v<T>) {
    reverse ? std::stable_sort(v.begin(), v.end(), std::greater<T>())
            : std::stable_sort(v.begin(), v.end());
  } else {
    std::vector<IValue> items(v.begin(), v.end());
    std::stable_sort(items.begin(), items.end(), [&](const IValue& a, const IValue& b) {
      return reverse ? less(b, a) : less(a, b);
    });
    for (size_t i = 0; i < items.size(); ++i) v[i] = item_as<T>(items[i]);
  }
}
void sort_list(const IValue& list, bool reverse) {
  visit_list(list, [&](auto& v) { sort_values(v, reverse); });
}

int64_t find_item(const IValue& list, const IValue& item) {
  if (list.tag == IValue::Tag::IntList && item.tag == IValue::Tag::Int) {
    const std::vector<int64_t>& v = list.toIntList();
    const auto found = std::find(v.begin(), v.end(), item.bits.i);
    return found == v.end() ? -1 : found - v.begin();
  }
  for (size_t i = 0; i < list_size(list); ++i)
    if (values_equal(list_get(list, i), item)) return int64_t(i);
  return -1;
}
IValue extreme(const IValue& list, bool largest, const char* name) {
  TORCH_CHECK_VALUE(list_size(list) > 0, name, "() arg is an empty sequence");
  if (list.tag == IValue::Tag::IntList) {
    const std::vector<int64_t>& v = list.toIntList();
    return IValue(largest ? *std::max_element(v.begin(), v.end())
                          : *std::min_element(v.begin(), v.end()));
  }
  IValue best = list_get(list, 0);
  for (size_t i = 1; i < list_size(list); ++i) {
    IValue item = list_get(list, i);
    if (largest ? less(best, item) : less(item, best)) best = std::move(item);
  }
  return best;
}

constexpr Entry kLists[] = {
    {"aten::len.t(t[] a) -> int", list_length},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", list_append},
    {"aten::extend.t(t[](a!) self, t[] other) -> ()",
     [](const IValue* a, size_t) {
       append_all(a[0], a[1]);
       return nothing();
     }},
    {"aten::insert.t(t[](a!) self, int idx, t(b -> *) el) -> ()",
     [](const IValue* a, size_t) {
       const int64_t n = size_of(a[0]);
       int64_t i = a[1].toInt();
       if (i < 0) i += n;
       list_insert(a[0], size_t(std::clamp<int64_t>(i, 0, n)), a[2]);
       return nothing();
     }},
    {"aten::pop.t(t[](a!) self, int idx=-1) -> t(*)",
     [](const IValue* a, size_t) {
       const size_t n = list_size(a[0]);
       TORCH_CHECK_INDEX(n > 0, "pop from empty list");
       const size_t i = checked_index(a[1].toInt(), n, "pop");
       IValue item = list_get(a[0], i);
       list_erase(a[0], i);
       return item;
     }},
    {"aten::Delete.t(t[](a!) self, int idx) -> ()",
     [](const IValue* a, size_t) {
       list_erase(a[0], checked_index(a[1].toInt(), list_size(a[0]), "list"));
       return nothing();
     }},
    {"aten::remove.t(t[](a!) self, t el) -> ()",
     [](const IValue* a, size_t) {
       const int64_t i = find_item(a[0], a[1]);
       TORCH_CHECK_VALUE(i >= 0, "list.remove(x): x not in list");
       list_erase(a[0], size_t(i));
       return nothing();
     }},
    {"aten::index.list_t(t[] self, t el) -> int",
     [](const IValue* a, size_t) {
       const int64_t i = find_item(a[0], a[1]);
       TORCH_CHECK_VALUE(i >= 0, "'", value_text(a[1]), "' is not in list");
       return IValue(i);
     }},
    {"aten::count.t(t[] self, t el) -> int",
     [](const IValue* a, size_t) {
       int64_t n = 0;
       for (const IValue& item : items_of(a[0])) n += values_equal(item, a[1]);
       return IValue(n);
     }},
    {"aten::clear.t(t[](a!) self) -> ()",
     [](const IValue* a, size_t) {
       list_resize(a[0], 0);
       return nothing();
     }},
    {"aten::reverse.t(t[](a!) self) -> ()",
     [](const IValue* a, size_t) {
       visit_list(a[0], [](auto& v) { std::reverse(v.begin(), v.end()); });
       return nothing();
     }},
    {"aten::sort.t(t[](a!) self, bool reverse=False) -> ()",
     [](const IValue* a, size_t) {
       sort_list(a[0], a[1].toBool());
       return nothing();
     }},
    {"aten::sorted.t(t[](a) input) -> t[]",
     [](const IValue* a, size_t) {
       IValue sorted = copy_of(a[0]);
       sort_list(sorted, false);
       return sorted;
     }},
    {"aten::copy.t(t[](a) self) -> t[]", [](const IValue* a, size_t) { return copy_of(a[0]); }},
    {"aten::list.t(t[] l) -> t[]", [](const IValue* a, size_t) { return copy_of(a[0]); }},
    {"aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", list_set_item},
    {"aten::__getitem__.t(t[](a) list, int idx) -> t(*)", list_item},
    {"aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]",
     [](const IValue* a, size_t) {
       return slice_of(a[0], slice_range(size_of(a[0]), a[1], a[2], a[3]));
     }},
    {"aten::add.t(t[] a, t[] b) -> t[]",
     [](const IValue* a, size_t) {
       IValue both = copy_of(a[0]);
       append_all(both, a[1]);
       return both;
     }},
    {"aten::add_.t(t[](a!) self, t[] b) -> t[](a!)",
     [](const IValue* a, size_t) {
       append_all(a[0], a[1]);
       return a[0];
     }},
    {"aten::mul.left_t(t[] l, int n) -> t[]", [](const IValue* a, size_t) { return repeated(a); }},
    {"aten::mul_.t(t[](a!) l, int n) -> t[](a!)",
     [](const IValue* a, size_t) {
       const IValue items = repeated(a);
       list_resize(a[0], 0);
       append_all(a[0], items);
       return a[0];
     }},
    {"aten::eq.t_list(t[] a, t[] b) -> bool",
     [](const IValue* a, size_t) { return IValue(values_equal(a[0], a[1])); }},
    {"aten::ne.t_list(t[] a, t[] b) -> bool",
     [](const IValue* a, size_t) { return IValue(!values_equal(a[0], a[1])); }},
    {"aten::__contains__.t_list(t[] l, t item) -> bool",
     [](const IValue* a, size_t) { return IValue(find_item(a[0], a[1]) >= 0); }},
    {"prim::min.self_t(t[] self) -> t",
     [](const IValue* a, size_t) { return extreme(a[0], false, "min"); }},
    {"prim::max.self_t(t[] self) -> t",
     [](const IValue* a, size_t) { return extreme(a[0], true, "max"); }},
    {"prim::min.t_list(t[] l, t[] r) -> t[]",
     [](const IValue* a, size_t) { return less(a[1], a[0]) ? a[1] : a[0]; }},
    {"prim::max.t_list(t[] l, t[] r) -> t[]",
     [](const IValue* a, size_t) { return less(a[0], a[1]) ? a[1] : a[0]; }},
    {"aten::all.int(int[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto& v = a[0].toIntList();
       return IValue(std::all_of(v.begin(), v.end(), [](int64_t x) { return x != 0; }));
     }},
    {"aten::all.float(float[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto v = a[0].toDoubleList();
       return IValue(std::all_of(v.begin(), v.end(), [](double x) { return x != 0; }));
     }},
    {"aten::all.bool(bool[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto v = a[0].toBoolList();
       return IValue(std::all_of(v.begin(), v.end(), [](bool x) { return x; }));
     }},
    {"aten::any.bool(bool[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto v = a[0].toBoolList();
       return IValue(std::any_of(v.begin(), v.end(), [](bool x) { return x; }));
     }},
    {"aten::any.int(int[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto& v = a[0].toIntList();
       return IValue(std::any_of(v.begin(), v.end(), [](int64_t x) { return x != 0; }));
     }},
    {"aten::any.float(float[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto v = a[0].toDoubleList();
       return IValue(std::any_of(v.begin(), v.end(), [](double x) { return x != 0; }));
     }},
    {"aten::any.str(str[] self) -> bool",
     [](const IValue* a, size_t) {
       const auto& v = a[0].toList();
       return IValue(std::any_of(v.begin(), v.end(),
                                 [](const IValue& x) { return !x.toStringRef().empty(); }));
     }},
    {"aten::sum.complex(complex[] self) -> complex",
     [](const IValue* a, size_t) {
       std::complex<double> total = 0;
       for (size_t i = 0; i < list_size(a[0]); ++i) {
         const auto v = list_get(a[0], i).toComplexDouble();
         total += std::complex<double>(v.real_, v.imag_);
       }
       return IValue(c10::complex<double>(total.real(), total.imag()));
     }},
    {"aten::sum.int(int[] self) -> int",
     [](const IValue* a, size_t) {
       uint64_t total = 0;
       for (const int64_t v : a[0].toIntList()) total += uint64_t(v);
       return IValue(int64_t(total));
     }},
    {"aten::sum.float(float[] self) -> float",
     [](const IValue* a, size_t) {
       double total = 0;
       for (const double v : a[0].toDoubleList()) total += v;
       return IValue(total);
     }},
    {"aten::__range_length(int lo, int hi, int step) -> int",
     [](const IValue* a, size_t) {
       const int64_t lo = a[0].toInt(), hi = a[1].toInt(), step = a[2].toInt();
       TORCH_CHECK(step != 0, "range() arg 3 must not be zero");
       if (step > 0 ? lo >= hi : lo <= hi) return IValue(int64_t(0));
       const uint64_t span = step > 0 ? uint64_t(hi) - uint64_t(lo) : uint64_t(lo) - uint64_t(hi);
       return IValue(int64_t((span - 1) / (step > 0 ? uint64_t(step) : -uint64_t(step)) + 1));
     }},
    {"aten::__derive_index(int index, int start, int step) -> int",
     [](const IValue* a, size_t) {
       return IValue(
           int64_t(uint64_t(a[1].toInt()) + uint64_t(a[0].toInt()) * uint64_t(a[2].toInt())));
     }},
    {"prim::rangelist(int n) -> int[]",
     [](const IValue* a, size_t) {
       std::vector<int64_t> v;
       for (int64_t i = 0; i < a[0].toInt(); ++i) v.push_back(i);
       return IValue(std::move(v));
     }},
};

void add_lists(Builtins& out) { add_entries(out, kLists); }

const IValue& lookup(const Dict& dict, const IValue& key) {
  const IValue* found = dict.find(key);
  if (!found) throw c10::IndexError(c10::str("KeyError: ", value_text(key, true)));
  return *found;
}
// A list of keys is of the kind of its items, or a list of anything.
IValue list_of(const std::vector<IValue>& items) {
  using Tag = IValue::Tag;
  const Tag tag = items.empty() ? Tag::None : items[0].tag;
  bool same = true;
  for (const IValue& item : items) same = same && item.tag == tag;
  Type element;
  element.kind = !same                ? Type::Kind::Any
                 : tag == Tag::Int    ? Type::Kind::Int
                 : tag == Tag::Double ? Type::Kind::Float
                 : tag == Tag::Bool   ? Type::Kind::Bool
                 : tag == Tag::Tensor ? Type::Kind::Tensor
                                      : Type::Kind::Any;
  IValue out = new_list(element);
  for (const IValue& item : items) list_push(out, item);
  return out;
}
IValue copy_dict(const Dict& dict) {
  auto copy = c10::make_intrusive<Dict>();
  for (const auto& [key, value] : dict) copy->set(key, value);
  return IValue::opaque(std::move(copy));
}

constexpr Entry kDicts[] = {
    {"aten::len.Dict(Dict(k, t) self) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(dict_of(a[0]).size())); }},
    {"aten::__getitem__.Dict(Dict(k, t) self, k key) -> t(*)", dict_item},
    {"aten::_set_item.Dict(Dict(k, t)(a!) l, k(b -> *) idx, t(c -> *) v) -> ()", dict_set_item},
    {"aten::__contains__.Dict(Dict(k, t) dict, k key) -> bool", dict_contains},
    {"aten::get.default(Dict(k, t) self, k key, t default_value) -> t(*)",
     [](const IValue* a, size_t) {
       const IValue* found = dict_of(a[0]).find(a[1]);
       return found ? *found : a[2];
     }},
    {"aten::get.Dict(Dict(k, t) self, k key) -> t(*)?",
     [](const IValue* a, size_t) {
       const IValue* found = dict_of(a[0]).find(a[1]);
       return found ? *found : IValue();
     }},
    {"aten::setdefault.Dict(Dict(k, t)(a!) self, k(b -> *) key, t(c -> *) default_value) -> t(*)",
     [](const IValue* a, size_t) {
       Dict& dict = dict_of(a[0]);
       if (!dict.find(a[1])) dict.set(a[1], a[2]);
       return lookup(dict, a[1]);
     }},
    {"aten::pop.Dict(Dict(k, t)(a!) self, k key) -> t(*)",
     [](const IValue* a, size_t) {
       IValue value = lookup(dict_of(a[0]), a[1]);
       dict_of(a[0]).erase(a[1]);
       return value;
     }},
    {"aten::pop.Dict_default(Dict(k, t)(a!) self, k key, t default_value) -> t(*)",
     [](const IValue* a, size_t) {
       const IValue* found = dict_of(a[0]).find(a[1]);
       IValue value = found ? *found : a[2];
       dict_of(a[0]).erase(a[1]);
       return value;
     }},
    {"aten::popitem.Dict(Dict(k, t)(a!) self) -> ((k, t))",
     [](const IValue* a, size_t) {
       Dict& dict = dict_of(a[0]);
       TORCH_CHECK_INDEX(dict.size() > 0, "popitem(): dictionary is empty");
       const std::pair<IValue, IValue> entry = dict.last();
       dict.erase(entry.first);
       return make_tuple({entry.first, entry.second});
     }},
    {"aten::Delete.Dict(Dict(k, t)(a!) self, k key) -> ()",
     [](const IValue* a, size_t) {
       lookup(dict_of(a[0]), a[1]);
       dict_of(a[0]).erase(a[1]);
       return nothing();
     }},
    {"aten::clear.Dict(Dict(k, t)(a!) self) -> ()",
     [](const IValue* a, size_t) {
       dict_of(a[0]).clear();
       return nothing();
     }},
    {"aten::update.Dict(Dict(k, t)(a!) self, Dict(k, t)(a!) to_add) -> ()",
     [](const IValue* a, size_t) {
       // Into itself it changes nothing.
       if (a[0].ref.get() == a[1].ref.get()) return nothing();
       for (const auto& [key, value] : dict_of(a[1])) dict_of(a[0]).set(key, value);
       return nothing();
     }},
    {"aten::keys.Dict(Dict(k, t) self) -> k[](*)",
     [](const IValue* a, size_t) {
       std::vector<IValue> items;
       items.reserve(dict_of(a[0]).size());
       for (const auto& entry : dict_of(a[0])) items.push_back(entry.first);
       return list_of(items);
     }},
    {"aten::values.Dict(Dict(k, t) self) -> t[](*)",
     [](const IValue* a, size_t) {
       std::vector<IValue> items;
       items.reserve(dict_of(a[0]).size());
       for (const auto& entry : dict_of(a[0])) items.push_back(entry.second);
       return list_of(items);
     }},
    {"aten::items.Dict(Dict(k, t) self) -> ((k, t)[])",
     [](const IValue* a, size_t) {
       std::vector<IValue> items;
       items.reserve(dict_of(a[0]).size());
       for (const auto& entry : dict_of(a[0]))
         items.push_back(make_tuple({entry.first, entry.second}));
       return IValue(std::move(items));
     }},
    {"aten::copy.Dict(Dict(k, t)(a) self) -> Dict(k, t)",
     [](const IValue* a, size_t) { return copy_dict(dict_of(a[0])); }},
    {"aten::dict.Dict(Dict(k, t)(a) self) -> Dict(k, t)",
     [](const IValue* a, size_t) { return copy_dict(dict_of(a[0])); }},
    {"aten::dict.items((k, t)[] inputs) -> Dict(k, t)",
     [](const IValue* a, size_t) {
       auto dict = c10::make_intrusive<Dict>();
       for (const IValue& pair : items_of(a[0])) {
         const auto& items = need<Tuple>(pair, "tuple").items;
         dict->set(items.at(0), items.at(1));
       }
       return IValue::opaque(std::move(dict));
     }},
    {"aten::eq.Dict(Dict(k, t) a, Dict(k, t) b) -> bool",
     [](const IValue* a, size_t) { return IValue(values_equal(a[0], a[1])); }},
    {"aten::ne.Dict(Dict(k, t) a, Dict(k, t) b) -> bool",
     [](const IValue* a, size_t) { return IValue(!values_equal(a[0], a[1])); }},
};

void add_dicts(Builtins& out) { add_entries(out, kDicts); }

constexpr Entry kIdentity[] = {
    {"aten::__is__(t1 self, t2 obj) -> bool",
     [](const IValue* a, size_t) { return IValue(same_object(a[0], a[1])); }},
    {"aten::__isnot__(t1 self, t2 obj) -> bool",
     [](const IValue* a, size_t) { return IValue(!same_object(a[0], a[1])); }},
    {"prim::unchecked_cast(t x) -> t", [](const IValue* a, size_t) { return a[0]; }},
    {"prim::Uninitialized() -> Any", [](const IValue*, size_t) { return IValue(); }},
    {"aten::_unwrap_optional(t(a)? optional) -> t(a)",
     [](const IValue* a, size_t) {
       TORCH_CHECK(!a[0].isNone(), "Unwrapping null optional");
       return a[0];
     }},
    {"prim::unchecked_unwrap_optional(t(a)? optional) -> t(a)",
     [](const IValue* a, size_t) { return a[0]; }},
    {"aten::hash.generic(t value) -> int",
     [](const IValue* a, size_t) { return IValue(int64_t(ValueHash()(a[0]) >> 1)); }},
    {"prim::id(Any x) -> int",
     [](const IValue* a, size_t) {
       return IValue(int64_t(reinterpret_cast<intptr_t>(a[0].ref.get())));
     }},
    {"prim::EnumName(AnyEnumType enum) -> str",
     [](const IValue* a, size_t) { return IValue(need<EnumValue>(a[0], "enum").name); }},
    {"prim::EnumValue(AnyEnumType enum) -> Any",
     [](const IValue* a, size_t) { return need<EnumValue>(a[0], "enum").value; }},
    {"aten::eq.tuple(Any a, Any b) -> bool",
     [](const IValue* a, size_t) { return IValue(values_equal(a[0], a[1])); }},
    {"aten::ne.tuple(Any a, Any b) -> bool",
     [](const IValue* a, size_t) { return IValue(!values_equal(a[0], a[1])); }},
    {"prim::awaitable_nowait(t a) -> Any",
     [](const IValue* a, size_t) { return make<Future>(a[0]); }},
    {"aten::wait(Future(t) self) -> t",
     [](const IValue* a, size_t) { return need<Future>(a[0], "future").wait(); }},
};

void add_identity(Builtins& out) { add_entries(out, kIdentity); }

} // namespace

void add_container_builtins(Builtins& out) {
  add_lists(out);
  add_dicts(out);
  add_identity(out);
}

} // namespace torch::jit
