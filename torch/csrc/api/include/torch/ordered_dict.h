// A dictionary that keeps the order of insertion: parameters, buffers and children of modules.
#pragma once
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>

namespace torch {

template <class Key, class Value> class OrderedDict {
 public:
  // A key and its value; iteration yields these.
  class Item {
   public:
    Item(Key key, Value value) : pair_(std::move(key), std::move(value)) {}
    Value& operator*() { return value(); }
    const Value& operator*() const { return value(); }
    Value* operator->() { return &value(); }
    const Value* operator->() const { return &value(); }
    const Key& key() const noexcept { return pair_.first; }
    Value& value() noexcept { return pair_.second; }
    const Value& value() const noexcept { return pair_.second; }
    const std::pair<Key, Value>& pair() const noexcept { return pair_; }

   private:
    std::pair<Key, Value> pair_;
  };
  using Iterator = typename std::vector<Item>::iterator;
  using ConstIterator = typename std::vector<Item>::const_iterator;

  // `key_description` is what messages call a key: "Parameter 'p' is not defined".
  explicit OrderedDict(std::string key_description = "Key")
      : key_description_(std::move(key_description)) {}
  OrderedDict(std::initializer_list<Item> items) : OrderedDict("Key") {
    for (const Item& item : items) insert(item.key(), item.value());
  }

  const std::string& key_description() const noexcept { return key_description_; }
  Item& front() {
    TORCH_CHECK(!items_.empty(), "Called front() on an empty OrderedDict");
    return items_.front();
  }
  const Item& front() const { return const_cast<OrderedDict*>(this)->front(); }
  Item& back() {
    TORCH_CHECK(!items_.empty(), "Called back() on an empty OrderedDict");
    return items_.back();
  }
  const Item& back() const { return const_cast<OrderedDict*>(this)->back(); }
  Item& operator[](size_t index) {
    TORCH_CHECK(index < items_.size(), "Index ", index, " is out of bounds");
    return items_[index];
  }
  const Item& operator[](size_t index) const { return (*const_cast<OrderedDict*>(this))[index]; }
  Value& operator[](const Key& key) {
    if (Value* value = find(key)) return *value;
    missing(key);
  }
  const Value& operator[](const Key& key) const { return (*const_cast<OrderedDict*>(this))[key]; }

  Value* find(const Key& key) noexcept {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &items_[it->second].value();
  }
  const Value* find(const Key& key) const noexcept {
    return const_cast<OrderedDict*>(this)->find(key);
  }
  bool contains(const Key& key) const noexcept { return index_.count(key) != 0; }

  Iterator begin() { return items_.begin(); }
  Iterator end() { return items_.end(); }
  ConstIterator begin() const { return items_.begin(); }
  ConstIterator end() const { return items_.end(); }
  size_t size() const noexcept { return items_.size(); }
  bool is_empty() const noexcept { return items_.empty(); }
  void reserve(size_t count) {
    index_.reserve(count);
    items_.reserve(count);
  }

  // Error for a key that is there already.
  template <class V> Value& insert(Key key, V&& value) {
    const auto [place, is_new] = index_.try_emplace(key, items_.size());
    TORCH_CHECK(is_new, key_description_, " '", place->first, "' already defined");
    items_.push_back(Item(std::move(key), Value(std::forward<V>(value))));
    return *items_.back();
  }
  Value& insert(Key key, Value&& value) { return insert<Value>(std::move(key), std::move(value)); }
  // All items of `other` after those there are.
  void update(OrderedDict other) {
    for (Item& item : other.items_) insert(item.key(), std::move(*item));
  }
  void erase(const Key& key) {
    const auto it = index_.find(key);
    if (it == index_.end()) missing(key);
    const size_t at = it->second;
    index_.erase(it);
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
    for (auto& entry : index_)
      if (entry.second > at) --entry.second;
  }
  void clear() {
    index_.clear();
    items_.clear();
  }

  const std::vector<Item>& items() const noexcept { return items_; }
  std::vector<Key> keys() const {
    std::vector<Key> out;
    for (const Item& item : items_) out.push_back(item.key());
    return out;
  }
  std::vector<Value> values() const {
    std::vector<Value> out;
    for (const Item& item : items_) out.push_back(item.value());
    return out;
  }
  std::vector<std::pair<Key, Value>> pairs() const {
    std::vector<std::pair<Key, Value>> out;
    for (const Item& item : items_) out.push_back(item.pair());
    return out;
  }
  template <class K, class V>
  friend bool operator==(const OrderedDict<K, V>& a, const OrderedDict<K, V>& b);

 private:
  [[noreturn]] void missing(const Key& key) const {
    TORCH_CHECK(false, key_description_, " '", key, "' is not defined");
    __builtin_unreachable();
  }
  std::unordered_map<Key, size_t> index_;
  std::vector<Item> items_;
  std::string key_description_;
};

// The same items in the same order.
template <class K, class V>
bool operator==(const OrderedDict<K, V>& a, const OrderedDict<K, V>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a.items_[i].pair() != b.items_[i].pair()) return false;
  return true;
}

} // namespace torch
