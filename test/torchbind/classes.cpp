// C++ classes for tests of torch::class_ and of what traces, exports and scripts do with instances.
// The library is named libtorchbind_test.so and its namespace _TorchScriptTesting, as programs that
// test these parts expect. Built with the tests only.
#include <torch/library.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <deque>

namespace {

using torch::CustomClassHolder;
template <class T> using Ptr = c10::intrusive_ptr<T>;

// ---- numbers ------------------------------------------------------------------------------------
struct Foo : CustomClassHolder {
  using Pair = std::tuple<std::string, int64_t>;
  Foo(int64_t x, int64_t y) : x(x), y(y) {}
  int64_t info() const { return x * y; }
  int64_t add(int64_t z) const { return (x + y) * z; }
  at::Tensor add_tensor(at::Tensor z) const { return z * (x + y); }
  void increment(int64_t by) {
    x += by;
    y += by;
  }
  Ptr<Foo> combine(Ptr<Foo> other) const { return c10::make_intrusive<Foo>(info(), other->info()); }
  bool eq(Ptr<Foo> other) const { return x == other->x && y == other->y; }
  std::tuple<Pair, Pair> flatten() const { return {{"x", x}, {"y", y}}; }
  int64_t x, y;
};

// Properties whose functions add to what they touch, so that a test sees that they ran.
struct FooGetterSetter : CustomClassHolder {
  FooGetterSetter(int64_t x, int64_t y) : x(x), y(y) {}
  int64_t get_x() const { return x + 2; }
  void set_x(int64_t v) { x = v + 2; }
  int64_t get_y() const { return y + 4; }
  int64_t x, y;
};
struct FooGetterSetterLambda : CustomClassHolder {
  explicit FooGetterSetterLambda(int64_t x) : x(x) {}
  int64_t x;
};
struct FooReadWrite : CustomClassHolder {
  FooReadWrite(int64_t x, int64_t y) : x(x), y(y) {}
  int64_t x, y;
};
struct LambdaInit : CustomClassHolder {
  LambdaInit(int64_t x, int64_t y) : x(x), y(y) {}
  int64_t diff() const { return x - y; }
  int64_t x, y;
};
struct NoInit : CustomClassHolder {
  int64_t x = 0;
};
struct StaticMethod : CustomClassHolder {
  static int64_t twice(int64_t v) { return 2 * v; }
};
struct DefaultArgs : CustomClassHolder {
  explicit DefaultArgs(int64_t start) : x(start) {}
  int64_t increment(int64_t by) { return x += by; }
  int64_t decrement(int64_t by) { return x -= by; }
  int64_t scale_add(int64_t add, int64_t scale) { return x = x * scale + add; }
  int64_t divide(std::optional<int64_t> by) { return by ? x /= *by : x; }
  int64_t x;
};

// ---- stacks -------------------------------------------------------------------------------------
template <class T> struct Stack : CustomClassHolder {
  explicit Stack(std::vector<T> items) : items(std::move(items)) {}
  void push(T item) { items.push_back(std::move(item)); }
  T pop() {
    TORCH_CHECK_INDEX(!items.empty(), "pop from an empty stack");
    T out = std::move(items.back());
    items.pop_back();
    return out;
  }
  T top() const {
    TORCH_CHECK_INDEX(!items.empty(), "top of an empty stack");
    return items.back();
  }
  Ptr<Stack> clone() const { return c10::make_intrusive<Stack>(items); }
  void merge(const Ptr<Stack>& other) {
    items.insert(items.end(), other->items.begin(), other->items.end());
  }
  std::tuple<double, int64_t> return_a_tuple() const { return {1337.0, 123}; }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  std::vector<T> items;
};
using StackString = Stack<std::string>;
// A type of its own, since a C++ type is registered once.
struct PickleTester : CustomClassHolder {
  explicit PickleTester(std::vector<int64_t> items) : items(std::move(items)) {}
  int64_t pop() {
    TORCH_CHECK_INDEX(!items.empty(), "pop from an empty stack");
    const int64_t out = items.back();
    items.pop_back();
    return out;
  }
  int64_t top() const { return items.back(); }
  std::vector<int64_t> items;
};

// ---- tensors ------------------------------------------------------------------------------------
struct ReLUClass : CustomClassHolder {
  at::Tensor run(const at::Tensor& t) const { return t.relu(); }
};

// First in, first out; an empty queue pops the tensor it was made with.
struct TensorQueue : CustomClassHolder {
  using State = std::tuple<std::tuple<std::string, std::vector<at::Tensor>>>;
  explicit TensorQueue(at::Tensor initial) : initial(std::move(initial)) {}
  void push(at::Tensor t) { items.push_back(std::move(t)); }
  at::Tensor pop() {
    if (items.empty()) return initial;
    at::Tensor out = std::move(items.front());
    items.pop_front();
    return out;
  }
  at::Tensor top() const { return items.empty() ? initial : items.front(); }
  int64_t size() const { return static_cast<int64_t>(items.size()); }
  bool is_empty() const { return items.empty(); }
  double float_size() const { return static_cast<double>(items.size()); }
  std::vector<at::Tensor> raw() const { return {items.begin(), items.end()}; }
  std::vector<at::Tensor> clone_queue() const {
    std::vector<at::Tensor> out;
    for (const at::Tensor& t : items) out.push_back(t.clone());
    return out;
  }
  State flatten() const { return {{"queue", raw()}}; }
  at::Tensor initial;
  std::deque<at::Tensor> items;
};

template <int kind> struct Container : CustomClassHolder {
  explicit Container(at::Tensor t) : t(std::move(t)) {}
  at::Tensor get() const { return t; }
  at::Tensor t;
};
using ContainsTensor = Container<0>;
using ConstantTensorContainer = Container<1>;
using FlattenWithTensorOp = Container<2>;

// Runs a list of (operation, names of arguments, name of the result).
struct ElementwiseInterpreter : CustomClassHolder {
  using Instruction = std::tuple<std::string, std::vector<std::string>, std::string>;
  using Constants = std::unordered_map<std::string, at::Tensor>;
  using State =
      std::tuple<std::vector<std::string>, std::string, Constants, std::vector<Instruction>>;

