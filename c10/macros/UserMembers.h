// Members of core classes that only code outside of this library uses. Our own kernel files
// (CRESSET_KERNEL_TU) do not see them, so that a change here recompiles none of the hundreds of
// files which include the core headers; Tensor's generated methods are left out of those files for
// the same reason. A class marks the place with CRESSET_USER_MEMBERS(Class). All are inline and
// none adds data: an object is the same object in both kinds of file.
#pragma once
#include <array>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace c10 {
template <class T> class intrusive_ptr;
namespace detail {
[[noreturn]] __attribute__((visibility("default"))) void throw_undefined_handle();
} // namespace detail
template <class T> class List;
template <class Key, class Value> class Dict;
class VariableVersion; // see c10/core/VariableVersion.h
class DispatchKeySet;
class TensorImpl;
// Where generators of programs write their keys: those of a device follow from the device.
struct KeysOfDevice {
  template <class Keys> const KeysOfDevice& operator=(const Keys&) const { return *this; }
};
} // namespace c10
namespace c10 {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
} // namespace c10
namespace at {
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
} // namespace at
namespace torch::autograd {
struct ViewQueries; // see torch/csrc/autograd/view_meta.h
} // namespace torch::autograd
namespace at {
struct IValue;
struct TupleValue;
namespace types {
template <class T> struct Type;
// Values that a program makes an IValue of by its constructor, and kernels do not.
template <class T> struct UserValue : std::false_type {};
} // namespace types
namespace ivalue {
struct Queries; // see ATen/core/ivalue.h
} // namespace ivalue
} // namespace at

#define CRESSET_USER_MEMBERS(Class) CRESSET_USER_MEMBERS_##Class
#define CRESSET_VIEWS(library, program) program

// Kinds of devices that have no backend here share the keys of PrivateUse1: one backend of another
// package runs in a process, whichever kind it takes. Generators that bring kernels of their own
// use the place of Named, which no tensor has here.
#define CRESSET_FOREIGN_KEYS(X)                                                                    \
  X(FPGA) X(MAIA) X(XLA) X(Vulkan) X(Metal) X(XPU) X(MPS) X(HPU) X(VE) X(Lazy) X(IPU) X(MTIA)
#define CRESSET_FOREIGN_KEY(name)                                                                  \
  name = PrivateUse1, Autograd##name = AutogradPrivateUse1, Autocast##name = AutocastPrivateUse1,
#define CRESSET_USER_MEMBERS_DispatchKey                                                           \
  CRESSET_FOREIGN_KEYS(CRESSET_FOREIGN_KEY) CustomRNGKeyId = Named,

// How long a table by kind of device must be; no kind itself.
#define CRESSET_USER_MEMBERS_DeviceType COMPILE_TIME_MAX_DEVICE_TYPES = 21,
#define CRESSET_USER_MEMBERS_SmallVector                                                           \
  void append(std::initializer_list<T> more) { append(more.begin(), more.end()); }
#define CRESSET_USER_MEMBERS_TypeNumber                                                            \
  constexpr operator ScalarType() const { return value; }

// The settings by the names that programs call.
#define CRESSET_USER_MEMBERS_Context                                                               \
  bool deterministicAlgorithms() const { return deterministic_algorithms; }                        \
  bool deterministicAlgorithmsWarnOnly() const { return deterministic_warn_only; }                 \
  bool deterministicFillUninitializedMemory() const { return deterministic_fill_uninitialized; }   \
  void setDeterministicAlgorithms(bool wanted, bool warn_only) {                                   \
    deterministic_algorithms = wanted;                                                             \
    deterministic_warn_only = warn_only;                                                           \
  }                                                                                                \
  void alertNotDeterministic(const char* operation) const { alert_not_deterministic(operation); }

// Any list as a c10::List: the list itself where its elements are values, else a copy.
#define CRESSET_IVALUE_TO_LIST                                                                     \
  template <class L = c10::List<IValue>> L toList() const { return to<L>(); }                      \
  const std::vector<IValue>& toListRef() const { return holder<std::vector<IValue>>(Tag::List); }

// What generators of programs override. The library calls the functions on bytes; their defaults
// and these stand for one another, so that a class overrides one of each pair. They are the last of
// the class: files that do not see them know the same beginning of its table of functions.
#define CRESSET_USER_MEMBERS_GeneratorImpl                                                         \
 public:                                                                                           \
  GeneratorImpl(Device device, DispatchKeySet keys);                                               \
  DispatchKeySet key_set() const;                                                                  \
  virtual void set_offset(uint64_t offset);                                                        \
  virtual uint64_t get_offset() const;                                                             \
  virtual void set_state(const TensorImpl& state);                                                 \
  virtual intrusive_ptr<TensorImpl> get_state() const;                                             \
  virtual GeneratorImpl* clone_impl() const;                                                       \
                                                                                                   \
 protected:                                                                                        \
  static constexpr KeysOfDevice key_set_{};

