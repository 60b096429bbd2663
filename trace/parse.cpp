// Parsing the text form (print is in text.cpp): a line is words, then key=value pairs; strings are quoted; ';' starts a
// comment. Every id in a line that defines something must be the next one, so that a slip in a hand-written trace shows.
#include <charconv>
#include <map>
#include <unordered_map>

#include "trace/text.h"
#include "util/error.h"

namespace stem::trace {

namespace {

struct Token {
  std::string key;    // empty for a plain word
  std::string value;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : text_(text), name_(name) {
#define STEM_EVENT(Name, text, visible) kinds_[text] = Kind::Name;
#include "trace/events.def"
#define STEM_OP(Name, text, arity) ops_[text] = Op::Name;
#include "trace/ops.def"
  }

  Trace run() {
    size_t at = 0;
    while (at < text_.size()) {
      size_t end = text_.find('\n', at);
      if (end == std::string_view::npos) end = text_.size();
      ++line_;
      if (tokenize(text_.substr(at, end - at))) statement();
      at = end + 1;
    }
    if (!header_) fail("not a trace in text form: it must begin with 'stem-trace 1'");
    check_references();
    return std::move(trace_);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
    user_error("{}:{}: {}", name_, line_, fmt::format(format, std::forward<Args>(args)...));
  }

  std::string unquote(std::string_view line, size_t& at) {
    std::string out;
    for (++at; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] != '\\') {
        out += line[at];
      } else if (++at < line.size() && line[at] == 'x') {
        unsigned byte = 0;
        if (at + 2 >= line.size() || std::from_chars(line.data() + at + 1, line.data() + at + 3, byte, 16).ptr != line.data() + at + 3) {
          fail("\\x wants two hexadecimal digits");
        }
        out += static_cast<char>(byte);
        at += 2;
      } else if (at < line.size()) {
        out += line[at] == 'n' ? '\n' : line[at];
      }
    }
    if (at >= line.size()) fail("a string without its closing quote");
    ++at;
    return out;
  }

  // False for an empty line.
  bool tokenize(std::string_view line) {
    tokens_.clear();
    next_ = 0;
    size_t at = 0;
    while (true) {
      while (at < line.size() && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r')) ++at;
      if (at >= line.size() || line[at] == ';') break;
      Token token;
      if (line[at] == '"') {
        token.value = unquote(line, at);
      } else {
        size_t start = at;
        while (at < line.size() && !strchr_space(line[at]) && line[at] != '=') ++at;
        token.value = line.substr(start, at - start);
        if (at < line.size() && line[at] == '=') {
          ++at;
          token.key = std::move(token.value);
          if (token.key.empty()) fail("'=' without a name before it");
          if (at < line.size() && line[at] == '"') {
            token.value = unquote(line, at);
          } else {
            start = at;
            while (at < line.size() && !strchr_space(line[at])) ++at;
            token.value = line.substr(start, at - start);
          }
        }
      }
      tokens_.push_back(std::move(token));
    }
    return !tokens_.empty();
  }

  static bool strchr_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

  bool more() const { return next_ < tokens_.size(); }
  const Token& take(const char* what) {
    if (!more()) fail("{} is missing", what);
    return tokens_[next_++];
  }
  std::string word(const char* what) {
    const Token& token = take(what);
    if (!token.key.empty()) fail("expected {}, not '{}='", what, token.key);
    return token.value;
  }

  uint64_t number(std::string_view text, const char* what) {
    uint64_t value = 0;
    int base = 10;
    std::string_view digits = text;
    bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    if (digits.starts_with("0x")) {
      digits.remove_prefix(2);
      base = 16;
    }
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) {
      fail("{}: '{}' is not a number that fits 64 bits", what, text);
    }
    return negative ? 0 - value : value;
  }
  uint32_t small(std::string_view text, const char* what, uint64_t limit = UINT32_MAX) {
    uint64_t value = number(text, what);
    if (value > limit) fail("{}: {} is too large", what, text);
    return static_cast<uint32_t>(value);
  }
  uint32_t reference(std::string_view text, char letter, const char* what) {
    if (text.size() < 2 || text[0] != letter) fail("{}: expected {} followed by a number, not '{}'", what, letter, text);
    return small(text.substr(1), what, UINT32_MAX - 1);
  }
  void defines(char letter, size_t expected, const char* what) {
    uint32_t id = reference(word(what), letter, what);
    if (id != expected) fail("{} {}{} is out of order: the next one is {}{}", what, letter, id, letter, expected);
  }

