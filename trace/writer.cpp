#include "trace/writer.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "trace/column.h"
#include "trace/format.h"
#include "trace/columns.h"
#include "util/error.h"

namespace stem::trace {

uint64_t block_checksum(const BlockHeader& header, const uint8_t* payload) {
  uint64_t head = XXH3_64bits(&header, offsetof(BlockHeader, checksum));
  return XXH3_64bits_withSeed(payload, header.payload, head);
}

struct Writer::Encoder {
  ColumnOut columns[kColumns];
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  std::vector<uint8_t> compressed;
  ColumnOut payload;
  ~Encoder() { ZSTD_freeCCtx(zstd); }
};

Writer::Writer(const std::string& path, const Meta& meta, bool compress)
    : path_(path), compress_(compress), encoder_(std::make_unique<Encoder>()) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) user_error("{}: cannot write the trace: {}", path, std::strerror(errno));
  ZSTD_CCtx_setParameter(encoder_->zstd, ZSTD_c_compressionLevel, 1);
  model_.inputs = &inputs_;
  strings_.emplace("", 0);
  FileHeader header{};
  std::memcpy(header.magic, kFileMagic, sizeof header.magic);
  header.version = kFormatVersion;
  set_meta(meta);
  write_all(&header, sizeof header);
}

void Writer::set_meta(const Meta& meta) {
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableMeta);
  for (const auto* text : {&meta.recorder, &meta.program, &meta.build_id, &meta.cwd, &meta.mode}) tables.blob(*text);
  tables.varint(meta.seed);
  tables.byte(meta.semantics);
  tables.varint(meta.argv.size());
  for (const auto& arg : meta.argv) tables.blob(arg);
  for (const auto& [key, value] : meta.options) {
    tables.byte(kTableOption);
    tables.blob(key);
    tables.blob(value);
  }
}

void Writer::add_message(const std::string& message) {
  encoder_->columns[kTables].byte(kTableMessage);
  encoder_->columns[kTables].blob(message);
}

Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
}

uint32_t Writer::string(const std::string& text) {
  auto [found, added] = strings_.try_emplace(text, static_cast<uint32_t>(strings_.size()));
  if (added) {
    auto& tables = encoder_->columns[kTables];
    tables.byte(kTableString);
    tables.blob(text);
  }
  return found->second;
}

SiteId Writer::add_site(const Site& site) {
  uint32_t file = string(site.file), function = string(site.function), text = string(site.text),
           path = string(site.path);
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableSite);
  for (uint64_t v : {site.key, uint64_t{file}, uint64_t{site.line}, uint64_t{site.column}, uint64_t{function},
                     uint64_t{text}, uint64_t{path}}) {
    tables.varint(v);
  }
  return sites_++;
}

ThreadId Writer::add_thread(const Thread& thread) {
  uint32_t path = string(thread.path), start = string(thread.start);
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableThread);
  tables.varint(path);
  tables.varint(static_cast<uint32_t>(thread.parent + 1));
  tables.varint(start);
  return threads_++;
}

uint32_t Writer::add_object(const Object& object) {
  size_t digits = 0;
  const std::string& identity = object.identity;
  while (digits < 18 && digits < identity.size() &&
         isdigit(static_cast<unsigned char>(identity[identity.size() - 1 - digits])))
    ++digits;
  // A number with leading zeros would not come back as it was.
  while (digits > 1 && identity[identity.size() - digits] == '0') --digits;
  uint32_t name = string(object.name), prefix = string(identity.substr(0, identity.size() - digits));
  uint64_t ordinal = digits ? 1 + std::stoull(identity.substr(identity.size() - digits)) : 0;

  ObjectStore::Entry entry;
  entry.base = object.base;
  entry.name = name;
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableObject);
  tables.byte(static_cast<uint8_t>(object.kind) | (object.zeroed ? 0x10 : 0) | (object.initial.empty() ? 0 : 0x20));
  tables.signed_varint(object.base - last_base_);
  tables.varint(object.size);
  tables.varint(name);
  tables.varint(prefix);
  uint64_t& last = ordinals_[prefix];
  tables.signed_varint(ordinal - last - 1);
  tables.varint(object.born == kNone ? 0 : 1 + zigzag(uint64_t{object.born} - last_born_));
  tables.varint(object.site);
  if (!object.initial.empty())
    tables.blob({reinterpret_cast<const char*>(object.initial.data()), object.initial.size()});
  last = ordinal;
  last_base_ = object.base;
  if (object.born != kNone) last_born_ = object.born;
  return objects_.add(std::move(entry));
}

void Writer::drop_object(uint32_t object) { drops_.push_back(object); }

uint32_t Writer::add_variable(const std::string& name) {
  uint32_t text = string(name);
  encoder_->columns[kTables].byte(kTableVariable);
  encoder_->columns[kTables].varint(text);
  return variables_++;
}

