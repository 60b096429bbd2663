// stem-cc and stem-c++: clang, with the recorder compiled in. The program works out what the command line asks for, adds what
// recording needs, and becomes clang. Everything else is clang's: diagnostics, exit code, output names.
//
// What it adds:   compiling: full debug information, frame pointers, the pass, <stem.h>'s folder, __STEM__
//                 linking an executable: the runtime, whole, its interposed functions visible to shared libraries; a build id;
//                 where the collector is, so that the program can record without the launcher
//                 linking a shared library: permission to leave the runtime's functions to the executable
// The parts are found relative to this program, so a build tree, an installation and a moved installation all work.
#include "tracer/driver/command_line.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

using stem::driver::CommandLine;

[[noreturn]] void refuse(const std::string& name, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", name.c_str(), why.c_str());
  std::exit(2);
}

std::string compiler(bool cxx) {
  if (const char* given = std::getenv(cxx ? "STEM_CLANGXX" : "STEM_CLANG"); given && *given) return given;
  return cxx ? STEM_CLANGXX : STEM_CLANG;
}

void refuse_what_cannot_work(const std::string& name, const CommandLine& line) {
  if (line.is_static && line.links && !line.shared)
    refuse(name, "-static cannot be recorded: the runtime has to stand between the program and its C library. Link dynamically.");
  if (line.m32) refuse(name, "only 64-bit programs can be recorded; leave out -m32");
  if (line.thread_sanitizer) refuse(name, "-fsanitize=thread and recording both take over the threads; use one of them");
}

void add_compile_options(std::vector<std::string>& out, const CommandLine& line, const fs::path& lib, bool cxx) {
  out.push_back("-D__STEM__=1");
  out.push_back("-isystem");
  out.push_back((lib / "include").string());
  if (!line.compiles || line.preprocesses_only) return;
  if (!line.debug_info) out.push_back("-g");
  if (cxx) out.push_back("-fstandalone-debug");
  if (!line.frame_pointer_given) out.push_back("-fno-omit-frame-pointer");
  if (!line.header) out.push_back("-fpass-plugin=" + (lib / "stem-pass.so").string());
}

// An assembler file that clang and its children open by our descriptor: nothing on the disk that somebody would have to remove.
void add_library_folder(std::vector<std::string>& out, const fs::path& lib) {
  std::string text = ".section .rodata.stem_libdir,\"a\",@progbits\n.globl stem_libdir\nstem_libdir:\n";
  for (unsigned char c : lib.string()) text += ".byte " + std::to_string(c) + "\n";
  text += ".byte 0\n.section .note.GNU-stack,\"\",@progbits\n";
  const int fd = memfd_create("stem-libdir", 0);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return;
  out.insert(out.end(), {"-x", "assembler", "/proc/self/fd/" + std::to_string(fd), "-x", "none"});
}

void add_link_options(std::vector<std::string>& out, const CommandLine& line, const fs::path& lib) {
  if (line.relocatable) return;
  if (line.lto && !line.linker_given) out.push_back("-fuse-ld=lld");
  out.push_back("-Wl,--build-id");
  if (line.shared) {
    out.push_back("-Wl,-z,undefs");
    return;
  }
  add_library_folder(out, lib);
  out.push_back("-Wl,--whole-archive");
  out.push_back((lib / "libstem_rt.a").string());
  out.push_back("-Wl,--no-whole-archive");
  const fs::path exports = lib / "stem-rt.exports";
  out.push_back(fs::exists(exports) ? "-Wl,--dynamic-list=" + exports.string() : "-rdynamic");
  out.push_back("-pthread");
  out.push_back("-ldl");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = fs::path(argc > 0 ? argv[0] : "stem-cc").filename().string();
  const bool cxx = name.ends_with("++");
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path lib = self.parent_path().parent_path() / STEM_LIBDIR;
  const std::vector<std::string> given(argv + 1, argv + argc);
  const CommandLine line = stem::driver::read_command_line(given);

  std::vector<std::string> out{compiler(cxx)};
  out.insert(out.end(), given.begin(), given.end());
  if (line.has_inputs) {
    refuse_what_cannot_work(name, line);
    const bool needs_pass = line.compiles && !line.preprocesses_only;
    const bool needs_runtime = line.links && !line.shared && !line.relocatable;
    for (const char* part : {needs_pass ? "stem-pass.so" : nullptr, needs_runtime ? "libstem_rt.a" : nullptr})
      if (part && !fs::exists(lib / part)) refuse(name, (lib / part).string() + " is missing: this installation of STEM is incomplete, build or install it again");
    // Configure scripts count warnings: ours must not add any.
    out.push_back("--start-no-unused-arguments");
    add_compile_options(out, line, lib, cxx);
    if (line.links) add_link_options(out, line, lib);
    out.push_back("--end-no-unused-arguments");
  }

  std::vector<char*> raw;
  for (std::string& argument : out) raw.push_back(argument.data());
  raw.push_back(nullptr);
  execvp(raw[0], raw.data());
  refuse(name, "cannot run " + out[0] + ": " + std::strerror(errno) + "; install clang-19, or name it in " + (cxx ? "STEM_CLANGXX" : "STEM_CLANG"));
}
