// A type's layout (trace/site_record.h) as a tree, so that the offset of an access becomes a number of its field in a
// few nanoseconds; the path of each field is made once. Gives the same paths as trace::field_path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stem::collect {

class Layout {
 public:
  explicit Layout(std::string_view text);

  uint64_t size() const { return size_; }          // of one element; 0: nothing is known
  size_t fields() const { return nodes_.size(); }  // numbers are below this
  // Of an offset into one element. All offsets from begin to end, if asked for, are of the same field.
  uint32_t field(uint64_t offset, uint64_t* begin = nullptr, uint64_t* end = nullptr) const;
  bool is_leaf() const { return nodes_[0].child == 0 && nodes_[0].members.empty(); }
  const std::string& path(uint32_t field) const { return nodes_[field].path; }

 private:
  struct Member {
    uint64_t offset, size;
    bool open;  // a flexible array: takes everything behind it
    uint32_t node;
  };
  struct Node {
    std::string path;
    uint64_t stride = 0;  // an array, of element `child`
    uint32_t child = 0;
    std::vector<Member> members;
  };
  bool parse(std::string_view& rest, uint32_t node, int depth);

  uint64_t size_ = 0;
  std::vector<Node> nodes_{1};
};

}  // namespace stem::collect
