/* Start-up of the library models: what the plan declares as inputs, signals to come. Called by init.c, before main. */
#include "tracer/runtime/inputs.h"
#include "tracer/runtime/signals.h"
#include "tracer/runtime/state.h"

void stem_library_init(void) {
  lib_signals_init();
  lib_read_only_init();
  if (stem_option_number("symbolic-stdin", 0)) lib_symbolic_stdin(stem_option_number("symbolic-stdin", 0));
  if (stem_option_number("symbolic-argv", 0)) lib_input_argv(stem_argv);
}