uint32_t Writer::add_input(const Input& input) {
  uint32_t name = string(input.name);
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableInput);
  tables.varint(name);
  tables.blob({reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size()});
  inputs_.push_back(input);
  return static_cast<uint32_t>(inputs_.size() - 1);
}

uint32_t Writer::add_nondet(const Nondet& nondet) {
  if (encoder_->columns[kTables].size() + nondet.bytes.size() > kMaxTables / 2) flush();
  uint32_t what = string(nondet.what);
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableNondet);
  tables.varint(what);
  tables.blob({reinterpret_cast<const char*>(nondet.bytes.data()), nondet.bytes.size()});
  return nondets_++;
}

void Writer::put_shape(uint32_t predicted, Shape shape, uint8_t& control, uint32_t& code) {
  if (predicted < model_.shape_count() && model_.shape(predicted).key == shape.key) {
    code = predicted;
    return;
  }
  control &= static_cast<uint8_t>(~kHitShape);
  code = model_.find_shape(shape);
  put(kShape, code);
  if (code == model_.shape_count()) {
    encoder_->columns[kShape].varint(shape.key << 2 | shape.key >> 62);  // small numbers for switches and operations
    model_.add_shape(shape);
  }
}

void Writer::switch_to(ThreadId thread) {
  uint8_t control = 0xff;
  uint32_t code;
  put_shape(model_.shape_count(), Shape::of_switch(thread), control, code);
  put_control(control);
  model_.switch_to(thread);
  item_done();
}

ExprId Writer::add_expr(const Expr& e) { return add_expr(e.op, e.width, e.a, e.b, e.c, e.value); }

uint32_t Writer::add_round(Round round) {
  STEM_CHECK(round.valid());
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableRound);
  tables.varint(round.result());
  tables.varint(round.nodes().size());
  for (const Round::Node& node : round.nodes()) {
    tables.byte(static_cast<uint8_t>(node.op));
    tables.byte(node.width);
    tables.varint(node.a);
    tables.varint(node.b);
    tables.varint(node.constant);
  }
  rounds_.push_back(std::move(round));
  return static_cast<uint32_t>(rounds_.size() - 1);
}

uint32_t Writer::add_rounds(uint32_t round, ExprId input, uint32_t rounds) {
  STEM_CHECK(round < rounds_.size() && rounds >= 1 && rounds <= Round::kMostRounds);
  const ExprId next = model_.next_expr();
  const uint32_t exprs = rounds_[round].exprs(rounds);
  if (input == 0 || input >= next || exprs >= UINT32_MAX - next) refuse_expr();
  uint8_t control = 0xff;
  uint32_t code;
  put_shape(model_.predicted_shape(), Shape::of_rounds(round), control, code);
  put_rounds(model_.current_template(code), rounds_[round], input, rounds, control);
  model_.followed_by(code);
  item_done();
  return exprs;
}

void Writer::refuse_expr() { STEM_CHECK(!"an expression that refers to what is not there"); }

uint64_t Writer::add_event(const Event& e) {
  STEM_CHECK(e.thread < threads_ && e.site < sites_ && e.size <= 8);
  STEM_CHECK(e.object == kNone || e.object < objects_.count());
  STEM_CHECK(e.variable == kNone || e.variable < variables_);
  ExprId next = model_.next_expr();
  STEM_CHECK(e.expr < next && e.leaf <= next);
  if (e.thread != model_.thread()) switch_to(e.thread);

  uint8_t control = 0xff;
  uint32_t code;
  auto leaf = e.leaf == 0 ? Shape::kNoLeaf : e.leaf == next ? Shape::kOwnLeaf : Shape::kOtherLeaf;
  STEM_CHECK(leaf != Shape::kOwnLeaf || e.size);
  put_shape(model_.predicted_shape(), Shape::of(e, leaf), control, code);
  Model::State& s = model_.state(code);
  auto& columns = encoder_->columns;

  uint32_t object = e.object + 1;  // kNone becomes 0
  if (object != s.object) {
    control &= static_cast<uint8_t>(~kHitObject);
    columns[kObject].signed_varint(static_cast<uint64_t>(int64_t{object} - int64_t{s.object}));
    s.object = object;
  }
  uint64_t offset = e.addr - (object ? objects_.base(object - 1) : 0);
  if (offset != s.next_offset()) {
    control &= static_cast<uint8_t>(~kHitOffset);
    columns[kOffset].signed_varint(offset - s.offset);
  }
  s.move_to(offset);

  uint32_t expr = e.expr ? next - e.expr : 0;
  if (expr != s.expr) {
    control &= static_cast<uint8_t>(~kHitExpr);
    columns[kExprs].varint(expr);
    s.expr = expr;
  }
  if (leaf == Shape::kOtherLeaf && next - e.leaf != s.leaf) {
    control &= static_cast<uint8_t>(~kHitLeaf);
    columns[kLeaf].varint(next - e.leaf);
    s.leaf = next - e.leaf;
  }
  uint64_t predicted = model_.predict_value(s, e.kind, e.size, e.addr, e.expr);
  if (e.value != predicted) {
    control &= static_cast<uint8_t>(~kHitValue);
    columns[kValue].signed_varint(e.value - predicted);
    if (e.kind == Kind::Write && e.expr == 0) model_.learn_formula(s, e.size, e.value);
  } else {
    s.failures = 0;
  }
  s.value_stride = e.value - s.value;
  s.value = e.value;
  if (e.value2 - e.value != s.value2 && e.kind == Kind::Rmw) {
    control &= static_cast<uint8_t>(~kHitValue2);
    columns[kValue2].signed_varint(e.value2 - e.value - s.value2);
    s.value2 = e.value2 - e.value;
  } else if (e.kind != Kind::Rmw && e.value2 != s.value2) {
    control &= static_cast<uint8_t>(~kHitValue2);
    columns[kValue2].signed_varint(e.value2 - s.value2);
    s.value2 = e.value2;
  }
  if (e.variable + 1 != s.variable) {
    control &= static_cast<uint8_t>(~kHitVariable);
    columns[kVariable].varint(static_cast<uint32_t>(e.variable + 1));
    s.variable = e.variable + 1;
  }
  put_control(control);
  if (e.kind == Kind::Read) model_.note_read(model_.state_index(code));
  model_.remember(e);
  if (leaf == Shape::kOwnLeaf) model_.add_leaf(8u * e.size, e.value);
  model_.followed_by(code);
  last_code_ = code;
  lanes_[lane_of_[model_.state_index(code)]].raw = 0;  // whatever was known of the state's last event
  ++added_;
  ++events_;
  item_done();
  if (columns[kTables].size() > kMaxTables / 4) flush();
  return events_ - 1;
}

