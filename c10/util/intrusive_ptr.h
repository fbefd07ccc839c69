// Reference counting inside the object: one word per handle, one allocation per object, and a
// refcount that stays in the cache line the next access needs anyway.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <c10/macros/Macros.h>

namespace c10 {

class intrusive_ptr_target {
 public:
  intrusive_ptr_target() = default;
  intrusive_ptr_target(const intrusive_ptr_target&) noexcept {}
  intrusive_ptr_target& operator=(const intrusive_ptr_target&) noexcept { return *this; }
  virtual ~intrusive_ptr_target() = default;

  void incref() const noexcept { strong_.fetch_add(1, std::memory_order_relaxed); }
  // Destroys the object when the last strong reference goes; the memory goes with the last weak
  // one.
  void decref() const noexcept {
    // A sole owner needs no atomic read-modify-write: nobody else can be looking.
    if (strong_.load(std::memory_order_acquire) == 1 &&
        weak_.load(std::memory_order_acquire) == 1) {
      const_cast<intrusive_ptr_target*>(this)->last_strong_and_weak();
      return;
    }
    if (strong_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      auto* self = const_cast<intrusive_ptr_target*>(this);
      self->release_resources();
      weak_decref();
    }
  }
  void weak_incref() const noexcept { weak_.fetch_add(1, std::memory_order_relaxed); }
  void weak_decref() const noexcept {
    if (weak_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // Takes a strong reference unless the object is already dead.
  bool try_incref() const noexcept {
    uint32_t n = strong_.load(std::memory_order_relaxed);
    while (n != 0)
      if (strong_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  // The first reference to a new object, which no other thread knows: no atomic read-modify-write.
  void first_incref() const noexcept {
    strong_.store(strong_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  uint32_t use_count() const noexcept { return strong_.load(std::memory_order_acquire); }
  uint32_t weak_use_count() const noexcept { return weak_.load(std::memory_order_acquire); }

 protected:
  // Called once when the last strong reference goes while weak ones remain: frees what the object
  // holds but leaves the object itself.
  virtual void release_resources() {}

 private:
  void last_strong_and_weak() noexcept {
    strong_.store(0, std::memory_order_relaxed);
    delete this;
  }
  mutable std::atomic<uint32_t> strong_{0};
  mutable std::atomic<uint32_t> weak_{1}; // all strong references together hold one
};

template <class T> class intrusive_ptr {
 public:
  using element_type = T;
  intrusive_ptr() noexcept = default;
  intrusive_ptr(std::nullptr_t) noexcept {}
  intrusive_ptr(const intrusive_ptr& o) noexcept : p_(o.p_) {
    if (p_) p_->incref();
  }
  intrusive_ptr(intrusive_ptr&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  template <class U, class = decltype(static_cast<T*>(static_cast<U*>(nullptr)))>
  intrusive_ptr(const intrusive_ptr<U>& o) noexcept : p_(o.get()) {
    if (p_) p_->incref();
  }
  template <class U, class = decltype(static_cast<T*>(static_cast<U*>(nullptr)))>
  intrusive_ptr(intrusive_ptr<U>&& o) noexcept : p_(o.release()) {}
  ~intrusive_ptr() { reset(); }
  intrusive_ptr& operator=(intrusive_ptr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }

  // Takes over a reference that the caller owns.
  static intrusive_ptr reclaim(T* p) noexcept {
    intrusive_ptr out;
    out.p_ = p;
    return out;
  }
  // Adds a reference of its own.
  static intrusive_ptr unsafe_retain(T* p) noexcept {
    if (p) p->incref();
    return reclaim(p);
  }
  static intrusive_ptr reclaim_copy(T* p) noexcept { return unsafe_retain(p); }

  CRESSET_USER_MEMBERS(intrusive_ptr) T* get() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  T* operator->() const noexcept { return p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  bool defined() const noexcept { return p_ != nullptr; }
  T* release() noexcept { return std::exchange(p_, nullptr); }
  void reset() noexcept {
    if (T* p = std::exchange(p_, nullptr)) p->decref();
  }
  uint32_t use_count() const noexcept { return p_ ? p_->use_count() : 0; }
  bool unique() const noexcept { return use_count() == 1; }
  friend bool operator==(const intrusive_ptr& a, const intrusive_ptr& b) { return a.p_ == b.p_; }
  friend bool operator!=(const intrusive_ptr& a, const intrusive_ptr& b) { return a.p_ != b.p_; }

 private:
  T* p_ = nullptr;
};

template <class T> class weak_intrusive_ptr {
 public:
  weak_intrusive_ptr() noexcept = default;
  explicit weak_intrusive_ptr(const intrusive_ptr<T>& p) noexcept : p_(p.get()) {
    if (p_) p_->weak_incref();
  }
  weak_intrusive_ptr(const weak_intrusive_ptr& o) noexcept : p_(o.p_) {
    if (p_) p_->weak_incref();
  }
  weak_intrusive_ptr(weak_intrusive_ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  ~weak_intrusive_ptr() {
    if (p_) p_->weak_decref();
  }
  weak_intrusive_ptr& operator=(weak_intrusive_ptr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  intrusive_ptr<T> lock() const noexcept {
    return p_ && p_->try_incref() ? intrusive_ptr<T>::reclaim(p_) : intrusive_ptr<T>();
  }
  bool expired() const noexcept { return !p_ || p_->use_count() == 0; }
  T* unsafe_get() const noexcept { return p_; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args> intrusive_ptr<T> make_intrusive(Args&&... args) {
  T* p = new T(std::forward<Args>(args)...);
  p->first_incref();
  return intrusive_ptr<T>::reclaim(p);
}

} // namespace c10
