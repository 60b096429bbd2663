// What a compiler command line asks for, as far as stem-cc must know: does it compile, does it link, into what.
#pragma once

#include <string>
#include <vector>

namespace stem::driver {

struct CommandLine {
  bool has_inputs = false;     // any file or library
  bool compiles = false;       // some input is not an object or archive
  bool links = true;           // no -c, -S, -E, -M, ...
  bool preprocesses_only = false;
  bool shared = false;         // -shared
  bool relocatable = false;    // -r
  bool is_static = false;      // -static, -static-pie
  bool m32 = false;
  bool thread_sanitizer = false;
  bool debug_info = false;     // full debug information asked for
  bool frame_pointer_given = false;
  bool lto = false;
  bool linker_given = false;   // -fuse-ld=, --ld-path=
  bool bare = false;           // -nostdlib and the like
  bool header = false;         // makes a precompiled header
};

// Looks into response files (@file) as well.
CommandLine read_command_line(const std::vector<std::string>& arguments);

}  // namespace stem::driver
