// An array of zero bytes whose pages cost nothing until they are touched: for tables as long as a trace, of which an analysis of
// windows touches little. (A std::vector writes all of its elements.)
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace stem {

template <typename T>
class LazyArray {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit LazyArray(size_t size) : data_(static_cast<T*>(std::calloc(size ? size : 1, sizeof(T)))) {
    if (!data_) throw std::bad_alloc();
  }
  T& operator[](size_t i) { return data_.get()[i]; }
  const T& operator[](size_t i) const { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace stem
