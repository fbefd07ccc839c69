// torch::class_: registers a C++ class so that Python (torch.classes.ns.Name) and scripts can make
// instances, call methods and pickle them.
//   struct Stack : torch::CustomClassHolder { ... };
//   TORCH_LIBRARY(my, m) {
//     m.class_<Stack>("Stack").def(torch::init<int64_t>()).def("push", &Stack::push);
//   }
// A method is a member function, or any function that takes a counted pointer to the instance
// first.
#pragma once
#include <ATen/core/CustomClass.h>
#include <ATen/core/Library.h>
#include <ATen/core/ivalue.h>

namespace torch {

// The name of an argument and its default: torch::arg("n") = 3.
struct arg : at::CustomArgument {
  explicit arg(std::string name) : CustomArgument{std::move(name), std::nullopt} {}
  template <class T> arg& operator=(T&& v) {
    value = at::types::write<std::decay_t<T>>(std::forward<T>(v));
    return *this;
  }
  arg& operator=(int v) { return *this = static_cast<int64_t>(v); }
  arg& operator=(const char* v) { return *this = std::string(v); }
  static at::IValue none() { return at::IValue(); }
};

namespace detail {
template <class... Ts> struct types {};
template <class F> struct InitLambda { F f; };

// The result and the arguments of a callable.
template <class F> struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class... A> struct Signature<R (*)(A...)> {
  using Result = R;
  using Args = types<A...>;
};
template <class R, class... A> struct Signature<R(A...)> : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...) const>
    : Signature<R (*)(A...)> {};
template <class C, class R, class... A> struct Signature<R (C::*)(A...)> : Signature<R (*)(A...)> {
};

// Calls `f` on the top of the stack and leaves its result there as one value.
template <class F, class R, class... A> struct StackFunction {
  F f;
  void operator()(at::Stack& stack) {
    TORCH_CHECK(stack.size() >= sizeof...(A), "the method takes ", sizeof...(A), " arguments, got ",
                stack.size());
    invoke(stack, std::index_sequence_for<A...>());
  }
  template <size_t... I> void invoke(at::Stack& stack, std::index_sequence<I...>) {
    [[maybe_unused]] const size_t base = stack.size() - sizeof...(A);
    std::tuple<at::types::Kept<std::decay_t<A>>...> kept{
        at::types::Type<std::decay_t<A>>::read(stack[base + I])...};
    if constexpr (std::is_void_v<R>) {
      f(pass<A>(std::get<I>(kept))...);
      stack.resize(base);
      stack.emplace_back();
    } else {
      at::IValue result = at::types::write<std::decay_t<R>>(f(pass<A>(std::get<I>(kept))...));
      stack.resize(base);
      stack.push_back(std::move(result));
    }
  }
};

template <class R, class F, class... A>
at::CustomMethod make_method(std::string name, F f, types<A...>, std::string doc) {
  at::CustomMethod out;
  out.schema = at::types::inferred_schema<R, A...>(name);
  out.name = std::move(name);
  out.call = StackFunction<F, R, A...>{std::move(f)};
  out.doc = std::move(doc);
  return out;
}

// A member function as a function of a counted pointer.
template <class T, class R, class C, class... A>
at::CustomMethod make_member(std::string name, R (C::*f)(A...), std::string doc) {
  auto call = [f](const c10::intrusive_ptr<T>& self, A... args) -> R {
    return (self.get()->*f)(std::forward<A>(args)...);
  };
  return make_method<R>(std::move(name), call, types<const c10::intrusive_ptr<T>&, A...>(),
                        std::move(doc));
}
template <class T, class R, class C, class... A>
at::CustomMethod make_member(std::string name, R (C::*f)(A...) const, std::string doc) {
  auto call = [f](const c10::intrusive_ptr<T>& self, A... args) -> R {
    return (self.get()->*f)(std::forward<A>(args)...);
  };
  return make_method<R>(std::move(name), call, types<const c10::intrusive_ptr<T>&, A...>(),
                        std::move(doc));
}
template <class T, class F> at::CustomMethod make_any(std::string name, F f, std::string doc) {
  if constexpr (std::is_member_function_pointer_v<F>)
    return make_member<T>(std::move(name), f, std::move(doc));
  else
    return make_method<typename Signature<F>::Result>(
        std::move(name), std::move(f), typename Signature<F>::Args(), std::move(doc));
}
} // namespace detail

// The constructor with these argument types, or a function that returns a new instance.
template <class... Args> detail::types<Args...> init() { return {}; }
template <class F> detail::InitLambda<std::decay_t<F>> init(F&& f) { return {std::forward<F>(f)}; }

