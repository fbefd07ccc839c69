// A fingerprint is a list of words, of which each has a name; two are compared word by word.
#include <torch/csrc/distributed/c10d/CrossCheck.h>

#include <array>

namespace c10d::engine {

namespace {

constexpr const char* kWords[] = {"SequenceNumber",    "OpType",   "TensorShape", "TensorDtypes",
                                  "TensorDeviceTypes", "ReduceOp", "Root"};
constexpr size_t kCount = std::size(kWords);
constexpr char kEnd = '\n';
using Words = std::array<std::string, kCount>;

// The tensors whose shapes must be equal on all ranks.
const std::vector<at::Tensor>* compared(const Collective& call) {
  switch (call.type) {
  case OpType::AllToAll:
  case OpType::AllToAllBase:
    return nullptr; // ranks may send and receive different amounts
  case OpType::AllGather:
  case OpType::AllGatherBase:
  case OpType::AllGatherCoalesced:
  case OpType::Gather:
  case OpType::ReduceScatter:
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    return &call.inputs;
  default:
    return &call.outputs;
  }
}

Words fingerprint(const Collective& call) {
  Words words;
  words[0] = std::to_string(call.sequence);
  words[1] = code_of(call.type);
  if (const auto* tensors = compared(call)) {
    for (const auto& t : *tensors) {
      const char* comma = words[2].empty() ? "" : ", ";
      words[2] += c10::str(comma, "[");
      for (int64_t d = 0; d < t.dim(); ++d) {
        c10::append(words[2], c10::str(d ? ", " : "", t.size(d)));
      }
      words[2] += "]";
      words[3] += c10::str(comma, c10::toString(t.scalar_type()));
      words[4] += c10::str(comma, t.device().is_cpu() ? "cpu" : "cuda");
    }
  }
  switch (call.type) {
  case OpType::AllReduce:
  case OpType::AllReduceCoalesced:
  case OpType::Reduce:
  case OpType::ReduceScatter:
  case OpType::ReduceScatterBase:
  case OpType::ReduceScatterCoalesced:
    words[5] = name_of(call.reduce.kind);
    break;
  default:
    break;
  }
  if (call.type == OpType::Broadcast || call.type == OpType::Reduce ||
      call.type == OpType::Gather || call.type == OpType::Scatter) {
    words[6] = std::to_string(call.root);
  }
  return words;
}

Bytes packed(const Words& words) {
  Bytes out;
  for (const auto& word : words) out += word + kEnd;
  return out;
}

Words unpacked(const Bytes& bytes) {
  Words words;
  size_t at = 0;
  for (auto& word : words) {
    const size_t end = bytes.find(kEnd, at);
    if (end == Bytes::npos) break;
    word = bytes.substr(at, end - at);
    at = end + 1;
  }
  return words;
}

std::string shown(const Words& words) {
  std::string out = "CollectiveFingerPrint(";
  for (size_t i = 0; i < kCount; ++i) {
    if (words[i].empty()) continue;
    c10::append(out, c10::str(i ? ", " : "", kWords[i], "=", words[i]));
  }
  return out + ")";
}

} // namespace

CrossCheck::CrossCheck(std::shared_ptr<Store> store, int rank, int size)
    : store_(std::move(store)), rank_(rank), size_(size) {}

void CrossCheck::await_all(const Keys& keys, const Collective& call, Millis timeout) {
  try {
    store_->wait(keys, timeout);
    return;
  } catch (const DistStoreError&) {
    // Who is missing is asked below.
  }
  std::string missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (store_->check({keys[static_cast<size_t>(rank)]})) continue;
    missing += c10::str(missing.empty() ? "" : ", ", rank);
  }
  if (missing.empty()) return;
  throw DistBackendError(c10::str("[Rank ", rank_, "]: Ranks ", missing,
                                  " failed to pass monitoredBarrier in ", timeout.count(),
                                  " ms: they did not come to ", call.describe(),
                                  ". Please check rank 0 logs for faulty rank."));
}

void CrossCheck::check(const Collective& call, Millis timeout) {
  std::lock_guard lock(mutex_);
  const uint64_t number = number_++;
  const auto key = [](uint64_t which, int rank) {
    return c10::str("cresset/check/", which, "/", rank);
  };
  const Words mine = fingerprint(call);
  store_->set(key(number, rank_), packed(mine));
  Keys keys;
  for (int rank = 0; rank < size_; ++rank) keys.push_back(key(number, rank));
  await_all(keys, call, timeout);
  const auto found = store_->multi_get(keys);
  // Whoever came here has read what was written two operations ago.
  if (number >= 2) store_->delete_key(key(number - 2, rank_));
  for (int rank = 0; rank < size_; ++rank) {
    const Words other = unpacked(found[static_cast<size_t>(rank)]);
    if (other == mine) continue;
    std::string differs;
    for (size_t i = 0; i < kCount; ++i) {
      if (mine[i] == other[i]) continue;
      differs += c10::str(differs.empty() ? " " : ", ", kWords[i], ": ", mine[i], " vs ", other[i]);
    }
    throw DistBackendError(c10::str("Detected mismatch between collectives on ranks. Rank ", rank_,
                                    " is running collective: ", shown(mine), ", but Rank ", rank,
                                    " is running collective: ", shown(other),
                                    ". Collectives differ in the following aspects:", differs));
  }
}

} // namespace c10d::engine