// Tuples, dictionaries, lists and instances of registered classes. What they need is complete when
// ATen/core/ivalue.h was included: hence templates.
#define CRESSET_USER_MEMBERS_IValue                                                                \
  template <class T, class = std::enable_if_t<types::UserValue<T>::value>> IValue(T v)             \
      : IValue(types::Type<T>::write(std::move(v))) {}                                             \
  template <class T> T to() const { return T(types::Type<T>::read(*this)); }                       \
  template <class T> c10::intrusive_ptr<T> toCustomClass() const {                                 \
    return types::Type<c10::intrusive_ptr<T>>::read(*this);                                        \
  }                                                                                                \
  template <class D = c10::Dict<IValue, IValue>> D toGenericDict() const { return to<D>(); }       \
  template <class Q = ivalue::Queries> auto toTuple() const { return Q::tuple(*this); }            \
  template <class Q = ivalue::Queries> const auto& toTupleRef() const {                            \
    return Q::tuple_ref(*this);                                                                    \
  }                                                                                                \
  template <class T = int64_t> std::vector<T> toIntVector() const { return to<std::vector<T>>(); } \
  template <class T = double> std::vector<T> toDoubleVector() const {                              \
    return to<std::vector<T>>();                                                                   \
  }                                                                                                \
  template <class T = Tensor> std::vector<T> toTensorVector() const {                              \
    return to<std::vector<T>>();                                                                   \
  }                                                                                                \
  template <class Q = ivalue::Queries> bool isCustomClass() const { return Q::is_custom(*this); }  \
  template <class Q = ivalue::Queries> bool isObject() const { return Q::is_custom(*this); }       \
  template <class Q = ivalue::Queries> bool isTuple() const { return Q::is_tuple(*this); }         \
  template <class Q = ivalue::Queries> bool isGenericDict() const { return Q::is_dict(*this); }    \
  template <class Q = ivalue::Queries> bool is(const IValue& o) const { return Q::is(*this, o); }  \
  template <class Q = ivalue::Queries> bool isAliasOf(const IValue& o) const {                     \
    return Q::is_alias(*this, o);                                                                  \
  }                                                                                                \
  template <class Q = ivalue::Queries> IValue deepcopy() const { return Q::deepcopy(*this); }      \
  bool isDoubleList() const { return tag == Tag::DoubleList; }                                     \
  bool isBoolList() const { return tag == Tag::BoolList; }                                         \
  bool isComplexDouble() const { return tag == Tag::Complex; }                                     \
  bool isScalar() const { return isInt() || isDouble() || isBool() || isComplexDouble(); }         \
  bool isDevice() const { return tag == Tag::Device; }                                             \
  bool isGenerator() const { return tag == Tag::Generator; }                                       \
  bool isStorage() const { return tag == Tag::Storage; }                                           \
  const char* tagKind() const { return kind(); }                                                   \
  struct CompIdentityIValues {                                                                     \
    template <class Q = ivalue::Queries> bool operator()(const IValue& a, const IValue& b) const { \
      return Q::is(a, b);                                                                          \
    }                                                                                              \
  };

// Allocators of programs may work with bare addresses: where raw_deleter() is not null, it frees
// what allocate() points at. Of the library's own, none does. They are the last of the class.
#define CRESSET_USER_MEMBERS_Allocator                                                             \
  virtual DeleterFnPtr raw_deleter() const;                                                        \
  void* raw_allocate(size_t bytes);                                                                \
  void raw_deallocate(void* data);                                                                 \
  /* Copies within the memory of the host. */                                                      \
  void default_copy_data(void* dst, const void* src, size_t bytes) const;

// This library adds no backtrace to messages.
#define CRESSET_USER_MEMBERS_Error                                                                 \
  const std::string& msg() const noexcept { return message_; }                                     \
  const char* what_without_backtrace() const noexcept { return what(); }

#define CRESSET_USER_MEMBERS_Device                                                                \
  using Type = DeviceType;                                                                         \
  Device(const std::string& text) : Device(std::string_view(text)) {}                              \
  Device(const char* text) : Device(std::string_view(text)) {}                                     \
  constexpr void set_index(DeviceIndex index) { index_ = index; }                                  \
  constexpr bool is_privateuseone() const { return type_ == DeviceType::PrivateUse1; }             \
  constexpr bool is_xpu() const { return type_ == DeviceType::XPU; }                               \
  constexpr bool is_mps() const { return type_ == DeviceType::MPS; }

