// The version of the schema (PRAGMA user_version), and what tells a STEM database from any other SQLite file.
#pragma once

namespace stem::db {

constexpr int kSchemaVersion = 2;
constexpr int kApplicationId = 0x5354454d;  // "STEM"

}  // namespace stem::db
