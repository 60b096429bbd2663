/* Inputs that are not declared by a call: the program's arguments, and files it reads (inputs_argv.c, nondet_file.c). */
#ifndef STEM_TRACER_RUNTIME_INPUTS_H
#define STEM_TRACER_RUNTIME_INPUTS_H

#include "tracer/runtime/lib.h"

/* The plan's nth value (from 0) for an input of that name. */
bool lib_planned(const char* name, uint32_t nth, const uint8_t** bytes, size_t* size);

/* An Input event with its value; returns the input's index. */
uint32_t lib_input_event(const char* name, const void* bytes, size_t size, const void* site);

/* Writes bytes of that input, from `offset` in it, into the program's memory, each piece with its expression. */
void lib_input_write(uint32_t index, uint32_t offset, void* to, const void* bytes, size_t size, const void* site);

/* --symbolic-stdin. */
void lib_symbolic_stdin(uint64_t limit); /* so many bytes */

/* --symbolic-argv: makes every argument after the first an input called argv1, argv2, ... */
void lib_input_argv(char** argv);

#endif
