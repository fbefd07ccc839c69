// Unpacking: bits are read from the low end of each byte, codes bit by bit. Records are source text
// of some kilobytes, so that tables for several bits at once would cost more than they save.
#include <torch/csrc/utils/inflate.h>

#include <c10/util/Exception.h>

#include <array>
#include <cstdint>
#include <vector>

namespace torch::serialize {
namespace {

constexpr int kLongest = 15;        // bits of a code
constexpr size_t kExpansion = 1032; // no packed byte can stand for more

[[noreturn]] void damaged() { throw c10::Error("the packed data of the archive is damaged"); }

class Bits {
 public:
  explicit Bits(std::string_view data) : data_(data) {}
  uint32_t take(int count) {
    uint32_t out = 0;
    for (int i = 0; i < count; ++i) out |= uint32_t(bit()) << i;
    return out;
  }
  int bit() {
    if (at_ / 8 >= data_.size()) damaged();
    const int out = uint8_t(data_[at_ / 8]) >> (at_ % 8) & 1;
    ++at_;
    return out;
  }
  std::string_view bytes(size_t count) {
    at_ = (at_ + 7) / 8 * 8;
    if (count > data_.size() - at_ / 8) damaged();
    const std::string_view out = data_.substr(at_ / 8, count);
    at_ += count * 8;
    return out;
  }

 private:
  std::string_view data_;
  size_t at_ = 0;
};

// Codes in order of their length, and of their symbol among those of one length: a code is known by
// how many codes of its length come before it.
class Code {
 public:
  explicit Code(const std::vector<uint8_t>& lengths) {
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    int room = 1;
    for (int length = 1; length <= kLongest; ++length) {
      room = room * 2 - counts_[size_t(length)];
      if (room < 0) damaged();
      for (size_t symbol = 0; symbol < lengths.size(); ++symbol)
        if (lengths[symbol] == length) symbols_.push_back(uint16_t(symbol));
    }
  }
  int read(Bits& bits) const {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kLongest; ++length) {
      code |= bits.bit();
      const int count = counts_[size_t(length)];
      if (code - first < count) return symbols_[size_t(index + code - first)];
      index += count;
      first = (first + count) * 2;
      code *= 2;
    }
    damaged();
  }

 private:
  std::array<int, kLongest + 1> counts_{};
  std::vector<uint16_t> symbols_;
};

constexpr uint16_t kLengthBase[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr uint8_t kLengthBits[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                   2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};

class Unpacker {
 public:
  Unpacker(std::string_view packed, size_t size) : bits_(packed), size_(size) {
    out_.reserve(size);
  }
  std::string run() {
    for (bool last = false; !last;) {
      last = bits_.bit() != 0;
      switch (bits_.take(2)) {
      case 0:
        stored();
        break;
      case 1:
        fixed();
        break;
      case 2:
        described();
        break;
      default:
        damaged();
      }
    }
    if (out_.size() != size_) damaged();
    return std::move(out_);
  }

 private:
  void need(size_t count) const {
    if (count > size_ - out_.size()) damaged();
  }
  void stored() {
    const std::string_view head = bits_.bytes(4);
    const auto number = [&](size_t i) {
      return size_t(uint8_t(head[i])) | size_t(uint8_t(head[i + 1])) << 8;
    };
    if (number(0) != (number(2) ^ 0xffff)) damaged();
    need(number(0));
    out_ += bits_.bytes(number(0));
  }
  void fixed() {
    std::vector<uint8_t> lengths(288, 8);
    for (size_t i = 144; i < 256; ++i) lengths[i] = 9;
    for (size_t i = 256; i < 280; ++i) lengths[i] = 7;
    symbols(Code(lengths), Code(std::vector<uint8_t>(30, 5)));
  }
  void described() {
    const size_t literals = bits_.take(5) + 257, distances = bits_.take(5) + 1;
    const size_t count = bits_.take(4) + 4;
    if (literals > 286 || distances > 30) damaged();
    constexpr uint8_t kOrder[] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    std::vector<uint8_t> own(19, 0);
    for (size_t i = 0; i < count; ++i) own[kOrder[i]] = uint8_t(bits_.take(3));
    const Code code(own);
    std::vector<uint8_t> lengths;
    while (lengths.size() < literals + distances) {
      const int symbol = code.read(bits_);
      if (symbol < 16) {
        lengths.push_back(uint8_t(symbol));
        continue;
      }
      if (symbol == 16 && lengths.empty()) damaged();
      const uint8_t value = symbol == 16 ? lengths.back() : 0;
      const size_t times = symbol == 16   ? 3 + bits_.take(2)
                           : symbol == 17 ? 3 + bits_.take(3)
                                          : 11 + bits_.take(7);
      lengths.insert(lengths.end(), times, value);
    }
    if (lengths.size() != literals + distances) damaged();
    const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(literals);
    symbols(Code(std::vector<uint8_t>(lengths.begin(), middle)),
            Code(std::vector<uint8_t>(middle, lengths.end())));
  }
  void symbols(const Code& literals, const Code& distances) {
    constexpr int kEnd = 256;
    for (int symbol; (symbol = literals.read(bits_)) != kEnd;) {
      if (symbol < kEnd) {
        need(1);
        out_ += char(symbol);
        continue;
      }
      const auto which = size_t(symbol - kEnd - 1);
      if (which >= std::size(kLengthBase)) damaged();
      const size_t length = kLengthBase[which] + bits_.take(kLengthBits[which]);
      const int far = distances.read(bits_);
      if (far >= 30) damaged();
      // Distances grow in pairs: two codes for each number of extra bits.
      const int extra = far < 4 ? 0 : far / 2 - 1;
      const size_t base = far < 4 ? size_t(far + 1) : (size_t(2 + far % 2) << extra) + 1;
      const size_t distance = base + bits_.take(extra);
      if (distance > out_.size()) damaged();
      need(length);
      for (size_t i = 0; i < length; ++i) out_ += out_[out_.size() - distance];
    }
  }

  Bits bits_;
  std::string out_;
  size_t size_;
};

} // namespace

std::string inflate(std::string_view packed, size_t size) {
  if (size / kExpansion > packed.size()) damaged();
  return Unpacker(packed, size).run();
}

} // namespace torch::serialize
