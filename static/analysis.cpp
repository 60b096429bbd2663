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

  // The linkage name of a function as the programmer would write it, where a site says so.
  const std::string& written(const std::string& linkage) const {
    auto entry = functions_.find(linkage);
    return entry == functions_.end() ? linkage : *entry->second;
  }

 private:
  static uint64_t key(const llvm::Instruction& instruction) {
    const llvm::MDNode* node = instruction.getMetadata("stem.site");
    if (!node || node->getNumOperands() == 0) return 0;
    auto* value = llvm::mdconst::dyn_extract<llvm::ConstantInt>(node->getOperand(0));
    return value ? value->getZExtValue() : 0;
  }

  Result& result_;
  bool every_;
  std::map<uint64_t, const trace::ProgramSite*> known_;
  std::map<std::string, const std::string*> functions_;
  std::unordered_map<uint64_t, uint32_t> by_key_;
  std::unordered_map<const llvm::Instruction*, uint32_t> by_instruction_;
};

std::string object_name(const Object& object) {
  switch (object.kind) {
    case ObjectKind::External:
      return "(memory outside the program)";
    case ObjectKind::Global:
    case ObjectKind::Function:
      return object.value->getName().str();
    case ObjectKind::Stack:
    case ObjectKind::Heap:
      break;
  }
  auto* instruction = llvm::cast<llvm::Instruction>(object.value);
  std::string function = instruction->getFunction()->getName().str();
  if (object.kind == ObjectKind::Stack) return function + "::" + instruction->getName().str();
  unsigned line = instruction->getDebugLoc() ? instruction->getDebugLoc().getLine() : 0;
  return fmt::format("heap({}:{})", function, line);
}

bool is_branch(const llvm::Instruction& instruction) {
  auto* branch = llvm::dyn_cast<llvm::BranchInst>(&instruction);
  return (branch && branch->isConditional()) || llvm::isa<llvm::SwitchInst>(instruction);
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

Result analyze(const std::vector<std::string>& modules, const trace::Program* program, bool every_access) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module = link(context, modules);
  PointerAnalysis pointers(*module);
  Threads threads(*module, pointers);
  Control control(*module, pointers);

  Result result;
  for (const llvm::Function& function : *module) result.instructions += function.getInstructionCount();
  Sites sites(result, program, every_access);
  PairSet found = find_pairs(*module, pointers, threads, [&](const llvm::Instruction& i) { return sites.is_site(i); });
  result.shared_objects = found.shared_objects;

  std::map<std::string, const trace::ProgramVariable*> layouts;
  if (program)
    for (const trace::ProgramVariable& variable : program->variables()) layouts.emplace(variable.name, &variable);

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
  std::map<BranchOutcome, std::set<uint32_t>> dominated;
  for (uint32_t i = 0; i < result.sites.size(); ++i) {
    auto& escorts = result.sites[i].escorts;
    std::sort(escorts.begin(), escorts.end());
    escorts.erase(std::unique(escorts.begin(), escorts.end()), escorts.end());
    for (const BranchOutcome& outcome : escorts) dominated[outcome].insert(i);
  }
  for (const auto& [outcome, inside] : dominated) result.dominated.push_back({outcome, {inside.begin(), inside.end()}});

  std::set<const llvm::Instruction*> used;
  std::set<EscortPair> escorts;
  for (const InstructionPair& pair : found.pairs) {
    const Location& location = pointers.objects().at(pair.location);
    std::string variable = object_name(pointers.objects().object(location.object));
    auto layout = layouts.find(variable);
    if (layout != layouts.end()) {
      variable = layout->second->display.empty() ? layout->second->name : layout->second->display;
      if (location.offset != kAnyOffset)
        variable += trace::field_path(layout->second->layout, location.offset, layout->second->size);
    }
    const uint32_t def = pair.def ? sites.index(*pair.def) : kInitial, use = sites.index(*pair.use);
    result.pairs.push_back({def, use, variable, pair.cross_thread, pair.shared});
    if (pair.def) used.insert(pair.def);
    if (!pair.shared) continue;
    for (const BranchOutcome& at_use : result.sites[use].escorts) {
      if (!pair.def)
        escorts.insert({BranchOutcome{}, at_use});
      else
        for (const BranchOutcome& at_def : result.sites[def].escorts) escorts.insert({at_def, at_use});
    }
  }
  std::sort(result.pairs.begin(), result.pairs.end(), [](const PotentialPair& a, const PotentialPair& b) {
    return std::tie(a.variable, a.use, a.def) < std::tie(b.variable, b.use, b.def);
  });
  result.escorts.assign(escorts.begin(), escorts.end());
  for (const llvm::Instruction* write : found.writes)
    if (!used.contains(write)) result.dead_definitions.push_back(sites.index(*write));
  for (const ThreadClass& thread : threads.classes())
    result.threads.push_back({sites.written(thread.entry->getName().str()), thread.many});
  return result;
}

}  // namespace

bool Result::bare(const PotentialPair& pair) const {
  return sites[pair.use].escorts.empty() || (pair.def != kInitial && sites[pair.def].escorts.empty());
}

Result analyze_program(const trace::Program& program) {
  std::vector<std::string> modules;
  for (const trace::Bitcode& bitcode : program.bitcode())
    modules.emplace_back(bitcode.bytes.begin(), bitcode.bytes.end());
  if (modules.empty())
    user_error("{} has no bitcode inside; build it with stem-cc or stem-c++ to analyse it statically", program.path());
  return analyze(modules, &program, false);
}

Result analyze_modules(const std::vector<std::string>& modules, bool every_access) {
  return analyze(modules, nullptr, every_access);
}

}  // namespace stem::analysis
