// `stem`: finds the subcommand and turns what it throws into a message and an exit code:
// 0 done, 1 findings where asked for, 2 user error, 3 bug in STEM.
#include "cli/command.h"

#include <algorithm>

#include "util/error.h"

namespace {

// CLI11 takes `--` for the end of options and then refuses what follows. Hidden from it, it is simply the first word that is
// no option, and everything after it is the program's.
constexpr const char* kDashes = "\x01--";

bool runs_program(const std::string& command) { return command == "record" || command == "explore"; }

}  // namespace

std::vector<std::string> stem::cli::program_words(const CLI::App& command) {
  std::vector<std::string> words = command.remaining();
  bool separated = !words.empty() && words[0] == kDashes;
  if (separated) words.erase(words.begin());
  else if (!words.empty() && words[0].starts_with("-"))
    user_error("stem {} has no option {}; `stem {} --help` lists them (the program's own options go after its name)", command.get_name(), words[0], command.get_name());
  for (std::string& word : words)
    if (word == kDashes) word = "--";
  return words;
}

int main(int argc, char** argv) {
  CLI::App app{"STEM finds the definition-use pairs that a multithreaded program's other schedules and inputs would show."};
  app.require_subcommand(1);
#define STEM_COMMAND(name) stem::cli::add_##name(app);
#include "cli/commands.def"
#undef STEM_COMMAND
  try {
    std::vector<std::string> words(argv + 1, argv + argc);
    if (!words.empty() && runs_program(words[0]))
      for (std::string& word : words)
        if (word == "--") word = kDashes;
    std::reverse(words.begin(), words.end());
    app.name("stem");
    app.parse(words);
    return 0;
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const stem::UserError& error) {
    fmt::print(stderr, "stem: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "stem: bug in STEM: {}\n", error.what());
    return 3;
  }
}
