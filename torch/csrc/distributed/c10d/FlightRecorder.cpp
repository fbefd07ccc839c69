// The ring, and its form as JSON. The names of fields are those that PyTorch documents for its
// recordings, so that tools which read those read ours.
#include <torch/csrc/distributed/c10d/FlightRecorder.h>

#include <algorithm>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include <torch/csrc/distributed/c10d/Backend.h>

namespace c10d::engine {

namespace {

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

size_t wanted_records() {
  for (const char* name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"}) {
    if (const char* text = ::getenv(name)) {
      const long count = std::strtol(text, nullptr, 10);
      return static_cast<size_t>(std::clamp(count, 0L, 1L << 20));
    }
  }
  return 2048;
}

void quote(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", c);
      out += code;
    } else {
      out += c;
    }
  }
  out += '"';
}

void field(std::string& out, const char* name, const std::string& text) {
  c10::append(out, c10::str(",\"", name, "\":"));
  quote(out, text);
}
void field(std::string& out, const char* name, int64_t number) {
  c10::append(out, c10::str(",\"", name, "\":", number));
}
void time_field(std::string& out, const char* name, int64_t time) {
  c10::append(out, c10::str(",\"", name, "\":", time ? std::to_string(time) : "null"));
}

void remember(std::vector<int64_t>& shapes, const std::vector<at::Tensor>& tensors) {
  shapes.clear();
  for (const auto& t : tensors) {
    shapes.push_back(static_cast<int64_t>(t.scalar_type()));
    shapes.push_back(t.dim());
    for (int64_t d = 0; d < t.dim(); ++d) shapes.push_back(t.size(d));
  }
}

void shape_fields(std::string& out, const char* which, const std::vector<int64_t>& shapes) {
  std::string sizes, dtypes;
  for (size_t at = 0; at < shapes.size(); at += 2 + static_cast<size_t>(shapes[at + 1])) {
    if (at) sizes += ",", dtypes += ",";
    quote(dtypes, c10::toString(static_cast<at::ScalarType>(shapes[at])));
    sizes += "[";
    for (int64_t d = 0; d < shapes[at + 1]; ++d) {
      c10::append(sizes, c10::str(d ? "," : "", shapes[at + 2 + static_cast<size_t>(d)]));
    }
    sizes += "]";
  }
  c10::append(
      out, c10::str(",\"", which, "_sizes\":[", sizes, "],\"", which, "_dtypes\":[", dtypes, "]"));
}

constexpr const char* kStates[] = {"scheduled", "started", "completed", "failed"};

std::string list_of(const std::vector<int64_t>& ranks) {
  std::string out = "[";
  for (size_t i = 0; i < ranks.size(); ++i) c10::append(out, c10::str(i ? ", " : "", ranks[i]));
  return out + "]";
}

} // namespace

FlightRecorder::FlightRecorder() : ring_(wanted_records()) {}

FlightRecorder& FlightRecorder::get() {
  // Work may end while the process does.
  static auto* recorder = new FlightRecorder;
  return *recorder;
}

FlightRecorder::Record* FlightRecorder::find(uint64_t id) {
  if (id == kNone || ring_.empty()) return nullptr;
  Record& record = ring_[id % ring_.size()];
  return record.id == id ? &record : nullptr;
}

uint64_t FlightRecorder::begin(const Backend& backend, const Collective& call) {
  if (ring_.empty()) return kNone;
  const auto& name = backend.options().group_name;
  const auto& members = backend.options().global_ranks;
  std::lock_guard lock(mutex_);
  if (rank_ < 0) {
    const auto own = static_cast<size_t>(backend.rank());
    rank_ = own < members.size() ? members[own] : backend.rank();
  }
  Group& group = groups_[name];
  Record& record = ring_[next_ % ring_.size()];
  record.id = next_++;
  record.type = call.type;
  record.reduce = call.reduce.kind;
  record.state = State::Scheduled;
  record.root = call.root;
  record.tag = call.tag;
  record.sequence = call.sequence;
  record.transfer = call.is_point_to_point() ? ++group.transfers : group.transfers;
  record.timeout_ms = call.timeout.count();
  record.created = now();
  record.started = record.ended = 0;
  record.group = name;
  record.backend = backend.name();
  remember(record.inputs, call.inputs);
  remember(record.outputs, call.outputs);
  if (group.ranks.empty()) {
    group.ranks = members;
    for (int i = 0; group.ranks.empty() && i < backend.size(); ++i) group.ranks.push_back(i);
  }
  if (!call.is_point_to_point()) group.enqueued = static_cast<int64_t>(call.sequence);
  return record.id;
}

void FlightRecorder::start(uint64_t id) {
  std::lock_guard lock(mutex_);
  Record* record = find(id);
  if (!record || record->state != State::Scheduled) return;
  record->state = State::Started;
  record->started = now();
  auto& started = groups_[record->group].started;
  started = std::max(started, static_cast<int64_t>(record->sequence));
}

