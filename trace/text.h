// The text form of a trace: one line a table entry, expression or event, readable by people, and parsed back to exactly
// the same trace. docs/trace-format.md describes it. Tests write traces by hand in it.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "trace/event.h"

namespace stem::trace {

std::string print(const Trace& trace);

// Throws UserError "name:line: what is wrong". Checks that references name what exists.
Trace parse(std::string_view text, const std::string& name = "text");

// Single lines, with their newline, for printing a trace that is too large for memory.
std::string print_header(const Meta& meta);
std::string print_site(SiteId id, const Site& site);
std::string print_thread(ThreadId id, const Thread& thread);
std::string print_object(uint32_t id, const Object& object);
std::string print_variable(uint32_t id, const std::string& variable);
std::string print_input(uint32_t id, const Input& input);
std::string print_nondet(uint32_t id, const Nondet& nondet);
std::string print_expr(ExprId id, const Expr& expr);
// `where` is appended as a comment.
std::string print_event(uint64_t index, const Event& event, const std::string& where);
std::string print_message(const std::string& message);
std::string print_outcome(Outcome outcome, int exit_code);

// "main/1 queue.c:12:7 q->head", as people want to read it.
std::string describe(const Thread& thread, const Site& site);
std::string location(const Site& site);  // file:line:column, or "unknown place"

}  // namespace stem::trace
