// make_corpus DIR: valid traces for the fuzzers to start from: DIR/files (binary) and DIR/texts.
#include <filesystem>
#include <fstream>

#include "../trace/random_trace.h"
#include "trace/text.h"
#include "trace/writer.h"

using namespace stem::trace;
namespace fs = std::filesystem;

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
}
