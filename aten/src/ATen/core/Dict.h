// c10::Dict: a dictionary that is shared when it is copied, as those of scripts are. It keeps the
// order of insertion. Keys and values are IValues inside; Key and Value say what goes in and out.
#pragma once
#include <memory>

#include <ATen/core/Containers.h>

namespace at::types {
template <class T> struct Type;
} // namespace at::types

namespace c10 {

class Type; // see ATen/core/jit_type.h

template <class Key, class Value> class Dict {
 public:
  using key_type = Key;
  using mapped_type = Value;
  using Impl = ::at::DictValue;

  class Entry {
   public:
    explicit Entry(Impl::Entry* entry) : entry_(entry) {}
    Key key() const { return ::at::types::Type<Key>::read(entry_->first); }
    Value value() const { return ::at::types::Type<Value>::read(entry_->second); }
    void setValue(Value v) const { entry_->second = box(std::move(v)); }

   private:
    Impl::Entry* entry_;
  };
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Entry;
    using difference_type = std::ptrdiff_t;
    using pointer = const Entry*;
    using reference = Entry;
    iterator(Impl* dict, size_t at) : dict_(dict), at_(at), entry_(nullptr) { look(); }
    Entry operator*() const { return entry_; }
    const Entry* operator->() const { return &entry_; }
    iterator& operator++() {
      ++at_;
      look();
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const iterator& a, const iterator& b) { return a.at_ == b.at_; }
    friend bool operator!=(const iterator& a, const iterator& b) { return a.at_ != b.at_; }

   private:
    void look() { entry_ = Entry(at_ < dict_->entries.size() ? &dict_->entries[at_] : nullptr); }
    Impl* dict_;
    size_t at_;
    Entry entry_;
  };
  using const_iterator = iterator;

  Dict() : impl_(make_intrusive<Impl>()) {}
  // Of keys and values that the types say; a dictionary of IValues holds any.
  Dict(const std::shared_ptr<const Type>&, const std::shared_ptr<const Type>&) : Dict() {}
  static Dict sharing(intrusive_ptr<Impl> impl) { return Dict(std::move(impl)); }
  const intrusive_ptr<Impl>& shared_impl() const { return impl_; }

  size_t size() const { return impl_->entries.size(); }
  bool empty() const { return impl_->entries.empty(); }
  void reserve(size_t n) const { impl_->entries.reserve(n); }
  void clear() const { impl_->clear(); }
  iterator begin() const { return iterator(impl_.get(), 0); }
  iterator end() const { return iterator(impl_.get(), size()); }
  iterator find(const Key& key) const { return iterator(impl_.get(), impl_->find(box(key))); }
  bool contains(const Key& key) const { return impl_->find(box(key)) != size(); }
  Value at(const Key& key) const {
    const size_t i = impl_->find(box(key));
    TORCH_CHECK_INDEX(i != size(), "Argument passed to at() was not in the map.");
    return ::at::types::Type<Value>::read(impl_->entries[i].second);
  }
  // True when the key is new; an existing entry stays as it is.
  bool insert(Key key, Value value) const {
    return impl_->insert(box(std::move(key)), box(std::move(value)), false);
  }
  void insert_or_assign(Key key, Value value) const {
    impl_->insert(box(std::move(key)), box(std::move(value)), true);
  }
  size_t erase(const Key& key) const { return impl_->erase(box(key)); }
  Dict copy() const {
    Dict out;
    for (const Impl::Entry& e : impl_->entries) out.impl_->insert(e.first, e.second, true);
    return out;
  }
  bool is(const Dict& other) const { return impl_ == other.impl_; }

 private:
  explicit Dict(intrusive_ptr<Impl> impl) : impl_(std::move(impl)) {}
  template <class T> static ::at::IValue box(T value) {
    return ::at::types::Type<T>::write(std::move(value));
  }
  intrusive_ptr<Impl> impl_;
};

namespace impl {
using GenericDict = Dict<::at::IValue, ::at::IValue>;
} // namespace impl

} // namespace c10

#include <ATen/core/TypeTraits.h>
