// make_corpus DIR: valid traces for the fuzzers to start from: DIR/files (binary) and DIR/texts.
#include <filesystem>
#include <fstream>

#include "../trace/random_trace.h"
#include "trace/text.h"
#include "trace/writer.h"

using namespace stem::trace;
namespace fs = std::filesystem;

// A loop of expressions, which no trace in memory has as one item.
static void save_loops(const std::string& path) {
  Writer writer(path, Meta{}, false);
  writer.add_site({1, "a.c", 1, 1, "f", "a", ""});
  writer.add_thread({"main", kNone, "main"});
  writer.add_round(Round({{Op::LShr, 64, 1, 0, 7}, {Op::Xor, 64, 1, 2, 0}, {Op::Mul, 64, 3, 0, 5}}, 2));
  writer.add_round(Round({{Op::UDiv, 32, 0, 1, 77}, {Op::Shl, 32, 1, 2, 0}}, 1));
  for (uint32_t i = 0; i < 6; ++i) {
    Event read;
    read.kind = Kind::Read;
    read.thread = 0;
    read.site = 1;
    read.size = i % 2 ? 4 : 8;
    read.addr = 0x1000 + 8 * i;
    read.value = 99 + i;
    read.leaf = writer.next_expr();
    const ExprId input = read.leaf;
    writer.add_event(read);
    writer.add_rounds(i % 2, input, 1 + i);
  }
  writer.finish(Outcome::Exited, 0);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  fs::path dir = argv[1];
  fs::create_directories(dir / "files");
  fs::create_directories(dir / "texts");
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Trace trace = random_trace(seed, 10 + seed * 6);
    save(trace, dir / "files" / ("plain" + std::to_string(seed)), false);
    if (seed % 4 == 0) save(trace, dir / "files" / ("packed" + std::to_string(seed)), true);
    std::ofstream(dir / "texts" / std::to_string(seed)) << print(trace);
  }
  save_loops(dir / "files" / "loops");
}