  at::Tensor call(std::vector<at::Tensor> inputs) const {
    TORCH_CHECK(inputs.size() == input_names.size(), "expected ", input_names.size(),
                " inputs, got ", inputs.size());
    Constants values = constants;
    for (size_t i = 0; i < inputs.size(); ++i) values[input_names[i]] = inputs[i];
    const auto value = [&](const std::string& name) {
      const auto found = values.find(name);
      TORCH_CHECK(found != values.end(), "nothing is named ", name);
      return found->second;
    };
    for (const auto& [operation, arguments, result] : instructions) {
      TORCH_CHECK(arguments.size() == 2, operation, " takes 2 arguments");
      const at::Tensor a = value(arguments[0]), b = value(arguments[1]);
      TORCH_CHECK(operation == "add" || operation == "mul", "unknown operation ", operation);
      values[result] = operation == "add" ? a + b : a * b;
    }
    return value(output_name);
  }
  State state() const { return {input_names, output_name, constants, instructions}; }

  std::vector<std::string> input_names;
  std::string output_name;
  Constants constants;
  std::vector<Instruction> instructions;
};

// ---- operators ----------------------------------------------------------------------------------
at::Tensor takes_foo(const Ptr<Foo>& foo, at::Tensor x) { return foo->add_tensor(std::move(x)); }
std::vector<at::Tensor> takes_foo_list(const Ptr<Foo>& foo, const at::Tensor& x) {
  const at::Tensor a = foo->add_tensor(x), b = foo->add_tensor(a), c = foo->add_tensor(b);
  return {a, b, c};
}
std::tuple<at::Tensor, at::Tensor> takes_foo_tuple(const Ptr<Foo>& foo, const at::Tensor& x) {
  const at::Tensor a = foo->add_tensor(x);
  return {a, foo->add_tensor(a)};
}
at::Tensor take_an_instance(const Ptr<PickleTester>&) { return at::zeros({4, 4}); }
void queue_push(const Ptr<TensorQueue>& queue, at::Tensor x) { queue->push(std::move(x)); }
at::Tensor queue_pop(const Ptr<TensorQueue>& queue) { return queue->pop(); }
int64_t queue_size(const Ptr<TensorQueue>& queue) { return queue->size(); }

void register_numbers(torch::Library& m) {
  m.class_<Foo>("_Foo", "Two numbers.")
      .def(torch::init<int64_t, int64_t>())
      .def("info", &Foo::info)
      .def("add", &Foo::add)
      .def("add_tensor", &Foo::add_tensor)
      .def("increment", &Foo::increment)
      .def("combine", &Foo::combine)
      .def("__eq__", &Foo::eq)
      .def("__obj_flatten__", &Foo::flatten)
      .def_pickle(
          [](const Ptr<Foo>& self) {
            return std::vector<int64_t>{self->x, self->y};
          },
          [](std::vector<int64_t> state) {
            return c10::make_intrusive<Foo>(state.at(0), state.at(1));
          });
  m.class_<FooGetterSetter>("_FooGetterSetter")
      .def(torch::init<int64_t, int64_t>())
      .def_property("x", &FooGetterSetter::get_x, &FooGetterSetter::set_x)
      .def_property("y", &FooGetterSetter::get_y);
  m.class_<FooGetterSetterLambda>("_FooGetterSetterLambda")
      .def(torch::init<int64_t>())
      .def_property(
          "x", [](const Ptr<FooGetterSetterLambda>& self) { return self->x; },
          [](const Ptr<FooGetterSetterLambda>& self, int64_t x) { self->x = x; });
  m.class_<FooReadWrite>("_FooReadWrite")
      .def(torch::init<int64_t, int64_t>())
      .def_readwrite("x", &FooReadWrite::x)
      .def_readonly("y", &FooReadWrite::y);
  m.class_<LambdaInit>("_LambdaInit")
      .def(torch::init([](int64_t x, int64_t y, bool swap) {
        return swap ? c10::make_intrusive<LambdaInit>(y, x) : c10::make_intrusive<LambdaInit>(x, y);
      }))
      .def("diff", &LambdaInit::diff);
  m.class_<NoInit>("_NoInit").def("get_x", [](const Ptr<NoInit>& self) { return self->x; });
  m.class_<StaticMethod>("_StaticMethod")
      .def(torch::init<>())
      .def_static("staticMethod", &StaticMethod::twice);
  m.class_<DefaultArgs>("_DefaultArgs")
      .def(torch::init<int64_t>(), "", {torch::arg("start") = 3})
      .def("increment", &DefaultArgs::increment, "", {torch::arg("val") = 1})
      .def("decrement", &DefaultArgs::decrement, "", {torch::arg("val") = 1})
      .def("scale_add", &DefaultArgs::scale_add, "", {torch::arg("add"), torch::arg("scale") = 1})
      .def("divide", &DefaultArgs::divide, "", {torch::arg("factor") = torch::arg::none()});
}

void register_stacks(torch::Library& m) {
  m.class_<StackString>("_StackString")
      .def(torch::init<std::vector<std::string>>())
      .def("push", &StackString::push)
      .def("pop", &StackString::pop)
      .def("clone", &StackString::clone)
      .def("merge", &StackString::merge)
      .def("return_a_tuple", &StackString::return_a_tuple)
      .def("__len__", &StackString::size)
      .def("top", [](const Ptr<StackString>& self) { return self->top(); })
      .def("__str__",
           [](const Ptr<StackString>& self) {
             std::string out = "[";
             for (const std::string& item : self->items) out += item + " ";
             return out + "]";
           })
      // A copy is recognised by its content.
      .def_pickle([](const Ptr<StackString>& self) { return self->items; },
                  [](std::vector<std::string>) {
                    return c10::make_intrusive<StackString>(
                        std::vector<std::string>{"i", "was", "deserialized"});
                  });
  m.class_<PickleTester>("_PickleTester")
      .def(torch::init<std::vector<int64_t>>())
      .def("top", &PickleTester::top)
      .def("pop", &PickleTester::pop)
      .def_pickle(
          [](const Ptr<PickleTester>&) {
            return std::vector<int64_t>{1, 3, 3, 7};
          },
          [](std::vector<int64_t> state) {
            return c10::make_intrusive<PickleTester>(std::move(state));
          });
}

template <class C> void register_container(torch::Library& m, const char* name) {
  m.class_<C>(name)
      .def(torch::init<at::Tensor>())
      .def("get", &C::get)
      .def("__obj_flatten__",
           [](const Ptr<C>& self) {
             using Pair = std::tuple<std::string, at::Tensor>;
             const bool computes = std::is_same_v<C, FlattenWithTensorOp>;
             return std::tuple<Pair>(Pair("t", computes ? self->t.sin() : self->t));
           })
      .def_pickle([](const Ptr<C>& self) { return self->t; },
                  [](at::Tensor t) { return c10::make_intrusive<C>(std::move(t)); });
}

void register_tensors(torch::Library& m) {
  m.class_<ReLUClass>("_ReLUClass").def(torch::init<>()).def("run", &ReLUClass::run);
  m.class_<TensorQueue>("_TensorQueue")
      .def(torch::init<at::Tensor>())
      .def("push", &TensorQueue::push)
      .def("pop", &TensorQueue::pop)
      .def("top", &TensorQueue::top)
      .def("size", &TensorQueue::size)
      .def("is_empty", &TensorQueue::is_empty)
      .def("float_size", &TensorQueue::float_size)
      .def("clone_queue", &TensorQueue::clone_queue)
      .def("get_raw_queue", &TensorQueue::raw)
      .def("__obj_flatten__", &TensorQueue::flatten)
      .def_pickle(
          [](const Ptr<TensorQueue>& self) {
            std::vector<at::Tensor> all = self->raw();
            all.insert(all.begin(), self->initial);
            return all;
          },
          [](std::vector<at::Tensor> all) {
            auto out = c10::make_intrusive<TensorQueue>(all.at(0));
            out->items.assign(all.begin() + 1, all.end());
            return out;
          });
  register_container<ContainsTensor>(m, "_ContainsTensor");
  register_container<ConstantTensorContainer>(m, "_ConstantTensorContainer");
  register_container<FlattenWithTensorOp>(m, "_FlattenWithTensorOp");
  using Interpreter = ElementwiseInterpreter;
  m.class_<Interpreter>("_ElementwiseInterpreter")
      .def(torch::init<>())
      .def("set_instructions",
           [](const Ptr<Interpreter>& self, std::vector<Interpreter::Instruction> v) {
             self->instructions = v;
           })
      .def("add_constant", [](const Ptr<Interpreter>& self, const std::string& name,
                              at::Tensor value) { self->constants[name] = value; })
      .def("set_input_names",
           [](const Ptr<Interpreter>& self, std::vector<std::string> v) { self->input_names = v; })
      .def("set_output_name",
           [](const Ptr<Interpreter>& self, std::string v) { self->output_name = v; })
      .def("__call__", &Interpreter::call)
      .def_pickle([](const Ptr<Interpreter>& self) { return self->state(); },
                  [](Interpreter::State state) {
                    auto out = c10::make_intrusive<Interpreter>();
                    std::tie(out->input_names, out->output_name, out->constants,
                             out->instructions) = std::move(state);
                    return out;
                  });
}

} // namespace

