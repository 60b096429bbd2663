// What an exploration talks about, in words: pairs, branch outcomes, inputs and the path of a run, by names and source
// lines.
#pragma once

#include <string>

#include "explorer/knowledge.h"
#include "trace/test_file.h"

namespace stem::explorer {

// "queue.c:41"; only "41" with `brief`, for a program of one file.
std::string place_text(const std::string& file, uint32_t line, bool brief = false);
std::string site_text(const Knowledge& known, uint64_t key,
                      bool brief = false);  // "?" if static analysis does not know it
bool one_file(const Knowledge& known);

// "x: account.c:34 -> account.c:66"; brief: "x W34->R66"
std::string pair_text(const Knowledge& known, const PairKey& pair, bool brief = false);
// "account.c:25 T => account.c:25 T"; brief: "b25T=>b25T", W0 for the initial definitions
std::string escort_text(const Knowledge& known, const analysis::EscortPair& pair, bool brief = false);
std::string outcome_text(const Knowledge& known, const analysis::BranchOutcome& outcome, bool brief = false);
// "account.c:25 (withdraw), main/1: 1 instead of 0"
std::string point_text(const trace::Trace& trace, uint32_t event, uint64_t value);

std::string input_text(const trace::Input& input);  // n=5, key="abc"
std::string inputs_text(const std::vector<trace::Input>& inputs);
std::string schedule_text(const std::vector<trace::Step>& schedule);  // main x7, main/1 x3
std::string path_text(const Knowledge& known,
                      const trace::Trace& trace);  // 1T, 2, 6F, 9: branches and accesses of shared variables
size_t switches_of(const std::vector<trace::Step>& schedule);

}  // namespace stem::explorer
