#pragma once

// Where tensor data comes from: an owning pointer that knows its device and how to free itself, and
// the interface every device's allocator implements. Storage needs nothing else about memory, so
// foreign memory (NumPy, DLPack, a mapped file) fits in as a DataPtr with its own deleter.

#include <c10/core/Device.h>
#include <c10/macros/Macros.h>

#include <cstddef>
#include <utility>

namespace c10 {

using DeleterFnPtr = void (*)(void* ctx);

/// Owns `ctx` through `deleter` (null: owns nothing) and points at `data`. Move-only.
class DataPtr {
 public:
  DataPtr() = default;
  /// A view: the memory belongs to someone else.
  DataPtr(void* data, Device device) : data_(data), device_(device) {}
  DataPtr(void* data, void* ctx, DeleterFnPtr deleter, Device device)
      : data_(data), ctx_(ctx), deleter_(deleter), device_(device) {}
  DataPtr(DataPtr&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), ctx_(std::exchange(other.ctx_, nullptr)),
        deleter_(std::exchange(other.deleter_, nullptr)), device_(other.device_) {}
  DataPtr& operator=(DataPtr&& other) noexcept {
    if (this != &other) {
      clear();
      data_ = std::exchange(other.data_, nullptr);
      ctx_ = std::exchange(other.ctx_, nullptr);
      deleter_ = std::exchange(other.deleter_, nullptr);
      device_ = other.device_;
    }
    return *this;
  }
  DataPtr(const DataPtr&) = delete;
  DataPtr& operator=(const DataPtr&) = delete;
  ~DataPtr() { clear(); }

  /// Frees what is owned; the device stays.
  void clear() noexcept {
    data_ = nullptr;
    void* ctx = std::exchange(ctx_, nullptr);
    DeleterFnPtr deleter = std::exchange(deleter_, nullptr);
    if (deleter != nullptr && ctx != nullptr) deleter(ctx);
  }

  void* get() const { return data_; }
  void* mutable_get() const { return data_; }
  void* get_context() const { return ctx_; }
  DeleterFnPtr get_deleter() const { return deleter_; }
  Device device() const { return device_; }
  explicit operator bool() const { return data_ != nullptr; }

  /// Gives up ownership: the caller must pass the result to the deleter.
  void* release_context() noexcept {
    data_ = nullptr;
    deleter_ = nullptr;
    return std::exchange(ctx_, nullptr);
  }
  /// For a device that is known only later (for example its index); the memory stays where it is.
  void unsafe_set_device(Device device) { device_ = device; }

 private:
  void* data_ = nullptr;
  void* ctx_ = nullptr;
  DeleterFnPtr deleter_ = nullptr;
  Device device_;
};

class C10_API Allocator {
 public:
  virtual ~Allocator();
  /// At least `bytes` bytes, or null data for zero bytes. Throws c10::OutOfMemoryError. Any thread.
  virtual DataPtr allocate(size_t bytes) = 0;
  /// Copies between blocks of this allocator.
  virtual void copy_data(void* dst, const void* src, size_t bytes) const = 0;
  DataPtr clone(const void* data, size_t bytes);
  CRESSET_USER_MEMBERS(Allocator)
};

/// The allocator for a device kind. Set at start-up, or by extensions; `allocator` must outlive the
/// process's last tensor.
C10_API void SetAllocator(DeviceType type, Allocator* allocator);
/// Throws c10::Error when the kind has none.
C10_API Allocator* GetAllocator(DeviceType type);

} // namespace c10
