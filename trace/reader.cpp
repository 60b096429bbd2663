#include "trace/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>

#include "trace/column.h"
#include "trace/format.h"
#include "trace/model.h"
#include "util/error.h"

namespace stem::trace {

struct Reader::Decoder {
  uint32_t round = 0, round_at = 0, round_end = 0;  // a loop whose expressions are being given
  ExprId round_first = 0, round_input = 0;
  int fd = -1;
  std::vector<uint8_t> memory;  // instead of fd
  size_t at = 0;
  ColumnIn columns[kColumns];
  Model model;
  ZSTD_DCtx* zstd = ZSTD_createDCtx();
  std::vector<uint8_t> payload;
  std::vector<uint32_t> drops;
  uint32_t items_left = 0;
  uint32_t items_skipped = 0;  // of the last block, without Options::items
  uint64_t hits_left = 0;      // items that were predicted wholly, before the next control byte
  bool hits_known = false;
  uint64_t blocks = 0;
  size_t nondets_before = 0;
  ExprId expr_id = 0;
  bool pending_event = false;  // event_ is decoded; its leaf was given out first
  bool ended = false, stopped = false, end_seen = false;

  ~Decoder() {
    if (fd >= 0) ::close(fd);
    ZSTD_freeDCtx(zstd);
  }
};

namespace {
constexpr size_t kKinds = 0
#define STEM_EVENT(Name, text, visible) +1
#include "trace/events.def"
    ;
constexpr size_t kOps = 0
#define STEM_OP(Name, text, arity) +1
#include "trace/ops.def"
    ;
}  // namespace

Reader::Reader(const std::string& path, Options options)
    : path_(path), options_(options), decoder_(std::make_unique<Decoder>()) {
  decoder_->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (decoder_->fd < 0) user_error("{}: cannot open the trace: {}", path, std::strerror(errno));
  struct stat st;
  if (::fstat(decoder_->fd, &st) == 0) {
    if (S_ISDIR(st.st_mode)) user_error("{}: is a directory, not a trace", path);
    recovery_.bytes_total = static_cast<uint64_t>(st.st_size);
  }
  open_header();
}

Reader::Reader(const std::string& name, std::vector<uint8_t> bytes, Options options)
    : path_(name), options_(options), decoder_(std::make_unique<Decoder>()) {
  recovery_.bytes_total = bytes.size();
  decoder_->memory = std::move(bytes);
  open_header();
}

Reader::~Reader() = default;

ExprId Reader::expr_id() const { return decoder_->expr_id; }
uint64_t Reader::expr_count() const { return decoder_->model.next_expr() - 1; }

bool Reader::read_bytes(void* to, size_t size) {
  if (decoder_->fd < 0) {
    if (decoder_->memory.size() - decoder_->at < size) return false;
    if (size) std::memcpy(to, decoder_->memory.data() + decoder_->at, size);
    decoder_->at += size;
    return true;
  }
  char* at = static_cast<char*>(to);
  while (size) {
    ssize_t n = ::read(decoder_->fd, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

void Reader::open_header() {
  FileHeader header{};
  if (!read_bytes(&header, sizeof header) || std::memcmp(header.magic, kFileMagic, sizeof header.magic) != 0) {
    user_error("{}: not a STEM trace", path_);
  }
  if (header.version != kFormatVersion) {
    user_error(
        "{}: the trace has format version {}, this STEM reads version {}; record it again, or use the STEM that wrote "
        "it",
        path_, header.version, kFormatVersion);
  }
  recovery_.bytes_used = sizeof header;
  decoder_->model.inputs = &inputs_;
  // Tables of the first block, so that meta() is there before the first item.
  next_block();
}

bool Reader::stop(std::string why) {
  if (!decoder_->stopped) recovery_.why = std::move(why);
  decoder_->stopped = true;
  return false;
}

bool Reader::next_block() {
  Decoder& d = *decoder_;
  if (d.stopped || d.ended) return false;
  for (uint32_t object : d.drops) objects_.drop(object);
  d.drops.clear();
  if (!options_.keep_nondets) {
    for (; d.nondets_before < nondets_.size(); ++d.nondets_before) nondets_[d.nondets_before].bytes = {};
  }
  BlockHeader header{};
  if (!read_bytes(&header, sizeof header)) {
    return stop(recovery_.bytes_used == recovery_.bytes_total ? "the recording was cut off" : "the file was cut off");
  }
  if (header.magic != kBlockMagic || (header.type != kData && header.type != kEnd) || header.items > kBlockItems) {
    return stop(fmt::format("block {} is damaged", d.blocks));
  }
  if (header.payload > recovery_.bytes_total - recovery_.bytes_used) return stop("the file was cut off");
  d.payload.resize(header.payload);
  if (!read_bytes(d.payload.data(), d.payload.size())) return stop("the file was cut off");
  if (options_.verify && block_checksum(header, d.payload.data()) != header.checksum) {
    return stop(fmt::format("block {} is damaged: its checksum does not match", d.blocks));
  }
  if (header.first_event < recovery_.events || header.first_event - recovery_.events > d.items_skipped)
    return stop(fmt::format("block {} is not the one that comes next", d.blocks));
  recovery_.events = header.first_event;

  ColumnIn sizes;
  sizes.reset(std::move(d.payload));
  for (int i = 0; i < kColumns; ++i) {
    uint64_t raw = sizes.varint(), stored = sizes.varint();
    uint64_t limit = i == kTables ? kMaxTables : uint64_t{header.items} * 32;
    std::string bytes = sizes.take(stored);
    if (sizes.bad() || raw > limit || stored > raw)
      return stop(fmt::format("block {} is damaged: column {}", d.blocks, i));
    if (i != kTables && !options_.items) continue;
    std::vector<uint8_t> column(raw);
    if (stored == raw) {
      if (raw) std::memcpy(column.data(), bytes.data(), raw);
    } else if (ZSTD_decompressDCtx(d.zstd, column.data(), raw, bytes.data(), stored) != raw) {
      return stop(fmt::format("block {} is damaged: column {} does not unpack", d.blocks, i));
    }
    d.columns[i].reset(std::move(column));
  }
  if (!sizes.at_end()) return stop(fmt::format("block {} is damaged: bytes are left over", d.blocks));
  if (!read_tables()) return stop(fmt::format("block {} is damaged: its tables make no sense", d.blocks));
  recovery_.bytes_used += sizeof header + header.payload;
  (options_.items ? d.items_left : d.items_skipped) = header.items;
  d.hits_left = 0;
  d.hits_known = false;
  ++d.blocks;
  if (header.type == kEnd) {
    d.ended = true;
    if (!d.end_seen || header.items) return stop("the last block is damaged");
    recovery_.complete = true;
    if (recovery_.bytes_used != recovery_.bytes_total) {
      recovery_.complete = false;
      return stop("bytes follow the end of the trace");
    }
    return false;
  }
  return true;
}

Reader::Item Reader::next() {
  Decoder& d = *decoder_;
  if (d.pending_event) {
    d.pending_event = false;
    ++recovery_.events;
    return Item::Event;
  }
  if (d.round_at != d.round_end) return next_of_rounds();
  while (!d.stopped) {
    if (d.items_left == 0) {
      if (!next_block()) return Item::End;
      continue;
    }
    --d.items_left;
    if (!d.hits_known) {
      d.hits_left = d.columns[kControl].varint();
      d.hits_known = true;
    }
    uint8_t control = 0xff;
    if (d.hits_left) {
      --d.hits_left;
    } else {
      control = d.columns[kControl].byte();
      d.hits_known = false;
    }
    uint32_t code = d.model.predicted_shape();
    if (!(control & kHitShape)) {
      uint64_t explicit_code = d.columns[kShape].varint();
      if (explicit_code > d.model.shape_count()) break;
      code = static_cast<uint32_t>(explicit_code);
      if (code == d.model.shape_count()) {
        uint64_t key = d.columns[kShape].varint();
        d.model.add_shape(Shape{key >> 2 | key << 62});
      }
    }
    if (code >= d.model.shape_count() || d.columns[kControl].bad() || d.columns[kShape].bad()) break;
    Shape shape = d.model.shape(code);
    if (shape.type() == Shape::kSwitch) {
      if (shape.thread() >= threads_.size()) break;
      d.model.switch_to(shape.thread());
    } else if (shape.type() == Shape::kExpr) {
      if (!decode_expr(code, control)) break;
      return Item::Expr;
    } else if (shape.type() == Shape::kRounds) {
      if (!decode_rounds(code, control)) break;
      return next_of_rounds();
    } else if (shape.type() == Shape::kEvent) {
      if (!decode_event(code, control)) break;
      if (shape.leaf() == Shape::kOwnLeaf) {
        expr_ = Expr{Op::Read, static_cast<uint8_t>(8 * event_.size), 0, 0, 0, recovery_.events};
        d.expr_id = event_.leaf;
        d.pending_event = true;
        return Item::Expr;
      }
      ++recovery_.events;
      return Item::Event;
    }
  }
  stop(fmt::format("block {} makes no sense after {} events", d.blocks ? d.blocks - 1 : 0, recovery_.events));
  return Item::End;
}

bool Reader::decode_expr(uint32_t code, uint8_t control) {
  Decoder& d = *decoder_;
  Shape shape = d.model.shape(code);
  ExprId next = d.model.next_expr();
  if (shape.op() >= kOps || shape.width() < 1 || shape.width() > 64 || next == UINT32_MAX) return false;
  Model::Template& t = d.model.current_template(code);
  ExprId operands[3];
  constexpr uint8_t bits[] = {kHitA, kHitB, kHitC};
  for (int i = 0; i < 3; ++i) {
    if (control & bits[i]) {
      operands[i] = t.operand[i].guess(next);
    } else {
      uint64_t back = d.columns[kExprs].varint();
      if (back >= next) return false;
      operands[i] = back ? next - static_cast<ExprId>(back) : 0;
    }
    if (operands[i] >= next) return false;
    t.operand[i].learn(next, operands[i]);
  }
  if (!(control & kHitValue)) t.value += d.columns[kConstant].signed_varint();
  if (d.columns[kExprs].bad() || d.columns[kConstant].bad()) return false;
  auto op = static_cast<Op>(shape.op());
  expr_ = Expr{op,          shape.width(), operands[0],
               operands[1], operands[2],   op == Op::Read ? t.value + recovery_.events : t.value};
  if (op == Op::Input && (expr_.value >> 32) >= inputs_.size()) return false;
  d.model.add_expr(op, expr_.width, expr_.a, expr_.b, expr_.c, expr_.value);
  d.model.followed_by(code);
  d.expr_id = next;
  return true;
}

bool Reader::decode_rounds(uint32_t code, uint8_t control) {
  Decoder& d = *decoder_;
  const Shape shape = d.model.shape(code);
  if (shape.round() >= rounds_.size()) return false;
  const Round& round = rounds_[shape.round()];
  const ExprId next = d.model.next_expr();
  Model::Template& t = d.model.current_template(code);
  ExprId input = t.operand[0].guess(next);
  if (!(control & kHitA)) {
    const uint64_t back = d.columns[kExprs].varint();
    input = back < next ? next - static_cast<ExprId>(back) : 0;
  }
  if (input == 0 || input >= next) return false;
  t.operand[0].learn(next, input);
  if (!(control & kHitValue)) t.value += d.columns[kConstant].signed_varint();
  if (d.columns[kExprs].bad() || d.columns[kConstant].bad() || t.value < 1 || t.value > Round::kMostRounds) return false;
  const auto rounds = static_cast<uint32_t>(t.value);
  const uint32_t exprs = round.exprs(rounds);
  if (exprs >= UINT32_MAX - next) return false;
  uint64_t value = 0;
  const bool known = d.model.recent(input, value);
  d.model.add_rounds(exprs, round.result_of(rounds), round.width(), known ? round.value(value, rounds) : 0, known);
  d.model.followed_by(code);
  d.round = shape.round(), d.round_input = input, d.round_first = next, d.round_at = 0, d.round_end = exprs;
  return true;
}

Reader::Item Reader::next_of_rounds() {
  Decoder& d = *decoder_;
  expr_ = rounds_[d.round].expr(d.round_at, d.round_first, d.round_input);
  d.expr_id = d.round_first + d.round_at++;
  return Item::Expr;
}

bool Reader::decode_event(uint32_t code, uint8_t control) {
  Decoder& d = *decoder_;
  Shape shape = d.model.shape(code);
  if (shape.kind() >= kKinds || shape.size() > 8 || shape.site() >= sites_.size() ||
      d.model.thread() >= threads_.size())
    return false;
  if (shape.leaf() == Shape::kOwnLeaf && shape.size() == 0) return false;
  Model::State& s = d.model.state(code);
  ExprId next = d.model.next_expr();
  if (next == UINT32_MAX) return false;
  event_ = Event{};
  event_.kind = static_cast<Kind>(shape.kind());
  event_.size = shape.size();
  event_.flags = shape.flags();
  event_.site = shape.site();
  event_.thread = d.model.thread();

  if (!(control & kHitObject)) s.object += static_cast<uint32_t>(d.columns[kObject].signed_varint());
  if (s.object > objects_.count()) return false;
  event_.object = s.object - 1;
  uint64_t offset = s.offset + (control & kHitOffset ? s.stride : d.columns[kOffset].signed_varint());
  s.move_to(offset);
  event_.addr = offset + (s.object ? objects_.base(s.object - 1) : 0);

  if (!(control & kHitExpr)) s.expr = static_cast<uint32_t>(d.columns[kExprs].varint());
  if (s.expr >= next) return false;
  event_.expr = s.expr ? next - s.expr : 0;
  if (shape.leaf() == Shape::kOwnLeaf) {
    event_.leaf = next;
  } else if (shape.leaf() == Shape::kOtherLeaf) {
    if (!(control & kHitLeaf)) s.leaf = static_cast<uint32_t>(d.columns[kLeaf].varint());
    if (s.leaf == 0 || s.leaf >= next) return false;
    event_.leaf = next - s.leaf;
  } else if (shape.leaf() != Shape::kNoLeaf) {
    return false;
  }
  event_.value = d.model.predict_value(s, event_.kind, event_.size, event_.addr, event_.expr);
  if (!(control & kHitValue)) {
    event_.value += d.columns[kValue].signed_varint();
    if (event_.kind == Kind::Write && event_.expr == 0) d.model.learn_formula(s, event_.size, event_.value);
  } else {
    s.failures = 0;
  }
  s.value_stride = event_.value - s.value;
  s.value = event_.value;
  if (!(control & kHitValue2)) s.value2 += d.columns[kValue2].signed_varint();
  event_.value2 = event_.kind == Kind::Rmw ? event_.value + s.value2 : s.value2;
  if (!(control & kHitVariable)) s.variable = static_cast<uint32_t>(d.columns[kVariable].varint());
  if (s.variable > variables_.size()) return false;
  event_.variable = s.variable - 1;
  for (int i : {kObject, kOffset, kExprs, kLeaf, kValue, kValue2, kVariable}) {
    if (d.columns[i].bad()) return false;
  }
  if (event_.kind == Kind::Read) d.model.note_read(d.model.state_index(code));
  d.model.remember(event_);
  if (shape.leaf() == Shape::kOwnLeaf) d.model.add_leaf(8u * event_.size, event_.value);
  d.model.followed_by(code);
  return true;
}

const std::string& Reader::text(uint64_t id) {
  if (id < strings_.size()) return strings_[id];
  decoder_->columns[kTables].fail();
  return strings_[0];
}

bool Reader::read_tables() {
  ColumnIn& t = decoder_->columns[kTables];
  while (!t.at_end() && !t.bad()) {
    if (!table_record(t.byte())) return false;
  }
  return !t.bad();
}

bool Reader::table_record(uint8_t type) {
  ColumnIn& t = decoder_->columns[kTables];
  auto blob_bytes = [&] {
    std::string blob = t.blob();
    return std::vector<uint8_t>(blob.begin(), blob.end());
  };
  switch (type) {
    case kTableMeta: {
      for (auto* to : {&meta_.recorder, &meta_.program, &meta_.build_id, &meta_.cwd, &meta_.mode}) *to = t.blob();
      meta_.seed = t.varint();
      meta_.semantics = t.byte() != 0;
      meta_.argv.clear();
      meta_.options.clear();
      for (uint64_t n = t.count(); n && !t.bad(); --n) meta_.argv.push_back(t.blob());
      return true;
    }
    case kTableOption: {
      std::string key = t.blob();
      meta_.options[key] = t.blob();
      return true;
    }
    case kTableString:
      strings_.push_back(t.blob());
      return true;
    case kTableSite: {
      Site s;
      s.key = t.varint();
      s.file = text(t.varint());
      s.line = static_cast<uint32_t>(t.varint());
      s.column = static_cast<uint32_t>(t.varint());
      s.function = text(t.varint());
      s.text = text(t.varint());
      s.path = text(t.varint());
      sites_.push_back(std::move(s));
      return true;
    }
    case kTableThread: {
      Thread thread;
      thread.path = text(t.varint());
      thread.parent = static_cast<uint32_t>(t.varint()) - 1;
      thread.start = text(t.varint());
      threads_.push_back(std::move(thread));
      return true;
    }
    case kTableObject:
      return read_object();
    case kTableVariable:
      variables_.push_back(text(t.varint()));
      return true;
    case kTableInput: {
      Input input{text(t.varint()), {}};
      input.bytes = blob_bytes();
      inputs_.push_back(std::move(input));
      return true;
    }
    case kTableNondet: {
      Nondet nondet{text(t.varint()), {}};
      nondet.bytes = blob_bytes();
      nondets_.push_back(std::move(nondet));
      return true;
    }
    case kTableRound: {
      const uint64_t result = t.varint(), count = t.count();
      if (count > Round::kMostNodes) return false;
      std::vector<Round::Node> nodes;
      for (uint64_t i = 0; i < count; ++i) {
        const auto op = static_cast<Op>(t.byte());
        const uint8_t width = t.byte();
        const uint64_t a = t.varint(), b = t.varint();
        if (a > Round::kMostNodes || b > Round::kMostNodes) return false;
        nodes.push_back({op, width, static_cast<uint32_t>(a), static_cast<uint32_t>(b), t.varint()});
      }
      rounds_.emplace_back(std::move(nodes), static_cast<uint32_t>(std::min<uint64_t>(result, Round::kMostNodes)));
      return rounds_.back().valid();
    }
    case kTableMessage:
      messages_.push_back(t.blob());
      return true;
    case kTableDrop: {
      uint64_t object = t.varint();
      if (object >= objects_.count()) return false;
      decoder_->drops.push_back(static_cast<uint32_t>(object));
      return true;
    }
    case kTableEnd: {
      uint64_t outcome = t.varint();
      exit_code_ = static_cast<int>(t.signed_varint());
      uint64_t events = t.varint();
      if (outcome > static_cast<uint64_t>(Outcome::Truncated) || events != recovery_.events) return false;
      outcome_ = static_cast<Outcome>(outcome);
      decoder_->end_seen = true;
      return true;
    }
  }
  return false;
}

bool Reader::read_object() {
  ColumnIn& t = decoder_->columns[kTables];
  uint8_t bits = t.byte();
  if ((bits & 0xf) > static_cast<uint8_t>(ObjectKind::Sync) || bits > 0x3f) return false;
  ObjectStore::Entry e;
  e.kind = static_cast<ObjectKind>(bits & 0xf);
  e.zeroed = bits & 0x10;
  e.base = last_base_ += t.signed_varint();
  e.size = t.varint();
  e.name = static_cast<uint32_t>(t.varint());
  e.prefix = static_cast<uint32_t>(t.varint());
  if (e.name >= strings_.size() || e.prefix >= strings_.size()) return false;
  uint64_t& last = ordinals_[e.prefix];
  last += t.signed_varint() + 1;
  e.numbered = last != 0;
  e.ordinal = last - 1;
  uint64_t born = t.varint();
  if (born) e.born = last_born_ += static_cast<uint32_t>(unzigzag(born - 1));
  e.site = static_cast<uint32_t>(t.varint());
  if (bits & 0x20) {
    std::string blob = t.blob();
    e.initial.assign(blob.begin(), blob.end());
  }
  if (e.site >= sites_.size() || objects_.count() >= kNone - 1) return false;
  objects_.add(std::move(e));
  return true;
}

const std::string& Reader::object_name(uint32_t id) const {
  const ObjectStore::Entry* e = objects_.find(id);
  return strings_[e ? e->name : 0];
}

Object Reader::object(uint32_t id) const {
  Object o;
  const ObjectStore::Entry* e = objects_.find(id);
  if (!e) return o;
  o.kind = e->kind;
  o.base = e->base;
  o.size = e->size;
  o.name = strings_[e->name];
  o.identity = strings_[e->prefix];
  if (e->numbered) o.identity += std::to_string(e->ordinal);
  o.born = e->born;
  o.site = e->site;
  o.zeroed = e->zeroed;
  o.initial = e->initial;
  return o;
}

}  // namespace stem::trace
