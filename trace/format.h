// The binary trace file. Reader and writer are trace/reader.* and trace/writer.*; docs/trace-format.md describes it.
//
//   FileHeader, then blocks: BlockHeader and `payload` bytes. The last block is of type kEnd; without it the file is
//   a prefix of a run (the recorder was killed, the disk was full), and as such complete up to its last whole block.
//
// A payload is kColumns columns, each: varint raw size, varint stored size, bytes (zstd if the two differ). Column kTables
// brings what the block's events refer to; kControl has how many items were predicted wholly (a varint), the control byte of the
// next one, and so on; the other columns what was not predicted (trace/model.h). Predictions run on from block to block, so a file is read from its start.
//
// Any change of these, of trace/events.def, trace/ops.def or trace/model.h needs a new kFormatVersion.
#pragma once

#include <cstdint>

namespace stem::trace {

constexpr char kFileMagic[8] = {'S', 'T', 'E', 'M', 'T', 'R', 'C', '\n'};
constexpr uint32_t kFormatVersion = 3;
constexpr uint32_t kBlockMagic = 0x4b4c4253;  // "SBLK"
constexpr uint32_t kBlockItems = 1 << 16;     // most items in a block
constexpr uint32_t kMaxTables = 128u << 20;   // most bytes of tables in a block

enum BlockType : uint32_t { kData = 1, kEnd = 2 };

enum Column { kTables, kControl, kShape, kObject, kOffset, kValue, kValue2, kExprs, kLeaf, kVariable, kConstant, kColumns };

// Records of the kTables column: the type, then varints and blobs. Strings are by number, 0 is "", others in order of kString.
enum TableRecord : uint8_t {
  kTableMeta = 1,  // blobs: recorder, program, build id, cwd, mode; seed, semantics; number of arguments, a blob each
  kTableString,    // blob
  kTableSite,      // key, file, line, column, function, text, path
  kTableThread,    // path, parent + 1, start
  kTableObject,    // kind | zeroed << 4 | initial << 5, base - last base, size, name, identity without its last number,
                   // that number - the last such number - 1, born - last born (or 0: none), site, initial bytes
  kTableVariable,  // string
  kTableInput,     // name, blob
  kTableNondet,    // what, blob
  kTableDrop,      // object: nothing in later blocks refers to it
  kTableMessage,   // blob
  kTableEnd,       // outcome, exit code, number of events
  kTableOption,    // blobs: key, value; of the run that the last kTableMeta describes
  kTableRound,     // result, number of nodes, of each: operation, width, a, b, constant (trace/rounds.h)
};

struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
};
static_assert(sizeof(FileHeader) == 16);

struct BlockHeader {
  uint32_t magic;
  uint32_t type;
  uint32_t items;
  uint32_t payload;      // bytes
  uint64_t first_event;  // index of its first event
  uint64_t checksum;     // xxh3 of the payload, seeded with that of the fields before
};
static_assert(sizeof(BlockHeader) == 32);

uint64_t block_checksum(const BlockHeader& header, const uint8_t* payload);

}  // namespace stem::trace