template <class T> class class_ {
  static_assert(std::is_base_of_v<CustomClassHolder, T>,
                "torch::class_<T> requires T to inherit from torch::CustomClassHolder");
  using Self = c10::intrusive_ptr<T>;
  using Arguments = std::initializer_list<arg>;

 public:
  class_(const std::string& ns, const std::string& name, std::string doc = "")
      : class_ptr_(&at::CustomClass::create(ns, name, typeid(T), std::move(doc))) {}

  template <class... Args>
  class_& def(detail::types<Args...>, std::string doc = "", Arguments arguments = {}) {
    return add_init(
        [](Args... args) { return c10::make_intrusive<T>(std::forward<Args>(args)...); },
        detail::types<Args...>(), std::move(doc), arguments);
  }
  template <class F>
  class_& def(detail::InitLambda<F> init, std::string doc = "", Arguments arguments = {}) {
    return add_init(std::move(init.f), typename detail::Signature<F>::Args(), std::move(doc),
                    arguments);
  }
  template <class F>
  class_& def(std::string name, F f, std::string doc = "", Arguments arguments = {}) {
    at::CustomMethod method = detail::make_any<T>(std::move(name), std::move(f), std::move(doc));
    method.name_arguments(1, {arguments.begin(), arguments.end()});
    class_ptr_->add_method(std::move(method));
    return *this;
  }
  template <class F> class_& def_static(std::string name, F f, std::string doc = "") {
    class_ptr_->add_static_method(
        detail::make_any<T>(std::move(name), std::move(f), std::move(doc)));
    return *this;
  }

  template <class G> class_& def_property(const std::string& name, G getter, std::string doc = "") {
    return add_property(name, std::move(getter), nullptr, std::move(doc));
  }
  template <class G, class S, class = std::enable_if_t<!std::is_convertible_v<S, std::string>>>
  class_& def_property(const std::string& name, G getter, S setter, std::string doc = "") {
    return add_property(name, std::move(getter),
                        std::make_shared<at::CustomMethod>(
                            detail::make_any<T>(name + "_setter", std::move(setter), "")),
                        std::move(doc));
  }
  template <class Field> class_& def_readonly(const std::string& name, Field T::*field) {
    return def_property(name, [field](const Self& self) { return self.get()->*field; });
  }
  template <class Field> class_& def_readwrite(const std::string& name, Field T::*field) {
    return def_property(
        name, [field](const Self& self) { return self.get()->*field; },
        [field](const Self& self, Field value) { self.get()->*field = std::move(value); });
  }

  // `get` makes a state of an instance, `set` an instance of a state. Copies use them too.
  template <class Get, class Set> class_& def_pickle(Get&& get, Set&& set) {
    using State = std::decay_t<typename detail::Signature<std::decay_t<Get>>::Result>;
    static_assert(
        std::is_same_v<std::decay_t<typename detail::Signature<std::decay_t<Set>>::Result>, Self>,
        "the function that sets the state must return a counted pointer to an instance");
    def("__getstate__", std::forward<Get>(get));
    auto build = [set = std::decay_t<Set>(std::forward<Set>(set))](State state) mutable -> Self {
      return set(std::move(state));
    };
    class_ptr_->add_method(
        detail::make_method<Self>("__setstate__", build, detail::types<State>(), ""));
    return *this;
  }

 private:
  template <class F, class... A>
  class_& add_init(F f, detail::types<A...>, std::string doc, Arguments arguments) {
    at::CustomMethod method =
        detail::make_method<Self>("__init__", std::move(f), detail::types<A...>(), std::move(doc));
    method.name_arguments(0, {arguments.begin(), arguments.end()});
    class_ptr_->add_method(std::move(method));
    return *this;
  }
  template <class G> class_& add_property(const std::string& name, G getter,
                                          std::shared_ptr<at::CustomMethod> setter,
                                          std::string doc) {
    auto get = std::make_shared<at::CustomMethod>(
        detail::make_any<T>(name + "_getter", std::move(getter), ""));
    class_ptr_->add_property({name, std::move(get), std::move(setter), std::move(doc)});
    return *this;
  }

  at::CustomClass* class_ptr_;
};

template <class T>
torch::class_<T> Library::class_(const std::string& name, const std::string& doc) {
  TORCH_CHECK(kind_ != IMPL, "class_(\"", name,
              "\"): classes are registered in TORCH_LIBRARY, not in TORCH_LIBRARY_IMPL");
  return torch::class_<T>(ns_, name, doc);
}

// A new instance as a value.
template <class T, class... Args> at::IValue make_custom_class(Args&&... args) {
  return at::types::write(c10::make_intrusive<T>(std::forward<Args>(args)...));
}
inline bool isCustomClass(const at::IValue& v) {
  return at::ivalue::opaque<CustomClassHolder>(v) != nullptr;
}
// By the qualified name; null when it is not registered.
inline const at::CustomClass* getCustomClass(const std::string& name) {
  return at::CustomClass::find(name);
}

namespace jit {
using torch::CustomClassHolder;
} // namespace jit

} // namespace torch
