// A block of memory that tensors view. Storage is the counted handle, StorageImpl the object.
#pragma once
#include <c10/core/Allocator.h>
#include <c10/core/SymInt.h>
#include <c10/util/intrusive_ptr.h>

namespace c10 {

class C10_API StorageImpl final : public intrusive_ptr_target {
 public:
  StorageImpl(size_t nbytes, DataPtr data, Allocator* allocator, bool resizable)
      : data_(std::move(data)), nbytes_(nbytes), widest_(nbytes), allocator_(allocator),
        resizable_(resizable) {}
  ~StorageImpl() override;

  static void* operator new(size_t size);
  static void* operator new(size_t, void* block) noexcept { return block; }
  static void operator delete(void* p) noexcept;
  static void operator delete(void*, void*) noexcept {}

  void* data() const { return data_.get(); }
  const DataPtr& data_ptr() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  // The length as a number that may be symbolic; `nbytes()` is then that of the traced run. Only
  // storages without memory have such lengths.
  SymInt sym_nbytes() const {
    return C10_LIKELY(!symbolic_) ? SymInt(static_cast<int64_t>(nbytes_)) : symbolic_->nbytes;
  }
  void set_sym_nbytes(SymInt nbytes);
  Device device() const { return data_.device(); }
  Allocator* allocator() const { return allocator_; }
  bool resizable() const { return resizable_; }

  // Replaces the memory and its length in one step; the old memory is returned.
  DataPtr set_data(DataPtr data, size_t nbytes) {
    std::swap(data_, data);
    nbytes_ = nbytes;
    widest_ = nbytes;
    symbolic_.reset();
    return data;
  }
  // Grows or shrinks through the storage's own allocator and keeps the common prefix. Nothing
  // changes when the allocation fails. Zero gives the memory back; any other size keeps a block as
  // long as the longest so far, because views made earlier still reach that far.
  void resize(size_t nbytes);

  // The Python object that stands for this storage, borrowed; owned by the Python layer.
  void* pyobj = nullptr;

 private:
  void release_resources() override;
  DataPtr data_;
  size_t nbytes_;
  size_t widest_; // bytes that a view made earlier may reach
  Allocator* allocator_;
  bool resizable_;
  struct SymbolicLength {
    SymInt nbytes;
    std::shared_ptr<void> owner; // of the symbols
  };
  std::unique_ptr<SymbolicLength> symbolic_;
};

using Storage = intrusive_ptr<StorageImpl>;

// `nbytes` of uninitialised memory from the allocator of `device`.
C10_API Storage make_storage(size_t nbytes, Device device);

} // namespace c10
