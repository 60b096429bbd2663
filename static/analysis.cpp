#include "static/analysis.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IRReader/IRReader.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>

#include <algorithm>

#include "static/pairs.h"
#include "util/error.h"

namespace stem::analysis {

namespace {

std::unique_ptr<llvm::Module> link(llvm::LLVMContext& context, const std::vector<std::string>& modules) {
  // LLVM's own handler prints and ends the process; what it has to say belongs in our message.
  std::string said;
  context.setDiagnosticHandlerCallBack(
      [](const llvm::DiagnosticInfo* info, void* text) {
        if (info->getSeverity() != llvm::DS_Error) return;
        llvm::raw_string_ostream out(*static_cast<std::string*>(text));
        llvm::DiagnosticPrinterRawOStream printer(out);
        info->print(printer);
      },
      &said);
  auto whole = std::make_unique<llvm::Module>("program", context);
  llvm::Linker linker(*whole);
  for (const std::string& bytes : modules) {
    llvm::SMDiagnostic problem;
    auto module = llvm::parseIR(llvm::MemoryBufferRef(bytes, "module"), problem, context);
    if (!module) user_error("the bitcode inside the program cannot be read: {}", problem.getMessage().str());
    if (linker.linkInModule(std::move(module)))
      user_error("the bitcode of the program's translation units does not link ({}); rebuild all of them with stem-cc",
                 said);
  }
  context.setDiagnosticHandlerCallBack(nullptr);
  return whole;
}

// Instructions as sites. A site's key is the first operand of its !stem.site metadata.
class Sites {
 public:
  Sites(Result& result, const trace::Program* program, bool every_access) : result_(result), every_(every_access) {
    if (program)
      for (const auto& [address, site] : program->sites()) {
        known_.emplace(site.key, &site);
        functions_.emplace(site.linkage, &site.function);
      }
  }

  bool is_site(const llvm::Instruction& instruction) const { return every_ || key(instruction) != 0; }

  // Instructions with one key are one site: the same inline function in two translation units.
  uint32_t index(const llvm::Instruction& instruction) {
    auto [entry, fresh] = by_instruction_.try_emplace(&instruction, static_cast<uint32_t>(result_.sites.size()));
    if (!fresh) return entry->second;
    StaticSite site;
    site.key = key(instruction);
    if (site.key != 0) {
      auto [same, first] = by_key_.try_emplace(site.key, entry->second);
      if (!first) return entry->second = same->second;
    }
    auto record = known_.find(site.key);
    if (record != known_.end()) {
      const trace::ProgramSite& full = *record->second;
      site = {full.key, full.file, full.line, full.column, full.function, full.text, SiteKind::Access, {}};
    } else {
      site.function = instruction.getFunction()->getName().str();
      if (const llvm::DebugLoc& where = instruction.getDebugLoc()) {
        site.file = where->getFilename().str();
        site.line = where.getLine();
        site.column = where.getCol();
      }
    }
    if (instruction.isTerminator()) site.kind = SiteKind::Branch;
    result_.sites.push_back(std::move(site));
    return entry->second;
  }

  // Allocations and local variables: what the program's records say about them; null: nothing.
  const trace::ProgramSite* record(const llvm::Instruction& instruction) const {
    auto known = known_.find(key(instruction));
    return known == known_.end() ? nullptr : known->second;
  }

  // The linkage name of a function as the programmer would write it, where a site says so.
  const std::string& written(const std::string& linkage) const {
    auto entry = functions_.find(linkage);
    return entry == functions_.end() ? linkage : *entry->second;
  }

  static uint64_t key(const llvm::Instruction& instruction) {
    const llvm::MDNode* node = instruction.getMetadata("stem.site");
    if (!node || node->getNumOperands() == 0) return 0;
    auto* value = llvm::mdconst::dyn_extract<llvm::ConstantInt>(node->getOperand(0));
    return value ? value->getZExtValue() : 0;
  }

 private:
  Result& result_;
  bool every_;
  std::unordered_map<uint64_t, const trace::ProgramSite*> known_;
  std::unordered_map<std::string, const std::string*> functions_;
  std::unordered_map<uint64_t, uint32_t> by_key_;
  std::unordered_map<const llvm::Instruction*, uint32_t> by_instruction_;
};

bool is_branch(const llvm::Instruction& instruction) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&instruction);
  return (branch && branch->isConditional()) || llvm::isa<llvm::SwitchInst>(instruction);
}

// Variables as people write them: cfg.limits[].max, heap(push:20).next, main::queue.
class Names {
 public:
  Names(const PointerAnalysis& pointers, const trace::Program* program, const Sites& sites)
      : pointers_(pointers), sites_(sites) {
    if (program)
      for (const trace::ProgramVariable& variable : program->variables()) layouts_.emplace(variable.name, &variable);
  }

