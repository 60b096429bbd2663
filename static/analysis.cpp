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
      user_error("the bitcode of the program's translation units does not link ({}); rebuild all of them with stem-cc", said);
  }
  context.setDiagnosticHandlerCallBack(nullptr);
  return whole;
}

// Instructions as sites. A site's key is the first operand of its !stem.site metadata.
class Sites {
 public:
  Sites(Result& result, const trace::Program* program, bool every_access) : result_(result), every_(every_access) {
    if (program)
      for (const auto& [address, site] : program->sites()) known_.emplace(site.key, &site);
  }

  bool is_site(const llvm::Instruction& instruction) const { return every_ || key(instruction) != 0; }

  uint32_t index(const llvm::Instruction& instruction) {
    auto [entry, fresh] = by_instruction_.try_emplace(&instruction, static_cast<uint32_t>(result_.sites.size()));
    if (!fresh) return entry->second;
    StaticSite site;
    site.key = key(instruction);
    auto record = known_.find(site.key);
    if (record != known_.end()) {
      const trace::ProgramSite& full = *record->second;
      site = {full.key, full.file, full.line, full.column, full.function, full.text};
    } else {
      site.function = instruction.getFunction()->getName().str();
      if (const llvm::DebugLoc& where = instruction.getDebugLoc()) {
        site.file = where->getFilename().str();
        site.line = where.getLine();
        site.column = where.getCol();
      }
    }
    result_.sites.push_back(std::move(site));
    return entry->second;
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
  std::map<const llvm::Instruction*, uint32_t> by_instruction_;
};

std::string object_name(const Object& object) {
  switch (object.kind) {
    case ObjectKind::External: return "(memory outside the program)";
    case ObjectKind::Global:
    case ObjectKind::Function: return object.value->getName().str();
    case ObjectKind::Stack:
    case ObjectKind::Heap: break;
  }
  auto* instruction = llvm::cast<llvm::Instruction>(object.value);
  std::string function = instruction->getFunction()->getName().str();
  if (object.kind == ObjectKind::Stack) return function + "::" + instruction->getName().str();
  unsigned line = instruction->getDebugLoc() ? instruction->getDebugLoc().getLine() : 0;
  return fmt::format("heap({}:{})", function, line);
}

BranchOutcome outcome_of(Sites& sites, const Outcome& outcome) {
  BranchOutcome result;
  result.site = sites.index(*outcome.branch);
  if (auto* choice = llvm::dyn_cast<llvm::SwitchInst>(outcome.branch)) {
    result.is_default = outcome.successor == 0;
    if (!result.is_default)
      result.outcome = std::next(choice->case_begin(), outcome.successor - 1)->getCaseValue()->getSExtValue();
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

  std::set<const llvm::Instruction*> used;
  std::set<EscortPair> escorts;
  for (const InstructionPair& pair : found.pairs) {
    const Location& location = pointers.objects().at(pair.location);
    std::string variable = object_name(pointers.objects().object(location.object));
    auto layout = layouts.find(variable);
    if (layout != layouts.end() && location.offset != kAnyOffset)
      variable += trace::field_path(layout->second->layout, location.offset, layout->second->size);
    result.pairs.push_back({pair.def ? sites.index(*pair.def) : kInitial, sites.index(*pair.use), variable, pair.cross_thread});
    if (pair.def) used.insert(pair.def);
    for (const Outcome& use : control.escorts(pair.use)) {
      if (!pair.def) escorts.insert({BranchOutcome{}, outcome_of(sites, use)});
      else
        for (const Outcome& def : control.escorts(pair.def)) escorts.insert({outcome_of(sites, def), outcome_of(sites, use)});
    }
  }
  result.escorts.assign(escorts.begin(), escorts.end());
  for (const llvm::Instruction* write : found.writes)
    if (!used.contains(write)) result.dead_definitions.push_back(sites.index(*write));
  for (const ThreadClass& thread : threads.classes()) result.threads.push_back({thread.entry->getName().str(), thread.many});
  return result;
}

}  // namespace

Result analyze_program(const trace::Program& program) {
  std::vector<std::string> modules;
  for (const trace::Bitcode& bitcode : program.bitcode()) modules.emplace_back(bitcode.bytes.begin(), bitcode.bytes.end());
  if (modules.empty())
    user_error("{} has no bitcode inside; build it with stem-cc or stem-c++ to analyse it statically", program.path());
  return analyze(modules, &program, false);
}

Result analyze_modules(const std::vector<std::string>& modules, bool every_access) {
  return analyze(modules, nullptr, every_access);
}

}  // namespace stem::analysis
