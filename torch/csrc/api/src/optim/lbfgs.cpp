// L-BFGS with an optional line search that finds a point of the strong Wolfe conditions (Nocedal
// and Wright, Numerical Optimization, algorithms 3.5, 3.6 and 7.4).
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <cmath>

namespace torch::optim {
namespace {

Tensor flat_gradient(const std::vector<Tensor>& params) {
  std::vector<Tensor> parts;
  for (const Tensor& p : params) {
    const Tensor& grad = p.mutable_grad();
    parts.push_back(!grad.defined()    ? at::zeros({p.numel()}, p.options())
                    : grad.is_sparse() ? grad.to_dense().reshape({-1})
                                       : grad.reshape({-1}));
  }
  return parts.empty() ? Tensor() : at::cat(parts);
}
void move_along(const std::vector<Tensor>& params, const Tensor& direction, double t) {
  int64_t at = 0;
  for (const Tensor& p : params) {
    p.add_(direction.slice(0, at, at + p.numel()).view_as(p), t);
    at += p.numel();
  }
}
double largest(const Tensor& t) { return t.abs().max().item<double>(); }
double product_of(const Tensor& a, const Tensor& b) { return a.dot(b).item<double>(); }

// A point of the line that the search looked at.
struct Point {
  double t, loss, slope;
  Tensor gradient;
};

// The minimum of the cubic through two points and their slopes, kept inside [low, high].
double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const Point& l = a.t <= b.t ? a : b;
  const Point& r = a.t <= b.t ? b : a;
  const double d1 = l.slope + r.slope - 3 * (l.loss - r.loss) / (l.t - r.t);
  const double square = d1 * d1 - l.slope * r.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const double t = r.t - (r.t - l.t) * ((r.slope + d2 - d1) / (r.slope - l.slope + 2 * d2));
  return std::min(std::max(t, low), high);
}

// Evaluates the loss at distances along one direction.
struct Line {
  const std::vector<Tensor>& params;
  const Tensor& direction;
  const Optimizer::LossClosure& closure;
  std::vector<Tensor> start;
  int64_t evaluations = 0;

  Point at(double t) {
    move_along(params, direction, t);
    Tensor loss;
    {
      const AutoGradMode with_gradients(true);
      loss = closure();
    }
    ++evaluations;
    Point out{t, loss.item<double>(), 0, flat_gradient(params)};
    out.slope = product_of(out.gradient, direction);
    for (size_t i = 0; i < params.size(); ++i) params[i].copy_(start[i]);
    return out;
  }
};

constexpr double kDecrease = 1e-4, kCurvature = 0.9;

// Narrows a bracket [low, high] that holds an acceptable point.
Point zoom(Line& line, const Point& origin, Point low, Point high, double tolerance, int left) {
  while (left-- > 0 && std::fabs(high.t - low.t) * largest(line.direction) >= tolerance) {
    const double from = std::min(low.t, high.t), to = std::max(low.t, high.t);
    double t = cubic_minimum(low, high, from, to);
    // Too near an end the bracket would hardly shrink.
    const double margin = 0.1 * (to - from);
    t = std::min(std::max(t, from + margin), to - margin);
    Point now = line.at(t);
    if (now.loss > origin.loss + kDecrease * t * origin.slope || now.loss >= low.loss) {
      high = std::move(now);
      continue;
    }
    if (std::fabs(now.slope) <= -kCurvature * origin.slope) return now;
    if (now.slope * (high.t - low.t) >= 0) high = low;
    low = std::move(now);
  }
  return low;
}

Point strong_wolfe(Line& line, const Point& origin, double t, double tolerance) {
  constexpr int kMost = 25;
  Point before = origin;
  for (int i = 0; i < kMost; ++i) {
    Point now = line.at(t);
    if (now.loss > origin.loss + kDecrease * t * origin.slope || (i > 0 && now.loss >= before.loss))
      return zoom(line, origin, before, now, tolerance, kMost - i);
    if (std::fabs(now.slope) <= -kCurvature * origin.slope) return now;
    if (now.slope >= 0) return zoom(line, origin, now, before, tolerance, kMost - i);
    const double next = cubic_minimum(before, now, t + 0.01 * (t - before.t), t * 10);
    before = std::move(now);
    t = next;
  }
  return before;
}

// The quasi-Newton direction from the steps that are kept: the two-loop recursion.
Tensor direction_from(LBFGSParamState& state, const Tensor& gradient) {
  const size_t count = state.old_dirs().size();
  if (!state.al()) state.al(std::vector<Tensor>(count));
  std::vector<Tensor>& al = *state.al();
  al.resize(std::max(al.size(), count));
  Tensor q = gradient.neg();
  for (size_t i = count; i-- > 0;) {
    al[i] = state.old_stps()[i].dot(q) * state.ro()[i];
    q.sub_(state.old_dirs()[i] * al[i]);
  }
  Tensor d = q * state.H_diag();
  for (size_t i = 0; i < count; ++i) {
    const Tensor beta = state.old_dirs()[i].dot(d) * state.ro()[i];
    d.add_(state.old_stps()[i] * (al[i] - beta));
  }
  return d;
}

void remember_step(LBFGSParamState& state, const Tensor& gradient, int64_t history) {
  const Tensor y = gradient - state.prev_flat_grad();
  const Tensor s = state.d() * state.t();
  const double ys = product_of(y, s);
  if (ys <= 1e-10) return;
  if (int64_t(state.old_dirs().size()) == history) {
    state.old_dirs().pop_front();
    state.old_stps().pop_front();
    state.ro().pop_front();
  }
  state.old_dirs().push_back(y);
  state.old_stps().push_back(s);
  state.ro().push_back(at::full({}, 1.0 / ys, y.options()));
  state.H_diag(at::full({}, ys / product_of(y, y), y.options()));
}

} // namespace

