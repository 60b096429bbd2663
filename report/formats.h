// The formats of `stem report`. Each takes a model and, for code review, what a change did to it.
#pragma once

#include <string>

#include "report/change.h"
#include "report/model.h"

namespace stem::report {

std::string text(const Model& model, const Change* change = nullptr);
std::string markdown(const Model& model, const Change* change = nullptr);  // a pull-request comment
std::string json(const Model& model, const Change* change = nullptr);
std::string sarif(const Model& model, const Change* change = nullptr);     // 2.1.0
std::string lcov(const Model& model);
std::string html(const Model& model, const Change* change = nullptr);      // one self-contained file

// Sentences that several formats share.
std::string state_sentence(const Pair& pair);     // "predicted, confirmed by replay"
std::string threads_sentence(const Pair& pair);   // "worker (main/1) to main"; "" if nothing is known

}  // namespace stem::report
