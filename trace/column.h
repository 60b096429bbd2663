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
  void byte(uint8_t b) {
    room(1);
    bytes_[size_++] = b;
  }
  void varint(uint64_t v) {
    room(10);
    uint8_t* at = bytes_.data() + size_;
    for (; v >= 0x80; v >>= 7) *at++ = static_cast<uint8_t>(v | 0x80);
    *at++ = static_cast<uint8_t>(v);
    size_ = static_cast<size_t>(at - bytes_.data());
  }
  void signed_varint(uint64_t v) { varint(zigzag(v)); }
  void blob(std::string_view text) {
    varint(text.size());
    append(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  }
  void append(const uint8_t* data, size_t size) {
    room(size);
    std::copy(data, data + size, bytes_.begin() + static_cast<ptrdiff_t>(size_));
    size_ += size;
  }
  void overwrite(const uint8_t* data, size_t size) { std::copy(data, data + size, bytes_.begin()); }
  const uint8_t* data() const { return bytes_.data(); }
  size_t size() const { return size_; }
  void clear() { size_ = 0; }

 private:
  void room(size_t more) {
    if (bytes_.size() - size_ < more) [[unlikely]] bytes_.resize(std::max(bytes_.size() * 2, size_ + more + 64));
  }
  std::vector<uint8_t> bytes_;  // of which size_ are used
  size_t size_ = 0;
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
