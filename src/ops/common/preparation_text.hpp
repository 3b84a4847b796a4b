// A preparation as it is in a model's file, and back.
#pragma once

#include <cstdint>
#include <string>

#include "ops/common/model_reader.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::ops {

/// Adds it to what a model's file has, whose other arrays are there already, and sorts them: JSON among the metadata,
/// empty for a preparation without columns, and the rows that missing values are filled from as an array, which is
/// borrowed. Throws `invalid_argument` where it does not make the model's `columns`, or its texts are not UTF-8.
void add_preparation(ModelParts& parts, const Preparation& preparation, std::int64_t columns);
/// What of it is an array is not unknown (ModelReader::require_all_seen).
void expect_preparation(ModelReader& file);

/// What a model's file says was done to its rows, which have `columns`. Earlier builds of the command kept it in the
/// notes, which become empty where they are nothing else. Throws `bad_data` naming the file
/// for what `add_preparation` did not write.
Preparation read_preparation(ModelReader& file, std::int64_t columns, std::string& notes);

/// "scaling standard, texts onehot".
std::string summary_of(const Preparation& preparation);

}  // namespace vicinal::ops
