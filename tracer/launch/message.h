// What a run has to say to the person at the terminal, and how it says it: the runtime cannot format source lines, so it
// writes STEM_BLOB_MESSAGE records of JSON that name sites by key and memory by address; here they become sentences about
// threads, variables and source lines.
//
// The JSON, one object a message ("site": 16 hex digits of the site's key; "addr": hexadecimal; "thread": creation path;
// "op": a kind of events.def in its text form; every member but "kind" may be missing):
//   {"kind":"deadlock", "threads":[{"thread":"main/1","op":"lock","addr":"7ffe10","site":"01ab...","holder":"main/2"}, ...]}
//   {"kind":"livelock", "threads":[...same...]}
//   {"kind":"divergence", "step":3, "thread":"main/1", "wanted":{"op":"read","site":"..."},
//    "found":{"op":"write","site":"..."}, "why":"a sentence without addresses", "threads":[...same, what each waits for...]}
//   {"kind":"blocked", "thread":"main/1", "site":"...", "why":"..."}     an uninstrumented call blocked; the run went on
//   {"kind":"refused", "why":"fork in a process with threads ...", "site":"..."}
//   {"kind":"note", "why":"..."}
#pragma once

#include <string>
#include <vector>

#include "trace/event.h"

namespace stem::launch {

// Several lines, no newline at the end. Text that is not such JSON is returned as it is.
std::string render_message(const std::string& json, const trace::Trace& names);

// "deadlock", "divergence", ...; "note" for anything unreadable.
std::string message_kind(const std::string& json);

// file:line, as short as it stays clear: relative to the current folder when below it.
std::string source_line(const trace::Site& site);

}  // namespace stem::launch
