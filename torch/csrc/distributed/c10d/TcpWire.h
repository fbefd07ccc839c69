// What the client and the server of TCPStore say to each other. A connection opens with Validate
// and a magic number. Then requests: one byte of command and its arguments; numbers are 64 bits of
// little endian, texts a length and bytes, lists a count and texts. Each request but Validate gets
// one reply, in order: a status byte and what the command says. Ping alone is answered by its
// number without a status, which other clients of this port rely on.
#pragma once
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace c10d::engine::wire {

constexpr uint32_t kMagic = 0x3C85F7CE;
enum class Command : uint8_t {
  Validate = 0,
  Set = 1,        // key, value
  CompareSet = 2, // key, expected, desired -> value
  Get = 3,        // timeout, key -> value
  Add = 4,        // key, amount -> sum
  Check = 5,      // keys -> 0 or 1
  Wait = 6,       // timeout, keys
  NumKeys = 7,    // -> count
  DeleteKey = 8,  // key -> 0 or 1
  Append = 9,     // key, value
  MultiGet = 10,  // timeout, keys -> values
  MultiSet = 11,  // keys, values
  Ping = 13,      // 32 bits -> the same 32 bits
  QueuePush = 14, // key, value
  QueuePop = 15,  // timeout (none: 0 ms), key -> value
  QueueLen = 16,  // key -> count
  ListKeys = 17,  // -> keys
};
enum class Status : uint8_t { Ok = 0, TimedOut = 1, Error = 2 /* -> message */ };

// Larger requests are refused: nobody needs them to find each other, and a length is the first
// thing that hostile bytes get wrong.
constexpr uint64_t kMaxKey = 1 << 16, kMaxValue = 1 << 28, kMaxCount = 1 << 17;
constexpr uint64_t kMaxRequest = 1 << 29;

inline void put_number(std::string& out, int64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void put_text(std::string& out, std::string_view text) {
  put_number(out, static_cast<int64_t>(text.size()));
  out.append(text);
}
inline void put_texts(std::string& out, const std::vector<std::string>& texts) {
  put_number(out, static_cast<int64_t>(texts.size()));
  for (const auto& text : texts) put_text(out, text);
}

// Reads the arguments of a request that may not be whole yet. After `short_` or `bad_` is set
// everything read is empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool is_short() const { return short_; }
  bool is_bad() const { return bad_; }
  bool is_whole() const { return !short_ && !bad_; }
  size_t position() const { return at_; }

  std::string_view take(uint64_t size) {
    if (!is_whole()) return {};
    if (bytes_.size() - at_ < size) {
      short_ = true;
      return {};
    }
    const auto part = bytes_.substr(at_, size);
    at_ += size;
    return part;
  }
  int64_t number() {
    int64_t value = 0;
    const auto part = take(sizeof value);
    if (!part.empty()) std::memcpy(&value, part.data(), sizeof value);
    return value;
  }
  std::string_view text(uint64_t most) {
    const auto size = static_cast<uint64_t>(number());
    if (size > most) bad_ = true;
    return take(size);
  }
  std::vector<std::string_view> texts(uint64_t most) {
    const auto count = static_cast<uint64_t>(number());
    if (count > kMaxCount) bad_ = true;
    std::vector<std::string_view> found;
    for (uint64_t i = 0; i < count && is_whole(); ++i) found.push_back(text(most));
    return found;
  }

 private:
  const std::string_view bytes_;
  size_t at_ = 0;
  bool short_ = false, bad_ = false;
};

} // namespace c10d::engine::wire
