// Prints what trace/program.h reads from an ELF file, and writes its bitcode modules out: show_program FILE [PREFIX].
#include "trace/program.h"
#include "util/error.h"

#include <fstream>
#include <iostream>

int main(int argc, char** argv) {
  try {
    const auto program = stem::trace::Program::open(argc > 1 ? argv[1] : "");
    std::cout << "build-id " << program.build_id() << "\n";
    for (const auto& [address, site] : program.sites())
      std::cout << fmt::format("site {:016x} {} {}:{}:{} {} [{}] {} {}\n", site.key, int(site.kind), site.file, site.line, site.column, site.function, site.text, site.path, site.layout);
    for (const auto& variable : program.variables()) {
      std::cout << fmt::format("variable {} {} {} {} {}\n", variable.display, variable.name, variable.size, variable.tls ? "tls" : variable.address ? "placed" : "unplaced", variable.layout);
      const auto* found = program.variable_at(variable.address + variable.size - 1);
      if (variable.address && found && found->name != variable.name) return 1;
      for (uint64_t at = 0; at < variable.size && at < 64; at += 4)
        std::cout << fmt::format("path {}{} {}\n", variable.display, stem::trace::field_path(variable.layout, at, variable.size), at);
    }
    int number = 0;
    for (const auto& module : program.bitcode()) {
      std::cout << "bitcode " << module.bytes.size() << "\n";
      if (argc > 2) std::ofstream(fmt::format("{}{}.bc", argv[2], number++), std::ios::binary).write(module.bytes.data(), static_cast<std::streamsize>(module.bytes.size()));
    }
  } catch (const stem::UserError& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}