  std::string of(const Extent& where) const {
    const Object& object = pointers_.objects().object(where.object);
    std::string layout, name;
    uint64_t size = 0;
    switch (object.kind) {
      case ObjectKind::External:
        return "(memory outside the program)";
      case ObjectKind::Function:
        return object.value->getName().str();
      case ObjectKind::Global: {
        name = object.value->getName().str();
        auto known = layouts_.find(name);
        if (known == layouts_.end()) known = layouts_.find(without_number(name));
        if (known == layouts_.end()) return name;
        if (!known->second->display.empty()) name = known->second->display;
        layout = known->second->layout;
        size = known->second->size;
        break;
      }
      case ObjectKind::Stack:
      case ObjectKind::Heap: {
        auto* instruction = llvm::cast<llvm::Instruction>(object.value);
        const trace::ProgramSite* record = sites_.record(*instruction);
        if (record) layout = record->layout;
        const std::string function = sites_.written(instruction->getFunction()->getName().str());
        if (object.kind == ObjectKind::Stack) {
          name = function + "::" + (record ? record->text : instruction->getName().str());
        } else {
          name = fmt::format("heap({}:{})", function,
                             instruction->getDebugLoc() ? instruction->getDebugLoc().getLine() : 0);
        }
        break;
      }
    }
    if (layout.empty() || (where.begin == 0 && where.end == UINT32_MAX)) return name;
    return name + trace::field_path(layout, where.begin, size);
  }

  // Linking modules appends a number to the second of two equal names of static variables.
  static std::string without_number(const std::string& name) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos || dot + 1 == name.size()) return name;
    return name.find_first_not_of("0123456789", dot + 1) == std::string::npos ? name.substr(0, dot) : name;
  }

 private:
  const PointerAnalysis& pointers_;
  const Sites& sites_;
  std::unordered_map<std::string, const trace::ProgramVariable*> layouts_;
};

Facts facts_of(const llvm::Module& module, const Accesses& accesses, const Threads& threads, const Sites& sites,
               const PairSet& found) {
  Facts facts;
  const Objects& objects = accesses.pointers().objects();
  for (ObjectId id = 0; id < objects.object_count(); ++id) {
    const Object& object = objects.object(id);
    Facts::Object one;
    one.external = object.external;
    if (object.kind == ObjectKind::Global) {
      one.memory = Facts::Memory::Global;
      one.name = Names::without_number(object.value->getName().str());
    } else if (object.kind == ObjectKind::Stack || object.kind == ObjectKind::Heap) {
      one.memory = object.kind == ObjectKind::Stack ? Facts::Memory::Stack : Facts::Memory::Heap;
      one.site = Sites::key(*llvm::cast<llvm::Instruction>(object.value));
    }
    facts.objects.push_back(std::move(one));
  }
  for (const ExtentSet& set : accesses.sets()) {
    Facts::Set one{set.unknown, {}};
    for (const Extent& extent : set.extents) one.extents.push_back({extent.object, extent.begin, extent.end});
    facts.sets.push_back(std::move(one));
  }
  for (const ThreadClass& thread : threads.classes()) {
    const std::string entry = thread.entry ? thread.entry->getName().str() : "";
    facts.threads.push_back({entry, sites.written(entry), thread.many});
  }
  std::unordered_map<uint64_t, uint32_t> by_key;
  std::unordered_map<uint64_t, unsigned> instructions;
  for (const llvm::Function& function : module) {
    const auto& classes = threads.classes_of(&function);
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      const uint64_t key = Sites::key(instruction);
      if (key == 0) continue;
      ++instructions[key];
      if (classes.empty()) {
        facts.dead.push_back(key);
        continue;
      }
      auto [at, fresh] = by_key.try_emplace(key, static_cast<uint32_t>(facts.sites.size()));
      if (fresh) facts.sites.push_back({key, false, false, {}, {}, {}});
      Facts::Site& site = facts.sites[at->second];
      auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      site.branch |= is_branch(instruction) || call;  // functions of the library decide things, too
      site.unseen |= call && accesses.pointers().calls_unknown(call);
      for (uint32_t thread : classes)
        if (std::find(site.threads.begin(), site.threads.end(), thread) == site.threads.end())
          site.threads.push_back(thread);
    }
  }
  std::erase_if(facts.dead, [&](uint64_t key) { return by_key.contains(key); });
  for (const Access& access : accesses.all()) {
    auto at = by_key.find(Sites::key(*access.instruction));
    if (at == by_key.end()) continue;
    Facts::Site& site = facts.sites[at->second];
    if (access.reads) site.reads.push_back(access.set);
    if (access.writes) site.writes.push_back(access.set);
  }
  // Two instructions with one key: what is impossible for one of them says nothing about the site.
  auto only = [&](const llvm::Instruction* instruction) { return instructions[Sites::key(*instruction)] == 1; };
  for (const auto& [def, use] : found.refuted)
    if (only(def) && only(use)) facts.refuted.emplace_back(Sites::key(*def), Sites::key(*use));
  for (const auto& [object, use] : found.overwritten)
    if (only(use)) facts.overwritten.emplace_back(Sites::key(*use), object);
  facts.finish();
  return facts;
}

BranchOutcome outcome_of(Sites& sites, const Outcome& outcome) {
  BranchOutcome result;
  result.site = sites.index(*outcome.branch);
  if (auto* choice = llvm::dyn_cast<llvm::SwitchInst>(outcome.branch)) {
    result.is_default = outcome.successor == 0;
    if (!result.is_default)
      result.outcome = std::next(choice->case_begin(), outcome.successor - 1)->getCaseValue()->getZExtValue();
  } else {
    result.outcome = outcome.successor == 0;
  }
  return result;
}