#define CRESSET_USER_MEMBERS_ArrayRef                                                              \
  template <size_t N> constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {} \
  const T& at(size_t i) const {                                                                    \
    TORCH_CHECK(i < size_, "ArrayRef: invalid index Index = ", i, "; Length = ", size_);           \
    return data_[i];                                                                               \
  }                                                                                                \
  std::reverse_iterator<const T*> rbegin() const {                                                 \
    return std::reverse_iterator<const T*>(end());                                                 \
  }                                                                                                \
  std::reverse_iterator<const T*> rend() const {                                                   \
    return std::reverse_iterator<const T*>(begin());                                               \
  }                                                                                                \
  constexpr const T* cbegin() const { return begin(); }                                            \
  constexpr const T* cend() const { return end(); }                                                \
  constexpr ArrayRef drop_front(size_t n = 1) const { return slice(n); }                           \
  constexpr ArrayRef drop_back(size_t n = 1) const { return slice(0, size_ - n); }                 \
  constexpr ArrayRef take_front(size_t n = 1) const { return slice(0, n); }                        \
  constexpr ArrayRef take_back(size_t n = 1) const { return slice(size_ - n); }

// A single number is a list of one. The parameter is a reference, so that a converted number lives
// to the end of the call.
#define CRESSET_USER_MEMBERS_OptionalArrayRef                                                      \
  constexpr OptionalArrayRef(const T& one) : Base(ArrayRef<T>(one)) {}

// Storages and generators are counted pointers: what users ask of the handle goes to the object.
#define CRESSET_USER_MEMBERS_intrusive_ptr                                                         \
  explicit intrusive_ptr(std::unique_ptr<T> p) noexcept : p_(p.release()) {                        \
    if (p_) p_->incref();                                                                          \
  }                                                                                                \
  template <class... Args> static intrusive_ptr make(Args&&... args) {                             \
    return intrusive_ptr(std::make_unique<T>(std::forward<Args>(args)...));                        \
  }                                                                                                \
  template <class U> U* get() const noexcept { return static_cast<U*>(p_); }                       \
  /* The object, for a call on it. */                                                              \
  template <class U> U* held() const {                                                             \
    if (p_ == nullptr) detail::throw_undefined_handle();                                           \
    return static_cast<U*>(p_);                                                                    \
  }                                                                                                \
  template <class U = T> auto nbytes() const->decltype(static_cast<U*>(nullptr)->nbytes()) {       \
    return held<U>()->nbytes();                                                                    \
  }                                                                                                \
  template <class U = T> auto data() const->decltype(static_cast<U*>(nullptr)->data()) {           \
    return held<U>()->data();                                                                      \
  }                                                                                                \
  template <class U = T> auto mutable_data() const->decltype(static_cast<U*>(nullptr)->data()) {   \
    return held<U>()->data();                                                                      \
  }                                                                                                \
  template <class U = T> decltype(auto) data_ptr() const { return held<U>()->data_ptr(); }         \
  template <class U = T> auto device() const->decltype(static_cast<U*>(nullptr)->device()) {       \
    return held<U>()->device();                                                                    \
  }                                                                                                \
  template <class U = T> auto current_seed()                                                       \
      const->decltype(static_cast<U*>(nullptr)->current_seed()) {                                  \
    return held<U>()->current_seed();                                                              \
  }                                                                                                \
  template <class U = T> void set_current_seed(uint64_t seed) const {                              \
    held<U>()->set_current_seed(seed);                                                             \
  }                                                                                                \
  template <class U = T> auto seed() const->decltype(static_cast<U*>(nullptr)->seed()) {           \
    return held<U>()->seed();                                                                      \
  }                                                                                                \
  struct use_byte_size_t {};                                                                       \
  /* Data is c10::DataPtr, of which only the name is known here. */                                \
  template <class Data, class Source = std::nullptr_t>                                             \
  intrusive_ptr(use_byte_size_t, size_t nbytes, Data data, Source allocator = nullptr,             \
                bool resizable = false)                                                            \
      : intrusive_ptr(std::make_unique<T>(nbytes, std::move(data), allocator, resizable)) {}       \
  template <class U = T> decltype(auto) mutable_data_ptr() const { return held<U>()->data_ptr(); } \
  template <class U = T> auto device_type()                                                        \
      const->decltype(static_cast<U*>(nullptr)->device().type()) {                                 \
    return held<U>()->device().type();                                                             \
  }                                                                                                \
  template <class U = T> auto& mutex() const { return held<U>()->mutex; }                          \
  template <class U = T> intrusive_ptr clone() const { return held<U>()->clone(); }

