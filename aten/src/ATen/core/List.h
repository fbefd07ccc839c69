// c10::List: a list that is shared when it is copied, as lists in scripts are. Its elements are
// kept as IValues, so one class serves every element type; T says what goes in and comes out.
#pragma once
#include <initializer_list>
#include <memory>

#include <ATen/core/Containers.h>

namespace at::types {
template <class T> struct Type;
} // namespace at::types

namespace c10 {

class Type; // see ATen/core/jit_type.h

// An element of a list: reads as T, writes through to the list.
template <class T> class ListElementReference {
 public:
  ListElementReference(const intrusive_ptr<at::IValue::Holder<std::vector<at::IValue>>>& items,
                       size_t index)
      : items_(items), index_(index) {}
  const at::IValue& get() const { return items_->value[index_]; }
  operator T() const { return at::types::Type<T>::read(get()); }
  ListElementReference& operator=(T value) {
    items_->value[index_] = at::types::Type<T>::write(std::move(value));
    return *this;
  }
  ListElementReference& operator=(const ListElementReference& other) {
    items_->value[index_] = other.get();
    return *this;
  }
  ListElementReference(const ListElementReference&) = default;
  friend bool operator==(const ListElementReference& a, const T& b) {
    return at::ivalue::equal(a.items_->value[a.index_], at::types::Type<T>::write(b));
  }

 private:
  intrusive_ptr<at::IValue::Holder<std::vector<at::IValue>>> items_;
  size_t index_;
};

template <class T> class List {
 public:
  using Items = at::IValue::Holder<std::vector<at::IValue>>;
  using value_type = T;
  using size_type = size_t;

  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = ListElementReference<T>;
    iterator(const intrusive_ptr<Items>& items, size_t index) : items_(items), index_(index) {}
    reference operator*() const { return reference(items_, index_); }
    reference operator[](difference_type n) const { return *(*this + n); }
    iterator& operator++() { return *this += 1; }
    iterator& operator--() { return *this += -1; }
    iterator operator++(int) { return std::exchange(*this, *this + 1); }
    iterator& operator+=(difference_type n) {
      index_ += static_cast<size_t>(n);
      return *this;
    }
    friend iterator operator+(iterator a, difference_type n) { return a += n; }
    friend iterator operator-(iterator a, difference_type n) { return a += -n; }
    friend difference_type operator-(const iterator& a, const iterator& b) {
      return static_cast<difference_type>(a.index_) - static_cast<difference_type>(b.index_);
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.index_ == b.index_; }
    friend bool operator!=(const iterator& a, const iterator& b) { return a.index_ != b.index_; }
    friend bool operator<(const iterator& a, const iterator& b) { return a.index_ < b.index_; }
    size_t index() const { return index_; }

   private:
    intrusive_ptr<Items> items_;
    size_t index_;
  };
  using const_iterator = iterator;

  List() : List(make_intrusive<Items>(std::vector<at::IValue>())) {}
  List(std::initializer_list<T> values) : List(ArrayRef<T>(values.begin(), values.size())) {}
  explicit List(ArrayRef<T> values) : List(make_intrusive<Items>(std::vector<at::IValue>())) {
    for (const T& value : values) push_back(value);
  }
  List(const std::vector<T>& values) : List(make_intrusive<Items>(std::vector<at::IValue>())) {
    for (const T& value : values) push_back(value);
  }
  // Of elements that the type says; a list of IValues holds any.
  explicit List(const std::shared_ptr<const Type>&) : List() {}
  // Shares the items, which are Ts.
  static List sharing(intrusive_ptr<Items> items) { return List(std::move(items)); }
  const intrusive_ptr<Items>& shared_items() const { return items_; }

  bool empty() const { return items_->value.empty(); }
  size_t size() const { return items_->value.size(); }
  void reserve(size_t n) const { items_->value.reserve(n); }
  T get(size_t i) const { return at::types::Type<T>::read(checked(i)); }
  ListElementReference<T> operator[](size_t i) const {
    checked(i);
    return ListElementReference<T>(items_, i);
  }
  void set(size_t i, T value) const { checked(i) = at::types::Type<T>::write(std::move(value)); }
  T extract(size_t i) const {
    T out = get(i);
    items_->value[i] = at::IValue();
    return out;
  }
  void push_back(T value) const {
    items_->value.push_back(at::types::Type<T>::write(std::move(value)));
  }
  template <class... Args> void emplace_back(Args&&... args) const {
    push_back(T(std::forward<Args>(args)...));
  }
  void pop_back() const {
    checked(0);
    items_->value.pop_back();
  }
  void append(const List& other) const {
    const std::vector<at::IValue> copy = other.items_->value;
    items_->value.insert(items_->value.end(), copy.begin(), copy.end());
  }
  iterator insert(iterator where, T value) const {
    items_->value.insert(items_->value.begin() + where.index(),
                         at::types::Type<T>::write(std::move(value)));
    return where;
  }
  iterator erase(iterator where) const {
    checked(where.index());
    items_->value.erase(items_->value.begin() + where.index());
    return where;
  }
  void clear() const { items_->value.clear(); }
  void resize(size_t n) const { items_->value.resize(n); }
  void resize(size_t n, const T& value) const {
    items_->value.resize(n, at::types::Type<T>::write(value));
  }
  iterator begin() const { return iterator(items_, 0); }
  iterator end() const { return iterator(items_, size()); }
  std::vector<T> vec() const {
    std::vector<T> out;
    out.reserve(size());
    for (const at::IValue& item : items_->value) out.push_back(at::types::Type<T>::read(item));
    return out;
  }
  // Another list with the same elements.
  List copy() const { return List(make_intrusive<Items>(items_->value)); }
  bool is(const List& other) const { return items_ == other.items_; }
  friend bool operator==(const List& a, const List& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i)
      if (!at::ivalue::equal(a.items_->value[i], b.items_->value[i])) return false;
    return true;
  }
  friend bool operator!=(const List& a, const List& b) { return !(a == b); }

 private:
  explicit List(intrusive_ptr<Items> items) : items_(std::move(items)) {}
  at::IValue& checked(size_t i) const {
    TORCH_CHECK_INDEX(i < size(), "list index ", i, " is out of range for a list of ", size());
    return items_->value[i];
  }
  intrusive_ptr<Items> items_;
};

namespace impl {
using GenericList = List<at::IValue>;
} // namespace impl

} // namespace c10

#include <ATen/core/TypeTraits.h>