  std::vector<uint8_t> bytes(std::string_view text) {
    std::vector<uint8_t> out;
    if (text == "-") return out;
    if (text.size() % 2) fail("bytes: an odd number of hexadecimal digits");
    for (size_t i = 0; i < text.size(); i += 2) {
      unsigned byte = 0;
      if (std::from_chars(text.data() + i, text.data() + i + 2, byte, 16).ptr != text.data() + i + 2) {
        fail("bytes: '{}' is not hexadecimal", text.substr(i, 2));
      }
      out.push_back(static_cast<uint8_t>(byte));
    }
    return out;
  }

  void statement() {
    std::string first = tokens_[0].key.empty() ? tokens_[0].value : "";
    if (!header_) {
      if (first != "stem-trace") fail("not a trace in text form: it must begin with 'stem-trace 1'");
      next_ = 1;
      if (word("version") != "1") fail("this is version {} of the text form; this STEM reads version 1", tokens_[1].value);
      header_ = true;
    } else if (first == "meta") {
      next_ = 1;
      meta();
    } else if (first == "argv") {
      next_ = 1;
      trace_.meta.argv.push_back(word("argument"));
    } else if (first == "option") {
      next_ = 1;
      std::string key = word("option");
      trace_.meta.options[key] = word("value");
    } else if (first == "site") {
      next_ = 1;
      site();
    } else if (first == "thread") {
      next_ = 1;
      thread();
    } else if (first == "object") {
      next_ = 1;
      object();
    } else if (first == "variable") {
      next_ = 1;
      defines('v', trace_.variables.size(), "variable");
      trace_.variables.push_back(word("name"));
    } else if (first == "input") {
      next_ = 1;
      input();
    } else if (first == "nondet") {
      next_ = 1;
      nondet();
    } else if (first == "message") {
      next_ = 1;
      trace_.messages.push_back(word("text"));
    } else if (first == "outcome") {
      next_ = 1;
      outcome();
    } else if (first.size() > 1 && first[0] == 'e' && isdigit(static_cast<unsigned char>(first[1]))) {
      expr();
    } else if (first.size() > 1 && (first[0] == '@' || (first[0] == 't' && isdigit(static_cast<unsigned char>(first[1]))))) {
      event();
    } else {
      fail("'{}' begins no kind of line", tokens_[0].key.empty() ? first : tokens_[0].key + "=");
    }
    if (more()) fail("'{}' is left over", tokens_[next_].key.empty() ? tokens_[next_].value : tokens_[next_].key + "=");
  }

  void meta() {
    Meta& m = trace_.meta;
    while (more()) {
      const Token& t = take("setting");
      if (t.key == "recorder") m.recorder = t.value;
      else if (t.key == "program") m.program = t.value;
      else if (t.key == "build_id") m.build_id = t.value;
      else if (t.key == "cwd") m.cwd = t.value;
      else if (t.key == "mode") m.mode = t.value;
      else if (t.key == "seed") m.seed = number(t.value, "seed");
      else if (t.key == "semantics") m.semantics = number(t.value, "semantics") != 0;
      else fail("meta knows no '{}'", t.key);
    }
  }

  void site() {
    defines('s', trace_.sites.size(), "site");
    Site s;
    while (more()) {
      const Token& t = take("field");
      if (t.key == "key") s.key = number(t.value, "key");
      else if (t.key == "file") s.file = t.value;
      else if (t.key == "line") s.line = small(t.value, "line");
      else if (t.key == "column") s.column = small(t.value, "column");
      else if (t.key == "function") s.function = t.value;
      else if (t.key == "text") s.text = t.value;
      else if (t.key == "path") s.path = t.value;
      else fail("a site has no '{}'", t.key);
    }
    trace_.sites.push_back(std::move(s));
  }

