#include "tracer/launch/tracer.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "trace/plan.h"
#include "tracer/launch/launch.h"
#include "util/error.h"

namespace stem::launch {

namespace {

constexpr const char* kToolLog = "valgrind-";  // a file of each process in the run's folder

// Pin's kit: PIN_ROOT, else the one that STEM was built with.
std::string pin_root() {
  if (const char* root = std::getenv("PIN_ROOT"); root && *root) return root;
  std::string root;
  std::ifstream file(library_folder() + "/pin/root");
  std::getline(file, root);
  return root;
}

}  // namespace

std::string tracer_name(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return "the compiled recorder";
    case Tracer::Valgrind: return "Valgrind";
    case Tracer::Pin: return "Pin";
  }
  return "";
}

std::string missing_part(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return "";
    case Tracer::Valgrind: {
      const std::string folder = library_folder() + "/valgrind";
      for (const char* part : {"stem-amd64-linux", "vgpreload_stem-amd64-linux.so", "vgpreload_core-amd64-linux.so", "default.supp"})
        if (access((folder + "/" + part).c_str(), R_OK) != 0) return folder + "/" + part;
      return access((folder + "/valgrind").c_str(), X_OK) == 0 ? "" : folder + "/valgrind";
    }
    case Tracer::Pin: {
      const std::string tool = library_folder() + "/pin/stem-pin.so", root = pin_root();
      if (access(tool.c_str(), R_OK) != 0) return tool;
      return access((root + "/pin").c_str(), X_OK) == 0 ? "" : root + "/pin";
    }
  }
  return "";
}

namespace {

std::string missing_valgrind() {
  const std::string missing = missing_part(Tracer::Valgrind);
  if (missing.empty()) return "";
  return fmt::format("the {} recorder is not part of this installation ({} is missing; stem doctor says more)", tracer_name(Tracer::Valgrind), missing);
}

// Why it cannot be recorded as it is, by Valgrind or Pin, or "".
std::string why_not(Tracer tracer, const std::string& program) {
  const ElfFacts facts = elf_facts(program);
  if (is_instrumented(program)) return fmt::format("{} was compiled with stem-cc: it records itself, leave --tracer out", program);
  if (facts.script && tracer == Tracer::Valgrind) return missing_valgrind();
  if (!facts.elf) return fmt::format("{} is not an ELF program for x86-64", program);
  if (!facts.dynamic)
    return fmt::format("{} is statically linked: nothing can be put between it and its C library. Link it without -static, or compile it with stem-cc", program);
  if (tracer == Tracer::Valgrind) return missing_valgrind();
  const std::string missing = missing_part(tracer);
  if (missing.empty()) return "";
  return fmt::format("the Pin recorder is not part of this installation ({} is missing): STEM must be built with -DPIN_ROOT=FOLDER, Pin's kit (docs/pin.md); "
                       "--tracer valgrind records such programs without it", missing);
}

Tracer for_binaries() { return missing_part(Tracer::Pin).empty() ? Tracer::Pin : Tracer::Valgrind; }

}  // namespace

Tracer choose_tracer(const std::string& program, const std::string& wanted) {
  if (wanted == "compiled") return Tracer::Compiled;
  if (wanted == "valgrind" || wanted == "pin") {
    const Tracer tracer = wanted == "pin" ? Tracer::Pin : Tracer::Valgrind;
    const std::string why = why_not(tracer, program);
    if (!why.empty()) user_error("{}", why);
    return tracer;
  }
  if (program.empty() || is_instrumented(program)) return Tracer::Compiled;
  const ElfFacts facts = elf_facts(program);
  if (!facts.elf || !facts.debug) return Tracer::Compiled;
  const Tracer tracer = for_binaries();
  const std::string why = why_not(tracer, program);
  if (!why.empty()) user_error("{} has no STEM inside, and {}", program, why);
  return tracer;
}

std::vector<std::string> tracer_command(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return {};
    case Tracer::Valgrind: return {library_folder() + "/valgrind/valgrind", "--tool=stem", "-q", "--vgdb=no", "--max-threads=2000", "--fair-sched=try", "--trace-children=yes",
                                     std::string("--log-file=%q{" STEM_RECORD_ENV "}/") + kToolLog + "%p"};
    case Tracer::Pin: return {pin_root() + "/pin", "-t", library_folder() + "/pin/stem-pin.so", "--"};
  }
  return {};
}

std::vector<std::string> tracer_environment(Tracer tracer) {
  switch (tracer) {
    case Tracer::Compiled: return {};
    case Tracer::Valgrind: return {"VALGRIND_LIB=" + library_folder() + "/valgrind"};
    case Tracer::Pin: return {};
  }
  return {};
}

std::string tool_said(const std::string& folder) {
  std::string all;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (!entry.path().filename().string().starts_with(kToolLog)) continue;
    std::ifstream file(entry.path());
    for (std::string line; std::getline(file, line);)
      if (!line.starts_with("### unhandled dwarf2")) all += line + "\n";  // names are read by others, who know it (collect/dwarf.cpp)
  }
  return all;
}

std::string why_not_recorded(const std::string& program, const std::string& wanted) {
  if (wanted == "valgrind" || wanted == "pin") return why_not(wanted == "pin" ? Tracer::Pin : Tracer::Valgrind, program);
  if (is_instrumented(program)) return "";
  if (!elf_facts(program).debug) return fmt::format("{} was not compiled with stem-cc, and has no debug information", program);
  return why_not(for_binaries(), program);
}

}  // namespace stem::launch