void Writer::put_miss(uint8_t control) {
  encoder_->columns[kControl].varint(hits_);
  encoder_->columns[kControl].byte(control);
  hits_ = 0;
}

void Writer::put(int column, uint64_t value) { encoder_->columns[column].varint(value); }

void Writer::flush() {
  if (items_ || encoder_->columns[kTables].size() || !drops_.empty()) write_block(kData);
}

void Writer::finish(Outcome outcome, int exit_code) {
  flush();
  auto& tables = encoder_->columns[kTables];
  tables.byte(kTableEnd);
  tables.varint(static_cast<uint64_t>(outcome));
  tables.signed_varint(static_cast<uint64_t>(int64_t{exit_code}));
  tables.varint(events_);
  write_block(kEnd);
  int fd = fd_;
  fd_ = -1;
  if (::close(fd) != 0) throw WriteError(fmt::format("{}: {}", path_, std::strerror(errno)));
}

void Writer::write_block(uint32_t type) {
  auto& columns = encoder_->columns;
  for (uint32_t object : drops_) {
    columns[kTables].byte(kTableDrop);
    columns[kTables].varint(object);
  }
  if (hits_) columns[kControl].varint(hits_);
  hits_ = 0;
  BlockHeader header{kBlockMagic, type, items_, 0, block_first_event_, 0};
  ColumnOut& payload = encoder_->payload;
  payload.clear();
  payload.append(reinterpret_cast<const uint8_t*>(&header), sizeof header);
  auto& buffer = encoder_->compressed;
  for (ColumnOut& column : columns) {
    size_t raw = column.size(), stored = raw;
    const uint8_t* bytes = column.data();
    if (raw > 16 && compress_) {
      buffer.resize(ZSTD_compressBound(raw));
      size_t packed = ZSTD_compress2(encoder_->zstd, buffer.data(), buffer.size(), bytes, raw);
      if (!ZSTD_isError(packed) && packed < raw) {
        stored = packed;
        bytes = buffer.data();
      }
    }
    payload.varint(raw);
    payload.varint(stored);
    payload.append(bytes, stored);
    column.clear();
  }
  header.payload = static_cast<uint32_t>(payload.size() - sizeof header);
  header.checksum = block_checksum(header, payload.data() + sizeof header);
  payload.overwrite(reinterpret_cast<const uint8_t*>(&header), sizeof header);
  for (uint32_t object : drops_) objects_.drop(object);  // as the reader does, after the block
  drops_.clear();
  items_ = 0;
  block_first_event_ = events_;
  write_all(payload.data(), payload.size());
  written_events_ = events_;
}

void Writer::write_all(const void* data, size_t size) {
  if (fd_ < 0) return;
  const char* at = static_cast<const char*>(data);
  size_t left = size;
  while (left) {
    ssize_t n = ::write(fd_, at, left);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      int error = n < 0 ? errno : ENOSPC;
      if (::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) {
        // The reader finds the end of the whole blocks by itself.
      }
      ::close(fd_);
      fd_ = -1;
      throw WriteError(fmt::format("{}: {}", path_, std::strerror(error)));
    }
    at += n;
    left -= static_cast<size_t>(n);
  }
  bytes_ += size;
}

}  // namespace stem::trace
