#include "tracer/launch/plan_file.h"

#include <cstring>
#include <map>

#include "trace/plan.h"
#include "util/error.h"

namespace stem::launch {

namespace {

class PlanWriter {
 public:
  PlanWriter() : bytes_(sizeof(stem_plan_header), '\0') {}

  void item(stem_plan_type type, const std::string& payload) {
    stem_plan_item head{static_cast<uint32_t>(type), static_cast<uint32_t>(payload.size())};
    STEM_CHECK(payload.size() <= UINT32_MAX);
    bytes_.append(reinterpret_cast<const char*>(&head), sizeof head);
    bytes_ += payload;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    ++items_;
  }

  template <typename Value>
  void option(const std::string& key, const Value& value) {
    item(STEM_PLAN_OPTION, fmt::format("{}={}", key, value));
  }

  // The number of a thread in the plan's steps; its path is written the first time it is needed.
  uint32_t thread(const std::string& path) {
    auto [it, fresh] = threads_.emplace(path, static_cast<uint32_t>(threads_.size()));
    if (fresh) item(STEM_PLAN_THREAD, path);
    return it->second;
  }

  std::string finish() {
    stem_plan_header header{STEM_PLAN_MAGIC, STEM_PLAN_VERSION, items_};
    std::memcpy(bytes_.data(), &header, sizeof header);
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
  std::map<std::string, uint32_t> threads_;
  uint32_t items_ = 0;
};

std::string bytes_of(const std::vector<uint8_t>& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

std::string plan_bytes(const trace::Test& test, const Options& options, const std::string& library_folder) {
  PlanWriter plan;
  plan.option("mode", test.schedule.empty() ? options.mode : "guided");
  plan.option("seed", options.seed);
  if (options.switch_one_in) plan.option("switch", options.switch_one_in);
  if (options.depth) plan.option("depth", options.depth);
  plan.option("expressions", options.expressions ? 1 : 0);
  plan.option("libdir", library_folder);
  if (!options.stop.empty()) plan.option("stop", options.stop);
  for (const auto& [key, value] : test.options) plan.option(key, value);

  for (const trace::Input& input : test.inputs) {
    if (input.name.find('\0') != std::string::npos) user_error("the name of an input holds a zero byte: {}", input.name);
    plan.item(STEM_PLAN_INPUT, input.name + '\0' + bytes_of(input.bytes));
  }

  std::string steps;
  for (const trace::Step& step : test.schedule) {
    stem_plan_step raw{};
    raw.site_key = step.site;
    raw.thread = plan.thread(step.thread);
    raw.count = step.count;
    raw.kind = step.kind ? 1 + static_cast<uint32_t>(*step.kind) : 0;
    raw.wakes = step.wakes.empty() ? 0 : 1 + plan.thread(step.wakes);
    steps.append(reinterpret_cast<const char*>(&raw), sizeof raw);
  }
  for (const trace::Answer& answer : test.feed) {
    uint32_t thread = plan.thread(answer.thread);
    plan.item(STEM_PLAN_FEED, std::string(reinterpret_cast<const char*>(&thread), sizeof thread) + answer.what + '\0' + bytes_of(answer.bytes));
  }
  // Last, so that every thread it speaks of is known by then.
  if (steps.size() > UINT32_MAX) user_error("the schedule has {} steps: too many to follow", test.schedule.size());
  if (!steps.empty()) plan.item(STEM_PLAN_STEPS, steps);
  return plan.finish();
}

}  // namespace stem::launch
