# What STEM is built from; scripts/deps installs it on Debian.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(fmt 9 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(doctest 2.4 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19 NO_DEFAULT_PATH)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ELF REQUIRED IMPORTED_TARGET libelf)
pkg_check_modules(DW REQUIRED IMPORTED_TARGET libdw)
pkg_check_modules(Z3 REQUIRED IMPORTED_TARGET z3)

# The compiler behind stem-cc: the LLVM the pass is built against.
set(STEM_CLANG ${LLVM_TOOLS_BINARY_DIR}/clang)
set(STEM_CLANGXX ${LLVM_TOOLS_BINARY_DIR}/clang++)
