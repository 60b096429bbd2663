// `stem trace`: look at trace files. dump prints the text form, check tests well-formedness, stats counts, diff compares two
// runs, import makes a file of the text form.
#include <fmt/core.h>

#include <array>
#include <fstream>
#include <iterator>
#include <set>

#include "cli/command.h"
#include "trace/checker.h"
#include "trace/compare.h"
#include "trace/reader.h"
#include "trace/text.h"
#include "trace/writer.h"
#include "util/error.h"

namespace stem::cli {

namespace {

using trace::Reader;

void warn_if_cut(const Reader& reader) {
  const trace::Recovery& r = reader.recovery();
  if (r.complete) return;
  fmt::print(stderr, "stem: {}: {}; read {} events ({} of {} bytes)\n", reader.path(), r.why, r.events, r.bytes_used, r.bytes_total);
}

void put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) user_error("cannot write the output: {}", std::strerror(errno));
}

struct DumpOptions {
  std::string file, thread;
  uint64_t from = 0, to = UINT64_MAX;
  bool visible = false;
};

// Prints tables as they grow, so that what is printed parses back when nothing is left out.
class Dump {
 public:
  Dump(Reader& reader, const DumpOptions& options) : reader_(reader), names_(reader), options_(options) {}

  void run() {
    put(trace::print_header(reader_.meta()));
    for (Reader::Item item; (item = reader_.next()) != Reader::Item::End;) {
      tables();
      bool expr = item == Reader::Item::Expr;
      uint64_t index = expr ? reader_.recovery().events : reader_.event_index();
      if (index < options_.from || index >= options_.to) continue;
      if (expr) {
        if (options_.thread.empty() && !options_.visible) put(trace::print_expr(reader_.expr_id(), reader_.expr()));
        continue;
      }
      const trace::Event& e = reader_.event();
      if (!options_.thread.empty() && names_.thread(e.thread).path != options_.thread) continue;
      if (options_.visible && !trace::is_visible(e.kind)) continue;
      std::string where = trace::describe(names_.thread(e.thread), names_.site(e.site)), on = trace::subject(e, names_);
      if (!on.empty() && on != names_.site(e.site).text) where += " (" + on + ")";
      put(trace::print_event(index, e, where));
    }
    tables();
    for (const std::string& message : reader_.messages()) put(trace::print_message(message));
    put(trace::print_outcome(reader_.outcome(), reader_.exit_code()));
    if (!options_.thread.empty() && !known_thread()) {
      user_error("{}: there is no thread {}; threads are named by who created them: main, main/1, ...", options_.file, options_.thread);
    }
  }

 private:
  bool known_thread() const {
    for (const auto& thread : reader_.threads()) {
      if (thread.path == options_.thread) return true;
    }
    return false;
  }
  void tables() {
    for (; threads_ < reader_.threads().size(); ++threads_) put(trace::print_thread(threads_, reader_.threads()[threads_]));
    for (; sites_ < reader_.sites().size(); ++sites_) put(trace::print_site(sites_, reader_.sites()[sites_]));
    for (; objects_ < reader_.object_count(); ++objects_) put(trace::print_object(objects_, reader_.object(objects_)));
    for (; variables_ < reader_.variables().size(); ++variables_) put(trace::print_variable(variables_, reader_.variables()[variables_]));
    for (; inputs_ < reader_.inputs().size(); ++inputs_) put(trace::print_input(inputs_, reader_.inputs()[inputs_]));
    for (; nondets_ < reader_.nondets().size(); ++nondets_) put(trace::print_nondet(nondets_, reader_.nondets()[nondets_]));
  }

  Reader& reader_;
  trace::ReaderNames names_;
  const DumpOptions& options_;
  uint32_t threads_ = 0, sites_ = 1, objects_ = 0, variables_ = 0, inputs_ = 0, nondets_ = 0;
};

void check_file(const std::string& file) {
  Reader reader(file, {.keep_nondets = false});
  trace::CheckResult result = trace::check(reader);
  warn_if_cut(reader);
  for (const trace::Problem& p : result.problems) fmt::print("{}: {}\n", file, trace::to_string(p));
  if (result.problem_count > result.problems.size()) fmt::print("... and {} more\n", result.problem_count - result.problems.size());
  if (result.unchecked) fmt::print("{} values were too far from what explains them to be checked\n", result.unchecked);
  if (!result.ok()) {
    fmt::print("{}: {} problems in {} events\n", file, result.problem_count, result.events);
    throw CLI::RuntimeError(1);
  }
  // What is there may be fine, but it is not the run.
  const char* cut = reader.recovery().complete ? "" : ", but not complete";
  fmt::print("{}: well-formed, {} events, {} expressions{}\n", file, result.events, result.exprs, cut);
  if (*cut) throw CLI::RuntimeError(2);
}