Result analyze(const std::vector<std::string>& modules, const trace::Program* program, bool every_access,
               const Limits& limits) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = link(context, modules);
  PointerAnalysis pointers(*module);
  Threads threads(*module, pointers);
  Control control(*module, threads);

  Result result;
  for (const llvm::Function& function : *module) result.instructions += function.getInstructionCount();
  result.pointer_nodes = pointers.node_count();
  Sites sites(result, program, every_access);
  const Names names(pointers, program, sites);
  const Accesses accesses(*module, pointers, threads, [&](const llvm::Instruction& i) { return sites.is_site(i); });
  const PairSet found = find_pairs(accesses, threads, limits.pairs);
  result.shared_objects = static_cast<size_t>(std::count(found.shared.begin(), found.shared.end(), true));
  result.facts = facts_of(*module, accesses, threads, sites, found);

  // Sites first: every access and branch of code that runs, whether it is of a pair or not.
  for (const llvm::Function& function : *module) {
    if (threads.classes_of(&function).empty()) continue;
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (!sites.is_site(instruction) || !(instruction.mayReadOrWriteMemory() || is_branch(instruction))) continue;
      const uint32_t site = sites.index(instruction);
      std::vector<BranchOutcome> escorts;
      for (const Outcome& outcome : control.escorts(&instruction))
        if (sites.is_site(*outcome.branch)) escorts.push_back(outcome_of(sites, outcome));
      auto& all = result.sites[site].escorts;
      all.insert(all.end(), escorts.begin(), escorts.end());
    }
  }
  std::map<BranchOutcome, std::vector<uint32_t>> dominated;
  for (uint32_t i = 0; i < result.sites.size(); ++i) {
    auto& escorts = result.sites[i].escorts;
    std::sort(escorts.begin(), escorts.end());
    escorts.erase(std::unique(escorts.begin(), escorts.end()), escorts.end());
    for (const BranchOutcome& outcome : escorts) dominated[outcome].push_back(i);
  }
  for (auto& [outcome, inside] : dominated) result.dominated.push_back({outcome, std::move(inside)});

  llvm::DenseSet<const llvm::Instruction*> used;
  std::set<EscortPair> escorts;
  auto escort = [&](const EscortPair& pair) {
    if (escorts.size() < limits.escorts)
      escorts.insert(pair);
    else
      result.escorts_cut |= !escorts.contains(pair);
  };
  for (const InstructionPair& pair : found.pairs) {
    const std::string variable = names.of(pair.where);
    const uint32_t def = pair.def ? sites.index(*pair.def) : kInitial, use = sites.index(*pair.use);
    result.pairs.push_back({def, use, variable, pair.cross_thread, pair.shared});
    if (pair.def) used.insert(pair.def);
    if (!pair.shared) continue;
    for (const BranchOutcome& at_use : result.sites[use].escorts) {
      if (!pair.def)
        escort({BranchOutcome{}, at_use});
      else
        for (const BranchOutcome& at_def : result.sites[def].escorts) escort({at_def, at_use});
    }
  }
  std::sort(result.pairs.begin(), result.pairs.end(), [](const PotentialPair& a, const PotentialPair& b) {
    return std::tie(a.variable, a.use, a.def) < std::tie(b.variable, b.use, b.def);
  });
  result.escorts.assign(escorts.begin(), escorts.end());
  for (const auto& [object, count] : found.unlisted)
    result.unlisted.push_back({names.of({object, 0, UINT32_MAX}), count});
  std::stable_sort(result.unlisted.begin(), result.unlisted.end(),
                   [](const Unlisted& a, const Unlisted& b) { return a.pairs > b.pairs; });
  // Where pairs are left out, a write without a listed one may still have one.
  if (result.unlisted.empty())
    for (const llvm::Instruction* write : found.writes)
      if (!used.contains(write)) result.dead_definitions.push_back(sites.index(*write));
  for (const ThreadClass& thread : threads.classes())
    result.threads.push_back(
        {thread.entry ? sites.written(thread.entry->getName().str()) : "(code that STEM does not see)", thread.many});
  return result;
}

}  // namespace

bool Result::bare(const PotentialPair& pair) const {
  return sites[pair.use].escorts.empty() || (pair.def != kInitial && sites[pair.def].escorts.empty());
}

Result analyze_program(const trace::Program& program, const Limits& limits) {
  std::vector<std::string> modules;
  for (const trace::Bitcode& bitcode : program.bitcode())
    modules.emplace_back(bitcode.bytes.begin(), bitcode.bytes.end());
  if (modules.empty())
    user_error("{} has no bitcode inside; build it with stem-cc or stem-c++ to analyse it statically", program.path());
  return analyze(modules, &program, false, limits);
}

Result analyze_modules(const std::vector<std::string>& modules, bool every_access, const Limits& limits) {
  return analyze(modules, nullptr, every_access, limits);
}

}  // namespace stem::analysis
