// Devices and streams in a backward pass. See Note [Streams of a backward pass].
#include <torch/csrc/autograd/streams.h>

#include <algorithm>

#include <c10/core/DeviceHooks.h>

namespace torch::autograd {
namespace {

c10::DeviceHooks* hooks_of(at::Device device) {
  return device.is_cpu() ? nullptr : c10::device_hooks(device.type());
}

template <class List> bool contains(const List& list, const StreamPlace& place) {
  return std::find(list.begin(), list.end(), place) != list.end();
}

} // namespace

void* current_stream(at::Device device) {
  c10::DeviceHooks* hooks = hooks_of(device);
  return hooks != nullptr ? hooks->current_stream(device.index()) : nullptr;
}

StreamPlace PassStreams::callers(at::Device device) const {
  for (const StreamPlace& before : changed_)
    if (before.device == device) return before;
  return {device, current_stream(device)};
}

void PassStreams::enter_device(const StreamPlace& place) {
  c10::DeviceHooks* hooks = hooks_of(place.device);
  if (hooks == nullptr) return;
  if (!used_) {
    used_ = true;
    first_ = at::Device(place.device.type(), hooks->current_device());
  }
  if (!contains(entered_, place)) entered_.push_back(place);
  if (hooks->current_device() != place.device.index()) hooks->exchange_device(place.device.index());
  void* current = hooks->current_stream(place.device.index());
  if (current == place.stream) return;
  const StreamPlace before = callers(place.device);
  if (!contains(changed_, before)) changed_.push_back(before);
  hooks->set_current_stream(place.device.index(), place.stream);
}

void PassStreams::order(const StreamPlace& made, const StreamPlace& to, const Tensor& grad) {
  c10::DeviceHooks* hooks = hooks_of(to.device);
  const StreamPlace from = made.on_cpu() ? StreamPlace{to.device, current_stream(to.device)} : made;
  if (hooks == nullptr || from.device.type() != to.device.type() || from == to) return;
  hooks->wait_stream(to.device.index(), to.stream, from.device.index(), from.stream);
  if (grad.device() == to.device && grad.has_storage())
    hooks->record_stream(grad.storage()->data_ptr(), to.device.index(), to.stream);
}

void PassStreams::receive(const StreamPlace& to, const Tensor& grad) {
  if (to.on_cpu() || !grad.defined()) return;
  const at::Device device = grad.device().is_cpu() ? to.device : grad.device();
  hand_over(callers(device), to, grad);
}

void PassStreams::adopt(const StreamPlace& place) {
  if (!contains(entered_, place)) entered_.push_back(place);
}

void PassStreams::finish() {
  for (const StreamPlace& place : entered_) {
    const StreamPlace waiting = callers(place.device);
    if (waiting == place) continue;
    hooks_of(place.device)
        ->wait_stream(waiting.device.index(), waiting.stream, place.device.index(), place.stream);
  }
}

PassStreams::~PassStreams() {
  if (!used_) return;
  try {
    for (const StreamPlace& before : changed_)
      hooks_of(before.device)->set_current_stream(before.device.index(), before.stream);
    c10::DeviceHooks* hooks = hooks_of(first_);
    if (hooks->current_device() != first_.index()) hooks->exchange_device(first_.index());
  } catch (const c10::Error&) {
    // The driver is gone, and with it the streams.
  }
}

} // namespace torch::autograd