void stats_of(const std::string& file) {
  Reader reader(file, {.keep_nondets = false});
  std::array<uint64_t, 256> kinds{};
  std::array<uint64_t, 256> ops{};
  uint64_t events = 0, counted = 0, switches = 0, pinned = 0, tainted = 0, symbolic = 0;
  trace::ThreadId last = 0;
  std::set<trace::SiteId> sites;
  for (Reader::Item item; (item = reader.next()) != Reader::Item::End;) {
    if (item == Reader::Item::Expr) {
      ++ops[static_cast<size_t>(reader.expr().op)];
      continue;
    }
    const trace::Event& e = reader.event();
    ++kinds[static_cast<size_t>(e.kind)];
    ++events;
    counted += trace::is_visible(e.kind);
    switches += e.thread != last;
    last = e.thread;
    pinned += (e.flags & trace::kPinned) != 0;
    tainted += (e.flags & trace::kTainted) != 0;
    symbolic += e.expr != 0 && e.kind == trace::Kind::Write;
    sites.insert(e.site);
  }
  warn_if_cut(reader);
  const trace::Meta& meta = reader.meta();
  fmt::print("program       {}\n", meta.program);
  fmt::print("recorder      {}, {} mode, seed {}\n", meta.recorder, meta.mode, meta.seed);
  fmt::print("outcome       {}, {}\n", trace::outcome_name(reader.outcome()), reader.exit_code());
  fmt::print("threads       {}, {} switches\n", reader.threads().size(), switches);
  fmt::print("events        {}, of which {} a schedule counts\n", events, counted);
  for (size_t k = 0; k < kinds.size(); ++k) {
    if (kinds[k]) fmt::print("  {:<14}{}\n", trace::kind_name(static_cast<trace::Kind>(k)), kinds[k]);
  }
  fmt::print("expressions   {}\n", reader.expr_count());
  for (size_t o = 0; o < ops.size(); ++o) {
    if (ops[o]) fmt::print("  {:<14}{}\n", trace::op_name(static_cast<trace::Op>(o)), ops[o]);
  }
  fmt::print("pinned reads  {}\n", pinned);
  fmt::print("symbolic writes {}\n", symbolic);
  fmt::print("tainted       {}\n", tainted);
  fmt::print("sites         {} executed, objects {}, variables {}, inputs {}, answers of the outside {}\n", sites.size(), reader.object_count(),
             reader.variables().size(), reader.inputs().size(), reader.nondets().size());
  uint64_t bytes = reader.recovery().bytes_total;
  fmt::print("bytes         {}, {:.3f} for each memory or synchronisation event\n", bytes, counted ? static_cast<double>(bytes) / static_cast<double>(counted) : 0.0);
}

void diff_of(const std::string& a, const std::string& b, bool visible) {
  Reader first(a), second(b);
  auto difference = trace::compare(first, second, {.visible_only = visible});
  if (!difference) {
    warn_if_cut(first);
    warn_if_cut(second);
    fmt::print("the same, {} events\n", first.recovery().events);
    return;
  }
  fmt::print("{} event {}: {}\n", visible ? "visible" : "", difference->event, difference->what);
  throw CLI::RuntimeError(1);
}

void import_text(const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  if (!in) user_error("{}: cannot open it", from);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  trace::save(trace::parse(text, from), to);
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* trace = app.add_subcommand("trace", "Look at trace files");
  trace->require_subcommand(1);

  auto dump_options = std::make_shared<DumpOptions>();
  CLI::App* dump = trace->add_subcommand("dump", "Print a trace as text, one event a line");
  dump->add_option("FILE", dump_options->file, "Trace file")->required();
  dump->add_option("--from", dump_options->from, "First event to print");
  dump->add_option("--to", dump_options->to, "Event to stop before");
  dump->add_option("--thread", dump_options->thread, "Only this thread's events: main, main/1, ...");
  dump->add_flag("--visible", dump_options->visible, "Only events that a schedule counts");
  dump->callback([dump_options] {
    Reader reader(dump_options->file);
    Dump(reader, *dump_options).run();
    warn_if_cut(reader);
  });

  auto file = std::make_shared<std::string>();
  CLI::App* check = trace->add_subcommand("check", "Test whether a trace is well-formed (exit code 1 if not, 2 if its end is missing)");
  check->add_option("FILE", *file, "Trace file")->required();
  check->callback([file] { check_file(*file); });

  CLI::App* stats = trace->add_subcommand("stats", "Count events, expressions and bytes");
  stats->add_option("FILE", *file, "Trace file")->required();
  stats->callback([file] { stats_of(*file); });

  auto second = std::make_shared<std::string>();
  auto visible = std::make_shared<bool>(false);
  CLI::App* diff = trace->add_subcommand("diff", "Compare two runs event by event (exit code 1 if they differ)");
  diff->add_option("FIRST", *file, "Trace file")->required();
  diff->add_option("SECOND", *second, "Trace file")->required();
  diff->add_flag("--visible", *visible, "Only events that a schedule counts");
  diff->callback([file, second, visible] { diff_of(*file, *second, *visible); });

  CLI::App* import = trace->add_subcommand("import", "Make a trace file of the text form");
  import->add_option("TEXT", *file, "Text, as dump prints it")->required();
  import->add_option("-o,--output", *second, "Trace file to write")->required();
  import->callback([file, second] { import_text(*file, *second); });
}

}  // namespace stem::cli
