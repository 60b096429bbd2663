// Module assembly into a section that is not loaded: survives ar, both linkers, garbage collection, strip and LTO, where a global
// variable in a section would be loaded at run time, and -fembed-bitcode would hold the instrumented code.
#include "tracer/pass/bitcode.h"

#include "trace/site_record.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Support/Compression.h>
#include <llvm/Support/Format.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>

using namespace llvm;

namespace stem::pass {

static void write_bytes(raw_ostream& out, ArrayRef<uint8_t> bytes) {
  constexpr size_t kLine = 512;
  static const char* const digits = "01234567";
  std::string line;
  for (size_t at = 0; at < bytes.size(); at += kLine) {
    line = ".ascii \"";
    for (const uint8_t byte : bytes.slice(at, std::min(kLine, bytes.size() - at))) {
      line += '\\';
      line += digits[byte >> 6];
      line += digits[byte >> 3 & 7];
      line += digits[byte & 7];
    }
    out << line << "\"\n";
  }
}

void embed_bitcode(Module& module) {
  SmallVector<char, 0> raw;
  raw_svector_ostream stream(raw);
  WriteBitcodeToFile(module, stream);
  const ArrayRef<uint8_t> plain(reinterpret_cast<const uint8_t*>(raw.data()), raw.size());
  SmallVector<uint8_t, 0> packed;
  if (compression::zstd::isAvailable()) compression::zstd::compress(plain, packed, 3);
  const bool use_packed = !packed.empty() && packed.size() < plain.size();
  const ArrayRef<uint8_t> bytes = use_packed ? ArrayRef<uint8_t>(packed) : plain;

  std::string text;
  raw_string_ostream out(text);
  out << ".pushsection " STEM_BITCODE_SECTION ",\"\",@progbits\n.balign 8\n";
  out << ".quad " << STEM_BITCODE_MAGIC << ", " << bytes.size() << ", " << plain.size() << ", " << format_hex(xxh3_64bits(plain), 18) << "\n";
  write_bytes(out, bytes);
  out << ".balign 8\n.popsection\n";
  module.appendModuleInlineAsm(out.str());
}

}  // namespace stem::pass