  void thread() {
    defines('t', trace_.threads.size(), "thread");
    Thread thread;
    while (more()) {
      const Token& t = take("field");
      if (t.key == "path") thread.path = t.value;
      else if (t.key == "parent") thread.parent = reference(t.value, 't', "parent");
      else if (t.key == "start") thread.start = t.value;
      else fail("a thread has no '{}'", t.key);
    }
    trace_.threads.push_back(std::move(thread));
  }

  void object() {
    static const std::map<std::string, ObjectKind> kinds = {
        {"unknown", ObjectKind::Unknown}, {"global", ObjectKind::Global}, {"heap", ObjectKind::Heap},
        {"stack", ObjectKind::Stack},     {"tls", ObjectKind::Tls},       {"sync", ObjectKind::Sync}};
    defines('o', trace_.objects.size(), "object");
    Object o;
    std::string kind = word("kind of object");
    auto found = kinds.find(kind);
    if (found == kinds.end()) fail("'{}' is no kind of object", kind);
    o.kind = found->second;
    while (more()) {
      const Token& t = take("field");
      if (t.key == "name") o.name = t.value;
      else if (t.key == "identity") o.identity = t.value;
      else if (t.key == "base") o.base = number(t.value, "base");
      else if (t.key == "size") o.size = number(t.value, "size");
      else if (t.key == "born") o.born = reference(t.value, '@', "born");
      else if (t.key == "site") o.site = reference(t.value, 's', "site");
      else if (t.key == "zeroed") o.zeroed = number(t.value, "zeroed") != 0;
      else if (t.key == "initial") o.initial = bytes(t.value);
      else fail("an object has no '{}'", t.key);
    }
    trace_.objects.push_back(std::move(o));
  }

  void input() {
    defines('i', trace_.inputs.size(), "input");
    Input i;
    while (more()) {
      const Token& t = take("field");
      if (t.key == "name") i.name = t.value;
      else if (t.key == "bytes") i.bytes = bytes(t.value);
      else fail("an input has no '{}'", t.key);
    }
    trace_.inputs.push_back(std::move(i));
  }

  void nondet() {
    defines('n', trace_.nondets.size(), "nondet");
    Nondet n;
    while (more()) {
      const Token& t = take("field");
      if (t.key == "what") n.what = t.value;
      else if (t.key == "bytes") n.bytes = bytes(t.value);
      else fail("a nondet has no '{}'", t.key);
    }
    trace_.nondets.push_back(std::move(n));
  }

  void outcome() {
    std::string name = word("outcome");
    bool found = false;
    for (int i = 0; i <= static_cast<int>(Outcome::Truncated); ++i) {
      if (name != outcome_name(static_cast<Outcome>(i))) continue;
      trace_.outcome = static_cast<Outcome>(i);
      found = true;
    }
    if (!found) fail("'{}' is no outcome", name);
    std::string code = word("exit code");
    int value = 0;
    if (std::from_chars(code.data(), code.data() + code.size(), value).ptr != code.data() + code.size()) {
      fail("exit code: '{}' is not a number", code);
    }
    trace_.exit_code = value;
  }

  void expr() {
    defines('e', trace_.exprs.size(), "expression");
    Expr e;
    std::string op = word("operation");
    size_t colon = op.find(':');
    if (colon == std::string::npos) fail("an operation wants its width: {}:32", op);
    auto found = ops_.find(op.substr(0, colon));
    if (found == ops_.end()) fail("'{}' is no operation", op.substr(0, colon));
    e.op = found->second;
    e.width = static_cast<uint8_t>(small(op.substr(colon + 1), "width", 64));
    ExprId* operands[] = {&e.a, &e.b, &e.c};
    int count = 0;
    while (more()) {
      std::string text = word("operand");
      if (text.starts_with('e')) {
        if (count == 3) fail("more than three operands");
        *operands[count] = reference(text, 'e', "operand");
        if (*operands[count] >= trace_.exprs.size()) fail("operand {} is not defined before", text);
        ++count;
      } else if (text.starts_with('@')) {
        e.value = number(std::string_view(text).substr(1), "event");
      } else if (text.starts_with('i')) {
        size_t plus = text.find('+');
        if (plus == std::string::npos) fail("an input leaf is written iINDEX+OFFSET, not '{}'", text);
        e.value = static_cast<uint64_t>(small(text.substr(1, plus - 1), "input")) << 32 | small(text.substr(plus + 1), "offset");
      } else {
        e.value = number(text, "value");
      }
    }
    trace_.exprs.push_back(e);
  }

