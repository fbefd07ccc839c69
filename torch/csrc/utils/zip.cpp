// The part of the zip format that files of tensors need, with 64-bit sizes.
#include <torch/csrc/utils/zip.h>

#include <c10/util/Exception.h>
#include <torch/csrc/utils/inflate.h>

#include <array>
#include <cstring>

namespace torch::serialize {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint16_t kPaddingField = 0x4246; // the extra field that aligns data
constexpr size_t kAlignment = 64;

uint32_t crc_of(std::string_view data) {
  static const auto table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
      out[i] = c;
    }
    return out;
  }();
  uint32_t crc = ~0u;
  for (const char byte : data) crc = table[(crc ^ uint8_t(byte)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

template <class T> void put(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(char(uint64_t(value) >> (8 * i)));
}
template <class T> T get_number(std::string_view bytes, size_t at) {
  TORCH_CHECK(at + sizeof(T) <= bytes.size(), "the file is cut short");
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= uint64_t(uint8_t(bytes[at + i])) << (8 * i);
  return T(value);
}

// What local and central headers have in common, from the flags to the sizes.
void put_common(std::string& out, uint32_t crc, uint64_t size) {
  put<uint16_t>(out, 0x0800); // names are UTF-8
  put<uint16_t>(out, 0);      // stored
  put<uint32_t>(out, 0);      // no time: equal contents give equal files
  put<uint32_t>(out, crc);
  const uint32_t small = size >= 0xffffffff ? 0xffffffff : uint32_t(size);
  put<uint32_t>(out, small);
  put<uint32_t>(out, small);
}

} // namespace

void ZipWriter::add(const std::string& name, std::string_view data) {
  const uint64_t offset = bytes_.size();
  const uint32_t crc = crc_of(data);
  std::string extra;
  if (data.size() >= 0xffffffff) {
    put<uint16_t>(extra, 1);
    put<uint16_t>(extra, 16);
    put<uint64_t>(extra, data.size());
    put<uint64_t>(extra, data.size());
  }
  const size_t begin = offset + 30 + name.size() + extra.size() + 4;
  const size_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  put<uint16_t>(extra, kPaddingField);
  put<uint16_t>(extra, uint16_t(padding));
  extra.append(padding, 'Z');
  put<uint32_t>(bytes_, kLocal);
  put<uint16_t>(bytes_, 45);
  put_common(bytes_, crc, data.size());
  put<uint16_t>(bytes_, uint16_t(name.size()));
  put<uint16_t>(bytes_, uint16_t(extra.size()));
  bytes_ += name;
  bytes_ += extra;
  bytes_.append(data.data(), data.size());
  records_.push_back({name, crc, data.size(), offset});
}

std::string ZipWriter::finish() {
  const uint64_t start = bytes_.size();
  for (const Record& r : records_) {
    std::string extra;
    put<uint16_t>(extra, 1);
    put<uint16_t>(extra, 24);
    put<uint64_t>(extra, r.size);
    put<uint64_t>(extra, r.size);
    put<uint64_t>(extra, r.offset);
    put<uint32_t>(bytes_, kCentral);
    put<uint16_t>(bytes_, 45);
    put<uint16_t>(bytes_, 45);
    put_common(bytes_, r.crc, 0xffffffff);
    put<uint16_t>(bytes_, uint16_t(r.name.size()));
    put<uint16_t>(bytes_, uint16_t(extra.size()));
    put<uint16_t>(bytes_, 0);
    put<uint16_t>(bytes_, 0);
    put<uint16_t>(bytes_, 0);
    put<uint32_t>(bytes_, 0);
    put<uint32_t>(bytes_, 0xffffffff);
    bytes_ += r.name;
    bytes_ += extra;
  }
  const uint64_t end = bytes_.size();
  put<uint32_t>(bytes_, kEnd64);
  put<uint64_t>(bytes_, 44);
  put<uint16_t>(bytes_, 45);
  put<uint16_t>(bytes_, 45);
  put<uint32_t>(bytes_, 0);
  put<uint32_t>(bytes_, 0);
  put<uint64_t>(bytes_, records_.size());
  put<uint64_t>(bytes_, records_.size());
  put<uint64_t>(bytes_, end - start);
  put<uint64_t>(bytes_, start);
  put<uint32_t>(bytes_, kLocator64);
  put<uint32_t>(bytes_, 0);
  put<uint64_t>(bytes_, end);
  put<uint32_t>(bytes_, 1);
  put<uint32_t>(bytes_, kEnd);
  for (int i = 0; i < 2; ++i) put<uint16_t>(bytes_, 0);
  for (int i = 0; i < 2; ++i) put<uint16_t>(bytes_, 0xffff);
  for (int i = 0; i < 2; ++i) put<uint32_t>(bytes_, 0xffffffff);
  put<uint16_t>(bytes_, 0);
  records_.clear();
  return std::move(bytes_);
}

ZipReader::ZipReader(std::string_view file) {
  constexpr size_t kEndSize = 22;
  size_t end = std::string_view::npos;
  for (size_t back = kEndSize; back <= file.size() && back < kEndSize + 65536; ++back)
    if (get_number<uint32_t>(file, file.size() - back) == kEnd) {
      end = file.size() - back;
      break;
    }
  TORCH_CHECK(end != std::string_view::npos, "not a zip file: the archive cannot be read");
  uint64_t count = get_number<uint16_t>(file, end + 10);
  uint64_t at = get_number<uint32_t>(file, end + 16);
  if (end >= 20 && get_number<uint32_t>(file, end - 20) == kLocator64) {
    const uint64_t end64 = get_number<uint64_t>(file, end - 12);
    TORCH_CHECK(get_number<uint32_t>(file, end64) == kEnd64, "the zip file is damaged");
    count = get_number<uint64_t>(file, end64 + 32);
    at = get_number<uint64_t>(file, end64 + 48);
  }
  for (uint64_t i = 0; i < count; ++i) {
    TORCH_CHECK(get_number<uint32_t>(file, at) == kCentral, "the zip file is damaged");
    constexpr uint16_t kStored = 0, kDeflated = 8;
    const auto method = get_number<uint16_t>(file, at + 10);
    TORCH_CHECK(method == kStored || method == kDeflated,
                "a record of the archive is packed in an unknown way");
    uint64_t packed = get_number<uint32_t>(file, at + 20);
    uint64_t size = get_number<uint32_t>(file, at + 24);
    uint64_t offset = get_number<uint32_t>(file, at + 42);
    const uint64_t name_size = get_number<uint16_t>(file, at + 28);
    const uint64_t extra_size = get_number<uint16_t>(file, at + 30);
    const uint64_t comment_size = get_number<uint16_t>(file, at + 32);
    TORCH_CHECK(at + 46 + name_size + extra_size <= file.size(), "the file is cut short");
    const std::string name(file.substr(at + 46, name_size));
    // 64-bit numbers stand in an extra field, in this order, where the short ones are full.
    for (uint64_t e = at + 46 + name_size; e + 4 <= at + 46 + name_size + extra_size;) {
      const uint16_t id = get_number<uint16_t>(file, e), length = get_number<uint16_t>(file, e + 2);
      uint64_t field = e + 4;
      if (id == 1) {
        if (size == 0xffffffff) size = get_number<uint64_t>(file, field), field += 8;
        if (packed == 0xffffffff) packed = get_number<uint64_t>(file, field), field += 8;
        if (offset == 0xffffffff) offset = get_number<uint64_t>(file, field);
      }
      e += 4 + length;
    }
    TORCH_CHECK(get_number<uint32_t>(file, offset) == kLocal, "the zip file is damaged");
    const uint64_t data = offset + 30 + get_number<uint16_t>(file, offset + 26) +
                          get_number<uint16_t>(file, offset + 28);
    if (method == kStored) packed = size;
    TORCH_CHECK(data <= file.size() && packed <= file.size() - data, "the file is cut short");
    const size_t slash = name.find('/');
    records_[slash == std::string::npos ? name : name.substr(slash + 1)] = {
        file.substr(data, packed), size, method == kDeflated};
    at += 46 + name_size + extra_size + comment_size;
  }
}

std::string_view ZipReader::get(const std::string& name) const {
  const auto found = records_.find(name);
  TORCH_CHECK(found != records_.end(), "the archive has no record '", name, "'");
  const Record& record = found->second;
  if (!record.packed) return record.data;
  const auto [text, added] = unpacked_.try_emplace(name);
  if (added) text->second = inflate(record.data, record.size);
  return text->second;
}

std::vector<std::string> ZipReader::names() const {
  std::vector<std::string> out;
  for (const auto& [name, data] : records_) out.push_back(name);
  return out;
}

} // namespace torch::serialize
