/* --symbolic-argv: the program's arguments as inputs argv1, argv2, ... Their bytes are free, the terminator is not: an argument
 * keeps its length, or gets shorter by a zero byte. A plan may give a longer one. */
#include "tracer/runtime/inputs.h"

#include <string.h>

void lib_input_argv(char** argv) {
  for (unsigned i = 1; argv[0] && argv[i]; i++) {
    char name[32];
    struct stem_text text = {name, name + sizeof name};
    stem_text_add(&text, "argv");
    stem_text_number(&text, i, 10);
    const uint8_t* given = (const uint8_t*)argv[i];
    size_t length = strlen(argv[i]);
    if (lib_planned(name, 0, &given, &length) && length > strlen(argv[i])) argv[i] = stem_pages(length + 1);
    if (length < strlen(argv[i])) argv[i][length] = 0;
    uint32_t index = lib_input_event(name, given, length, 0);
    lib_input_write(index, 0, argv[i], given, length, 0);
  }
}
