#include "tracer/launch/tracer.h"

#include <unistd.h>

#include "tracer/launch/launch.h"
#include "util/error.h"

namespace stem::launch {

std::string missing_part(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return "";
    case Tracer::Valgrind: {
      const std::string folder = library_folder() + "/valgrind";
      for (const char* part : {"stem-amd64-linux", "vgpreload_stem-amd64-linux.so", "vgpreload_core-amd64-linux.so", "default.supp"})
        if (access((folder + "/" + part).c_str(), R_OK) != 0) return folder + "/" + part;
      return access((folder + "/valgrind").c_str(), X_OK) == 0 ? "" : folder + "/valgrind";
    }
  }
  return "";
}

namespace {

// Why Valgrind cannot record it, or "".
std::string why_not_valgrind(const std::string& program) {
  const ElfFacts facts = elf_facts(program);
  if (!facts.elf) return fmt::format("{} is not an ELF program for x86-64", program);
  if (!facts.dynamic)
    return fmt::format("{} is statically linked: nothing can be put between it and its C library. Link it without -static, or compile it with stem-cc", program);
  const std::string missing = missing_part(Tracer::Valgrind);
  if (!missing.empty()) return fmt::format("the Valgrind recorder is not part of this installation ({} is missing; stem doctor says more)", missing);
  return "";
}

}  // namespace

Tracer choose_tracer(const std::string& program, const std::string& wanted) {
  if (wanted == "compiled") return Tracer::Compiled;
  if (wanted == "valgrind") {
    const std::string why = why_not_valgrind(program);
    if (!why.empty()) user_error("{}", why);
    return Tracer::Valgrind;
  }
  if (program.empty() || is_instrumented(program)) return Tracer::Compiled;
  const ElfFacts facts = elf_facts(program);
  if (!facts.elf || !facts.debug) return Tracer::Compiled;
  const std::string why = why_not_valgrind(program);
  if (!why.empty()) user_error("{} has no STEM inside, and {}", program, why);
  return Tracer::Valgrind;
}

std::vector<std::string> tracer_command(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return {};
    case Tracer::Valgrind: return {library_folder() + "/valgrind/valgrind", "--tool=stem", "-q", "--vgdb=no", "--max-threads=2000"};
  }
  return {};
}

std::vector<std::string> tracer_environment(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return {};
    case Tracer::Valgrind: return {"VALGRIND_LIB=" + library_folder() + "/valgrind"};
  }
  return {};
}

std::string why_not_recorded(const std::string& program) {
  if (is_instrumented(program)) return "";
  if (!elf_facts(program).debug) return fmt::format("{} was not compiled with stem-cc, and has no debug information", program);
  return why_not_valgrind(program);
}

}  // namespace stem::launch
