// Every operator of the library is called with tensors that have no value: all of them, and each
// one alone among tensors that have one. It may accept that or raise; it may not end the process.
// The list is the dispatcher's own, so that a new operator is tried without a line here.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include <ATen/core/Dispatcher.h>
#include <ATen/core/FunctionSchema.h>
#include <torch/torch.h>

namespace {

using Kind = at::SchemaType::Kind;

// Shapes are such that most operators accept them; what they make of it is not the question.
at::Tensor some_tensor(at::ScalarType dtype) { return at::ones({2, 2}, dtype); }

at::IValue scalar_of(Kind kind) {
  switch (kind) {
  case Kind::Float:
    return at::IValue(1.0);
  case Kind::Bool:
    return at::IValue(false);
  case Kind::Str:
    return at::IValue("mean");
  case Kind::ScalarType:
    return at::IValue(at::kFloat);
  case Kind::Layout:
    return at::IValue(at::kStrided);
  case Kind::Device:
    return at::IValue(at::Device(at::kCPU));
  case Kind::MemoryFormat:
    return at::IValue(at::MemoryFormat::Contiguous);
  case Kind::Scalar:
    return at::IValue(at::Scalar(1));
  default:
    return at::IValue(int64_t(1));
  }
}

at::IValue list_of(const at::SchemaType& type) {
  const size_t count = type.list_size > 0 ? static_cast<size_t>(type.list_size) : 2;
  if (type.kind == Kind::Float) return at::IValue(std::vector<double>(count, 1.0));
  if (type.kind == Kind::Bool) return at::IValue(std::vector<bool>(count, true));
  if (type.kind == Kind::Scalar) return at::IValue(std::vector<at::Scalar>(count, at::Scalar(1)));
  return at::IValue(std::vector<int64_t>(count, 1));
}

// The arguments of a call in which the tensors that `undefined` picks have no value.
template <class Picks>
at::Stack arguments_of(const at::FunctionSchema& schema, at::ScalarType dtype, Picks undefined) {
  at::Stack stack;
  int place = 0;
  const auto next = [&] { return undefined(place++) ? at::Tensor() : some_tensor(dtype); };
  for (const at::SchemaArgument& argument : schema.arguments) {
    const at::SchemaType& type = argument.type;
    if (type.kind == Kind::Tensor && type.is_list && type.element_optional) {
      stack.emplace_back(std::vector<std::optional<at::Tensor>>{next(), next()});
    } else if (type.kind == Kind::Tensor && type.is_list) {
      stack.emplace_back(std::vector<at::Tensor>{next(), next()});
    } else if (type.kind == Kind::Tensor) {
      stack.emplace_back(next());
    } else if (argument.has_default) {
      stack.push_back(argument.default_value);
    } else if (type.optional || type.kind == Kind::Generator) {
      stack.emplace_back();
    } else {
      stack.push_back(type.is_list ? list_of(type) : scalar_of(type.kind));
    }
  }
  return stack;
}

int tensors_of(const at::FunctionSchema& schema) {
  int count = 0;
  for (const at::SchemaArgument& argument : schema.arguments)
    if (argument.type.kind == Kind::Tensor) count += argument.type.is_list ? 2 : 1;
  return count;
}

// Operators that wait for another thread or leave the process changed.
bool is_left_out(const std::string& name) {
  return name.find("record_stream") != std::string::npos ||
         name.find("_assert_async") != std::string::npos;
}

// Whether the call returned or raised: anything else does not come back. With the variable set,
// each call is named before it is made, which shows the one that does not.
void call(const at::OperatorEntry& op, at::Stack stack, const std::string& what) {
  static const bool show = std::getenv("CRESSET_SHOW_CALLS") != nullptr;
  if (show) std::fprintf(stderr, "%s %s\n", op.full_name().c_str(), what.c_str());
  try {
    op.call_boxed(stack);
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()), "") << op.full_name() << " " << what;
  }
}

template <class F> void for_each_operator(F f) {
  for (const at::OperatorEntry* op : at::detail::builtin_operators())
    if (!is_left_out(op->full_name())) f(*op, op->schema());
}

} // namespace

TEST(UndefinedOperators, AllTensorsWithoutAValueAreAcceptedOrAnError) {
  const c10::WarningUtils::WarnAlways once(false);
  for_each_operator([](const at::OperatorEntry& op, const at::FunctionSchema& schema) {
    if (tensors_of(schema) == 0) return;
    call(op, arguments_of(schema, at::kFloat, [](int) { return true; }), "all");
  });
}

TEST(UndefinedOperators, OneTensorWithoutAValueAmongOthersIsAcceptedOrAnError) {
  for_each_operator([](const at::OperatorEntry& op, const at::FunctionSchema& schema) {
    const int count = tensors_of(schema);
    for (at::ScalarType dtype : {at::kFloat, at::kLong})
      for (int place = 0; count > 1 && place < count; ++place)
        call(op, arguments_of(schema, dtype, [&](int i) { return i == place; }),
             std::to_string(place));
  });
}

TEST(UndefinedOperators, TensorsWithoutAValueUnderGradientsAreAcceptedOrAnError) {
  for_each_operator([](const at::OperatorEntry& op, const at::FunctionSchema& schema) {
    const int count = tensors_of(schema);
    for (int place = 0; count > 1 && place < count; ++place) {
      at::Stack stack = arguments_of(schema, at::kFloat, [&](int i) { return i == place; });
      for (at::IValue& value : stack)
        if (value.isTensor()) value = at::IValue(value.toTensor().set_requires_grad(true));
      call(op, std::move(stack), "gradients " + std::to_string(place));
    }
  });
}
