// A column of a block: bytes written one after the other, varints mostly. The reader's side checks every bound: a file may
// be damaged or hostile, and says so by `bad()` once instead of at every call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stem::trace {

constexpr uint64_t zigzag(uint64_t v) { return (v << 1) ^ (0 - (v >> 63)); }
constexpr uint64_t unzigzag(uint64_t v) { return (v >> 1) ^ (0 - (v & 1)); }

class ColumnOut {
 public:
  void byte(uint8_t b) { bytes_.push_back(b); }
  void varint(uint64_t v) {
    uint8_t buffer[10];
    unsigned n = 0;
    for (; v >= 0x80; v >>= 7) buffer[n++] = static_cast<uint8_t>(v | 0x80);
    buffer[n++] = static_cast<uint8_t>(v);
    bytes_.insert(bytes_.end(), buffer, buffer + n);
  }
  void signed_varint(uint64_t v) { varint(zigzag(v)); }
  void blob(std::string_view text) {
    varint(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  void append(const uint8_t* data, size_t size) { bytes_.insert(bytes_.end(), data, data + size); }
  void overwrite(const uint8_t* data, size_t size) { std::copy(data, data + size, bytes_.begin()); }
  const std::vector<uint8_t>& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  void clear() { bytes_.clear(); }

 private:
  std::vector<uint8_t> bytes_;
};

class ColumnIn {
 public:
  void reset(std::vector<uint8_t> bytes) {
    bytes_ = std::move(bytes);
    at_ = bytes_.data();
    end_ = at_ + bytes_.size();
    bad_ = false;
  }
  uint8_t byte() {
    if (at_ == end_) return bad_ = true, 0;
    return *at_++;
  }
  uint64_t varint() {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      uint8_t b = *at_++;
      v |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (b < 0x80) return v;
    }
    bad_ = true;
    return 0;
  }
  uint64_t signed_varint() { return unzigzag(varint()); }
  std::string blob() {
    return take(varint());
  }
  std::string take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) return bad_ = true, std::string();
    std::string out(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return out;
  }
  // A count of things that take at least one byte each: larger than what is left is a lie.
  uint64_t count() {
    uint64_t n = varint();
    if (n > static_cast<uint64_t>(end_ - at_)) return bad_ = true, 0;
    return n;
  }
  void fail() { bad_ = true; }
  bool bad() const { return bad_; }
  bool at_end() const { return at_ == end_; }

 private:
  std::vector<uint8_t> bytes_;
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  bool bad_ = false;
};

}  // namespace stem::trace