#define CRESSET_USER_MEMBERS_TensorOptions                                                         \
  TensorOptions(const std::string& device) : device_(Device(device)) {}                            \
  TensorOptions(const char* device) : device_(Device(device)) {}                                   \
  template <class T> TensorOptions dtype() const { return dtype(scalar_type_of<T>); }              \
  TensorOptions device_index(DeviceIndex index) const { return device(Device(kCUDA, index)); }     \
  /* What `other` says, and this where it says nothing. */                                         \
  TensorOptions merge_in(const TensorOptions& other) const {                                       \
    TensorOptions o = other;                                                                       \
    if (!o.dtype_) o.dtype_ = dtype_;                                                              \
    if (!o.device_) o.device_ = device_;                                                           \
    if (!o.layout_) o.layout_ = layout_;                                                           \
    if (!o.memory_format_) o.memory_format_ = memory_format_;                                      \
    if (!o.pinned_) o.pinned_ = pinned_;                                                           \
    if (!o.requires_grad_) o.requires_grad_ = requires_grad_;                                      \
    return o;                                                                                      \
  }                                                                                                \
  TensorOptions merge_memory_format(std::optional<MemoryFormat> format) const {                    \
    return format ? memory_format(format) : *this;                                                 \
  }                                                                                                \
  bool has_dtype() const { return dtype_.has_value(); }                                            \
  bool has_device() const { return device_.has_value(); }                                          \
  bool has_layout() const { return layout_.has_value(); }                                          \
  bool has_memory_format() const { return memory_format_.has_value(); }                            \
  bool has_pinned_memory() const { return pinned_.has_value(); }                                   \
  bool has_requires_grad() const { return requires_grad_.has_value(); }                            \
  DeviceIndex device_index() const { return device().index(); }                                    \
  bool is_sparse() const { return layout() == Layout::Sparse; }

#define CRESSET_USER_MEMBERS_TensorImpl                                                            \
  TensorImpl(Storage storage, DispatchKeySet keys, ScalarType dtype)                               \
      : TensorImpl(storage, keys, dtype, storage->device()) {}                                     \
  TensorImpl(Storage storage, DispatchKey key, ScalarType dtype)                                   \
      : TensorImpl(storage, DispatchKeySet(key), dtype) {}                                         \
  void set_sizes_contiguous(IntArrayRef sizes) { set_contiguous(sizes); }                          \
  void set_sizes_and_strides(IntArrayRef sizes, IntArrayRef strides,                               \
                             std::optional<int64_t> offset = std::nullopt) {                       \
    set_geometry(sizes, strides, offset.value_or(storage_offset()));                               \
  }                                                                                                \
  void set_backend_meta(intrusive_ptr<BackendMeta> meta) {                                         \
    ensure_extra().backend_meta = std::move(meta);                                                 \
  }                                                                                                \
  intrusive_ptr<BackendMeta> get_backend_meta_intrusive_ptr() const {                              \
    return extra_ ? extra_->backend_meta : nullptr;                                                \
  }                                                                                                \
  BackendMeta* get_backend_meta() const { return extra_ ? extra_->backend_meta.get() : nullptr; }  \
  void shallow_copy_from(const intrusive_ptr<TensorImpl>& from) { copy_metadata_from(*from); }     \
  template <class V = VariableVersion> V version_counter() const {                                 \
    return V(inference_ ? nullptr : shared_counter());                                             \
  }                                                                                                \
  /* Of a view: with what is known of how it was made (torch/csrc/autograd/view_meta.h). */        \
  template <class Q = torch::autograd::ViewQueries> auto autograd_meta() {                         \
    return Q::described(*this);                                                                    \
  }

// Parts of a message that only a stream can print. StreamPart is defined in c10/util/StringUtil.h,
// so that streams are paid for by those who need them.
#define CRESSET_USER_MEMBERS_append                                                                \
  namespace detail {                                                                               \
  template <class T, class = void> struct HasAppend : std::false_type {};                          \
  template <class T> struct HasAppend<                                                             \
      T, std::void_t<decltype(append(std::declval<std::string&>(), std::declval<const T&>()))>>    \
      : std::true_type {};                                                                         \
  template <class T> struct StreamPart;                                                            \
  template <class T> void append_part(std::string& out, const T& part) {                           \
    if constexpr (HasAppend<T>::value)                                                             \
      append(out, part);                                                                           \
    else                                                                                           \
      StreamPart<T>::append(out, part);                                                            \
  }                                                                                                \
  }
#define CRESSET_APPEND_PART detail::append_part
