// `stem`: finds the subcommand and turns what it throws into a message and an exit code:
// 0 done, 1 findings where asked for, 2 user error, 3 bug in STEM.
#include "cli/command.h"

#include "util/error.h"

int main(int argc, char** argv) {
  CLI::App app{"STEM finds the definition-use pairs that a multithreaded program's other schedules and inputs would show."};
  app.require_subcommand(1);
#define STEM_COMMAND(name) stem::cli::add_##name(app);
#include "cli/commands.def"
#undef STEM_COMMAND
  try {
    app.parse(argc, argv);
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