#define CLASS "__torch__.torch.classes._TorchScriptTesting."
TORCH_LIBRARY(_TorchScriptTesting, m) {
  register_numbers(m);
  register_stacks(m);
  register_tensors(m);
  m.def("takes_foo(" CLASS "_Foo foo, Tensor x) -> Tensor");
  m.def("takes_foo_python_meta(" CLASS "_Foo foo, Tensor x) -> Tensor");
  m.def("takes_foo_list_return(" CLASS "_Foo foo, Tensor x) -> Tensor[]");
  m.def("takes_foo_tuple_return(" CLASS "_Foo foo, Tensor x) -> (Tensor, Tensor)");
  m.def("takes_foo_cia(" CLASS "_Foo foo, Tensor x) -> Tensor", &takes_foo);
  m.def("take_an_instance(" CLASS "_PickleTester x) -> Tensor");
  m.def("take_an_instance_inferred", &take_an_instance);
  m.def("queue_push(" CLASS "_TensorQueue foo, Tensor x) -> ()");
  m.def("queue_pop(" CLASS "_TensorQueue foo) -> Tensor");
  m.def("queue_size(" CLASS "_TensorQueue foo) -> int");
}

TORCH_LIBRARY_IMPL(_TorchScriptTesting, CPU, m) {
  m.impl("takes_foo", &takes_foo);
  m.impl("takes_foo_python_meta", &takes_foo);
  m.impl("takes_foo_list_return", &takes_foo_list);
  m.impl("takes_foo_tuple_return", &takes_foo_tuple);
  m.impl("take_an_instance", &take_an_instance);
  m.impl("queue_push", &queue_push);
  m.impl("queue_pop", &queue_pop);
  m.impl("queue_size", &queue_size);
}

TORCH_LIBRARY_IMPL(_TorchScriptTesting, Meta, m) {
  m.impl("takes_foo", &takes_foo);
  m.impl("takes_foo_list_return", &takes_foo_list);
  m.impl("takes_foo_tuple_return", &takes_foo_tuple);
}
