// C++ side by side: small operators, a step of an MLP and a block of GPT, through the public
// headers that this library and PyTorch share. One source is compiled against either;
// cpp_compare.py builds both, runs them in turns and prints the ratios.
//
//   cpp_overhead [SECONDS [CASE]]   prints "name nanoseconds" per case; each takes about SECONDS.
#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <vector>

namespace {

// Processor time of the whole program, which others on the machine disturb less than the clock on
// the wall. One thread computes, so the two agree where nobody else does.
double now() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}
double seconds_since(double start) { return now() - start; }

// The median time of one call over blocks of calls, in nanoseconds.
double time_call(const std::function<void()>& call, double budget) {
  const double start = now();
  int64_t calls = 0;
  while (seconds_since(start) < budget / 10 || calls < 3) {
    call();
    ++calls;
  }
  const double each = seconds_since(start) / static_cast<double>(calls);
  constexpr int kBlocks = 15;
  const auto block = std::max<int64_t>(1, static_cast<int64_t>(budget / kBlocks / each));
  std::vector<double> times;
  for (int b = 0; b < kBlocks; ++b) {
    const double begin = now();
    for (int64_t i = 0; i < block; ++i) call();
    times.push_back(seconds_since(begin) / static_cast<double>(block));
  }
  std::nth_element(times.begin(), times.begin() + kBlocks / 2, times.end());
  return times[kBlocks / 2] * 1e9;
}

struct Case {
  const char* name;
  std::function<void()> call;
};

std::vector<Case> small_operators() {
  const torch::Tensor a = torch::rand({8}), b = torch::rand({8}), m = torch::rand({8, 8});
  const torch::Tensor w = torch::rand({8}, torch::requires_grad());
  return {
      {"empty", [] { torch::empty({8}); }},
      {"zeros", [] { torch::zeros({8}); }},
      {"add", [=] { a + b; }},
      {"add_",
       [=]() mutable {
         torch::NoGradGuard guard;
         torch::Tensor(a).add_(b, 1e-9);
       }},
      {"mul_scalar", [=] { a * 2.0; }},
      {"relu", [=] { torch::relu(a); }},
      {"exp", [=] { a.exp(); }},
      {"sum", [=] { a.sum(); }},
      {"softmax", [=] { torch::softmax(m, 1); }},
      {"matmul", [=] { torch::matmul(m, m); }},
      {"view", [=] { m.view({64}); }},
      {"transpose", [=] { m.t(); }},
      {"slice", [=] { m.slice(0, 1, 5); }},
      {"select", [=] { m[3]; }},
      {"index",
       [=] {
         m.index({torch::indexing::Slice(1, 5), 2});
       }},
      {"cat",
       [=] {
         torch::cat({a, b});
       }},
      {"to_double", [=] { a.to(torch::kDouble); }},
      {"item", [=] { a[0].item<float>(); }},
      {"add_backward",
       [=]() mutable {
         w.grad().defined();
         (w + b).sum().backward();
       }},
  };
}

Case mlp_step() {
  struct State {
    torch::nn::Sequential net{torch::nn::Linear(32, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 64), torch::nn::ReLU(),
                              torch::nn::Linear(64, 10)};
    torch::optim::Adam adam{net->parameters(), torch::optim::AdamOptions(1e-3)};
    torch::Tensor x = torch::randn({16, 32});
    torch::Tensor y = torch::randint(10, {16}, torch::kLong);
  };
  auto state = std::make_shared<State>();
  return {
      "mlp_step", [state] {
        state->adam.zero_grad();
        torch::nn::functional::cross_entropy(state->net->forward(state->x), state->y).backward();
        state->adam.step();
      }};
}

// A block of GPT: norms, attention of four heads, two layers with GELU; forward and backward.
struct Block : torch::nn::Module {
  explicit Block(int64_t width)
      : width(width),
        norm1(register_module("norm1", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        norm2(register_module("norm2", torch::nn::LayerNorm(torch::nn::LayerNormOptions({width})))),
        qkv(register_module("qkv", torch::nn::Linear(width, 3 * width))),
        out(register_module("out", torch::nn::Linear(width, width))),
        up(register_module("up", torch::nn::Linear(width, 4 * width))),
        down(register_module("down", torch::nn::Linear(4 * width, width))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    const int64_t batch = x.size(0), length = x.size(1), heads = 4;
    std::vector<torch::Tensor> parts = qkv(norm1(x)).split(width, 2);
    for (torch::Tensor& part : parts)
      part = part.view({batch, length, heads, width / heads}).transpose(1, 2);
    torch::Tensor mixed = at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0.0,
                                                           /*is_causal=*/true);
    mixed = mixed.transpose(1, 2).contiguous().view({batch, length, width});
    const torch::Tensor y = x + out(mixed);
    return y + down(torch::gelu(up(norm2(y))));
  }
  int64_t width;
  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, out, up, down;
};

Case gpt_block(const char* name, int64_t batch, int64_t length, int64_t width) {
  auto block = std::make_shared<Block>(width);
  const torch::Tensor x = torch::randn({batch, length, width});
  return {name, [block, x] {
            block->zero_grad();
            block->forward(x).sum().backward();
          }};
}

} // namespace

int main(int argc, char** argv) {
  const double budget = argc > 1 ? std::atof(argv[1]) : 0.2;
  const std::string only = argc > 2 ? argv[2] : "";
  torch::manual_seed(0);
  at::set_num_threads(1);
  std::vector<Case> cases = small_operators();
  cases.push_back(mlp_step());
  cases.push_back(gpt_block("gpt_block_small", 2, 16, 64));
  cases.push_back(gpt_block("gpt_block", 4, 128, 256));
  for (const Case& each : cases)
    if (only.empty() || only == each.name)
      std::printf("%s %.1f\n", each.name, time_call(each.call, budget));
  return 0;
}