  uint16_t flags(std::string_view text) {
    static const std::map<std::string, uint16_t, std::less<>> names = {
        {"atomic", kAtomic}, {"try", kTry},       {"timed", kTimed},   {"timeout", kTimeout}, {"spurious", kSpurious}, {"stack", kStack},
        {"zeroed", kZeroed}, {"serial", kSerial}, {"pinned", kPinned}, {"tainted", kTainted}, {"spin", kSpin}, {"fresh", kFresh}};
    uint16_t out = 0;
    while (!text.empty()) {
      size_t comma = text.find(',');
      std::string_view name = text.substr(0, comma);
      auto found = names.find(name);
      if (found != names.end()) out |= found->second;
      else if (name.starts_with("bit")) out |= static_cast<uint16_t>(1u << small(name.substr(3), "flag", 15));
      else fail("'{}' is no flag", name);
      text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    }
    return out;
  }

  void event() {
    std::string first = word("event");
    if (first[0] == '@') {
      if (number(std::string_view(first).substr(1), "event") != trace_.events.size()) {
        fail("event {} is out of order: the next one is @{}", first, trace_.events.size());
      }
      first = word("thread");
    }
    Event e;
    e.thread = reference(first, 't', "thread");
    std::string kind = word("kind of event");
    auto found = kinds_.find(kind);
    if (found == kinds_.end()) fail("'{}' is no kind of event", kind);
    e.kind = found->second;
    while (more()) {
      const Token& t = take("field");
      if (t.key.empty()) e.site = reference(t.value, 's', "site");
      else if (t.key == "addr") e.addr = number(t.value, "addr");
      else if (t.key == "size") e.size = static_cast<uint8_t>(small(t.value, "size", 255));
      else if (t.key == "value") e.value = number(t.value, "value");
      else if (t.key == "value2") e.value2 = number(t.value, "value2");
      else if (t.key == "expr") e.expr = reference(t.value, 'e', "expr");
      else if (t.key == "leaf") e.leaf = reference(t.value, 'e', "leaf");
      else if (t.key == "object") e.object = reference(t.value, 'o', "object");
      else if (t.key == "variable") e.variable = reference(t.value, 'v', "variable");
      else if (t.key == "flags") e.flags = flags(t.value);
      else fail("an event has no '{}'", t.key);
    }
    trace_.events.push_back(e);
    lines_.push_back(line_);
  }

  // Tables may follow what refers to them, so this waits for the end.
  void check_references() {
    for (size_t i = 0; i < trace_.events.size(); ++i) {
      const Event& e = trace_.events[i];
      line_ = lines_[i];
      if (e.thread >= trace_.threads.size()) fail("there is no thread t{}", e.thread);
      if (e.site >= trace_.sites.size()) fail("there is no site s{}", e.site);
      if (e.expr >= trace_.exprs.size()) fail("there is no expression e{}", e.expr);
      if (e.leaf >= trace_.exprs.size()) fail("there is no expression e{}", e.leaf);
      if (e.object != kNone && e.object >= trace_.objects.size()) fail("there is no object o{}", e.object);
      if (e.variable != kNone && e.variable >= trace_.variables.size()) fail("there is no variable v{}", e.variable);
    }
    for (const Object& o : trace_.objects) {
      if (o.site >= trace_.sites.size()) fail("object {} was allocated at site s{}, which does not exist", o.name, o.site);
    }
    for (const Thread& t : trace_.threads) {
      if (t.parent != kNone && t.parent >= trace_.threads.size()) fail("thread {} has parent t{}, which does not exist", t.path, t.parent);
    }
  }

  std::string_view text_;
  std::string name_;
  Trace trace_;
  std::vector<Token> tokens_;
  std::vector<size_t> lines_;
  size_t next_ = 0, line_ = 0;
  bool header_ = false;
  std::unordered_map<std::string, Kind> kinds_;
  std::unordered_map<std::string, Op> ops_;
};

}  // namespace

Trace parse(std::string_view text, const std::string& name) { return Parser(text, name).run(); }

}  // namespace stem::trace
