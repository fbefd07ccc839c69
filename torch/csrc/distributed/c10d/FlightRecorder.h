// What the groups of this process did last. Every operation of every backend leaves a record in a
// ring: which group, which number, which tensors, when it was asked for, begun and ended. When an
// operation fails, the ring goes to a file, and a reader that has the files of all ranks can say
// who is to blame. Recording must cost nothing that one could measure: records are used again, with
// the memory they hold.
#pragma once
#include <map>
#include <mutex>

#include <torch/csrc/distributed/c10d/Collective.h>

namespace c10d::engine {

class Backend;

class TORCH_API FlightRecorder {
 public:
  static constexpr uint64_t kNone = ~uint64_t{0};
  enum class State : uint8_t { Scheduled, Started, Completed, Failed };

  // The recorder of this process. TORCH_FR_BUFFER_SIZE says how many records it keeps (2048; 0:
  // none).
  static FlightRecorder& get();

  // An operation was asked for; returns the number of its record. Any thread may call each of
  // these.
  uint64_t begin(const Backend& backend, const Collective& call);
  void start(uint64_t id);
  void end(uint64_t id, bool ok);

  // Names a group's members, for the reader; its description where `description` is not empty.
  void describe_group(const std::string& group, const std::vector<int64_t>& ranks,
                      const std::string& description);

  // All of it as JSON text, oldest record first; without records where `only_status`, without
  // those that ended where `only_active`.
  std::string json(bool with_entries = true, bool only_active = false);
  void reset();

  // Where dumps go: TORCH_FR_DUMP_TEMP_FILE followed by the rank. Empty: nowhere.
  std::string dump_path();
  // Writes the file, in one step. `reason` goes into it.
  void dump(const std::string& reason);

 private:
  FlightRecorder();
  struct Record {
    uint64_t id = kNone;
    OpType type = OpType::Unknown;
    ReduceOp::Kind reduce = ReduceOp::Sum;
    State state = State::Scheduled;
    int root = 0, tag = 0;
    uint64_t sequence = 0, transfer = 0;
    int64_t timeout_ms = 0;
    int64_t created = 0, started = 0, ended = 0; // ns
    std::string group, backend;
    // Of each tensor: dtype, number of dimensions, sizes.
    std::vector<int64_t> inputs, outputs;
  };
  struct Group {
    std::string description;
    std::vector<int64_t> ranks;
    int64_t enqueued = -1, started = -1, completed = -1;
    uint64_t transfers = 0;
  };
  Record* find(uint64_t id);
  void append(std::string& out, const Record& record) const;

  std::mutex mutex_;
  std::vector<Record> ring_;
  uint64_t next_ = 0;
  int64_t rank_ = -1; // of this process among all; as the first operation told
  std::map<std::string, Group> groups_;
};

} // namespace c10d::engine