void FlightRecorder::end(uint64_t id, bool ok) {
  if (id == kNone) return;
  std::lock_guard lock(mutex_);
  Record* record = find(id);
  if (!record) return;
  record->state = ok ? State::Completed : State::Failed;
  record->ended = now();
  if (!ok) return;
  auto& completed = groups_[record->group].completed;
  completed = std::max(completed, static_cast<int64_t>(record->sequence));
}

void FlightRecorder::describe_group(const std::string& group, const std::vector<int64_t>& ranks,
                                    const std::string& description) {
  std::lock_guard lock(mutex_);
  Group& known = groups_[group];
  if (!ranks.empty()) known.ranks = ranks;
  if (!description.empty()) known.description = description;
}

void FlightRecorder::reset() {
  std::lock_guard lock(mutex_);
  for (auto& record : ring_) record.id = kNone;
  groups_.clear();
}

void FlightRecorder::append(std::string& out, const Record& record) const {
  const bool transfer = record.type == OpType::Send || record.type == OpType::Recv ||
                        record.type == OpType::RecvAnySource;
  c10::append(out, c10::str("{\"record_id\":", record.id));
  const auto group = groups_.find(record.group);
  out += ",\"process_group\":[";
  quote(out, record.group);
  out += ",";
  quote(out, group == groups_.end() ? std::string() : group->second.description);
  out += "],\"frames\":[]";
  field(out, "profiling_name", c10::str(record.backend, ":", name_of(record.type)));
  field(out, "collective_seq_id", static_cast<int64_t>(record.sequence));
  field(out, "p2p_seq_id", static_cast<int64_t>(record.transfer));
  field(out, "op_id", static_cast<int64_t>(record.id));
  shape_fields(out, "input", record.inputs);
  shape_fields(out, "output", record.outputs);
  field(out, "reduce_op", name_of(record.reduce));
  field(out, transfer ? "peer" : "root", record.root);
  if (transfer) field(out, "tag", record.tag);
  field(out, "state", kStates[static_cast<size_t>(record.state)]);
  field(out, "time_created_ns", record.created);
  time_field(out, "time_discovered_started_ns", record.started);
  time_field(out, "time_discovered_completed_ns", record.ended);
  field(out, "timeout_ms", record.timeout_ms);
  const bool retired = record.state == State::Completed || record.state == State::Failed;
  c10::append(out, c10::str(",\"retired\":", retired ? "true" : "false",
                            ",\"is_p2p\":", transfer ? "true" : "false", "}"));
}

std::string FlightRecorder::json(bool with_entries, bool only_active) {
  std::lock_guard lock(mutex_);
  std::string out = "{\"version\":\"2.10\",\"comm_lib_version\":\"\",\"nccl_comm_state\":{}";
  std::string config, status;
  for (const auto& [name, group] : groups_) {
    if (!config.empty()) config += ",", status += ",";
    quote(config, name);
    config += ":{\"name\":";
    quote(config, name);
    field(config, "desc", group.description);
    field(config, "ranks", list_of(group.ranks));
    config += "}";
    quote(status, name);
    c10::append(status, c10::str(":{\"last_enqueued_collective\":", group.enqueued));
    field(status, "last_started_collective", group.started);
    field(status, "last_completed_collective", group.completed);
    status += "}";
  }
  c10::append(out, c10::str(",\"pg_config\":{", config, "},\"pg_status\":{", status, "}"));
  if (with_entries) {
    out += ",\"entries\":[";
    const uint64_t count = std::min<uint64_t>(next_, ring_.size());
    bool first = true;
    for (uint64_t id = next_ - count; id < next_; ++id) {
      const Record* record = find(id);
      if (!record || (only_active && record->state >= State::Completed)) continue;
      if (!first) out += ",";
      first = false;
      append(out, *record);
    }
    out += "]";
  }
  return out + "}";
}

std::string FlightRecorder::dump_path() {
  for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}) {
    const char* begin = ::getenv(name);
    if (!begin || !*begin) continue;
    std::lock_guard lock(mutex_);
    return begin + std::to_string(std::max<int64_t>(rank_, 0));
  }
  return {};
}

void FlightRecorder::dump(const std::string& reason) {
  const std::string path = dump_path();
  if (path.empty()) return;
  std::string text = json();
  text.pop_back();
  field(text, "reason", reason);
  text += "}\n";
  const std::string temporary = c10::str(path, ".", ::getpid(), ".tmp");
  const int file = ::open(temporary.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (file < 0) return;
  size_t done = 0;
  while (done < text.size()) {
    const auto wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  ::close(file);
  // Half a file would mislead the reader.
  if (done == text.size()) {
    ::rename(temporary.c_str(), path.c_str());
  } else {
    ::unlink(temporary.c_str());
  }
}

} // namespace c10d::engine