LBFGS::LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults)
    : Optimizer(param_groups, std::make_unique<LBFGSOptions>(defaults)) {
  TORCH_CHECK(param_groups_.size() == 1,
              "LBFGS doesn't support per-parameter options (parameter groups)");
  if (!defaults.max_eval()) {
    const int64_t most = defaults.max_iter() * 5 / 4;
    static_cast<LBFGSOptions&>(param_groups_[0].options()).max_eval(most);
    static_cast<LBFGSOptions&>(*defaults_).max_eval(most);
  }
}
std::unique_ptr<OptimizerParamState> LBFGS::make_state() const {
  return std::make_unique<LBFGSParamState>();
}

Tensor LBFGS::step(LossClosure closure) {
  const NoGradGuard no_grad;
  TORCH_CHECK(closure != nullptr, "LBFGS requires a closure function");
  const auto& o = static_cast<LBFGSOptions&>(param_groups_[0].options());
  const std::vector<Tensor>& params = param_groups_[0].params();
  TORCH_CHECK(!params.empty(), "LBFGS has no parameters");
  bool is_new = false;
  auto& state = state_of<LBFGSParamState>(params[0], is_new);
  const Tensor first_loss = loss_of(closure);
  double loss = first_loss.item<double>();
  int64_t evaluations = 1;
  state.func_evals(state.func_evals() + 1);
  Tensor gradient = flat_gradient(params);
  if (largest(gradient) <= o.tolerance_grad()) return first_loss;
  const int64_t most_evaluations = o.max_eval().value_or(o.max_iter() * 5 / 4);
  for (int64_t iteration = 1; iteration <= o.max_iter(); ++iteration) {
    state.n_iter(state.n_iter() + 1);
    if (state.n_iter() == 1) {
      state.d(gradient.neg());
      state.H_diag(at::full({}, 1, gradient.options()));
      state.old_dirs().clear(), state.old_stps().clear(), state.ro().clear();
    } else {
      remember_step(state, gradient, o.history_size());
      state.d(direction_from(state, gradient));
    }
    state.prev_flat_grad(gradient.clone());
    state.prev_loss(loss);
    const double first = std::min(1.0, 1.0 / gradient.abs().sum().item<double>()) * o.lr();
    state.t(state.n_iter() == 1 ? first : o.lr());
    const double slope = product_of(gradient, state.d());
    if (slope > -o.tolerance_change()) break;
    int64_t spent = 0;
    if (o.line_search_fn()) {
      TORCH_CHECK(*o.line_search_fn() == "strong_wolfe", "only 'strong_wolfe' is supported");
      Line line{params, state.d(), closure, {}, 0};
      for (const Tensor& p : params) line.start.push_back(p.clone());
      const Point found =
          strong_wolfe(line, Point{0, loss, slope, gradient}, state.t(), o.tolerance_change());
      move_along(params, state.d(), found.t);
      state.t(found.t);
      loss = found.loss;
      gradient = found.gradient;
      spent = line.evaluations;
    } else {
      move_along(params, state.d(), state.t());
      if (iteration != o.max_iter()) {
        loss = loss_of(closure).item<double>();
        gradient = flat_gradient(params);
        spent = 1;
      }
    }
    evaluations += spent;
    state.func_evals(state.func_evals() + spent);
    if (evaluations >= most_evaluations || largest(gradient) <= o.tolerance_grad() ||
        largest(state.d() * state.t()) <= o.tolerance_change() ||
        std::fabs(loss - state.prev_loss()) < o.tolerance_change())
      break;
  }
  return first_loss;
}

} // namespace torch::optim
