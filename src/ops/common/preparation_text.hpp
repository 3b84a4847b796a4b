// A preparation as the text that it is in a model's file, and back.
#pragma once

#include <cstdint>
#include <string>

#include "ops/common/model_reader.hpp"
#include "vicinal/preprocess.hpp"

namespace vicinal::ops {

/// JSON; empty for a preparation without columns. Throws `invalid_argument` where it does not make the model's
/// `columns`, or its texts are not UTF-8.
std::string text_of(const Preparation& preparation, std::int64_t columns);

/// What a model's file says was done to its rows, which have `columns`. Earlier builds of the command kept it in the
/// notes, which become empty where they are nothing else. Throws `bad_data` naming the file
/// for what `text_of` did not write.
Preparation read_preparation(const ModelReader& file, std::int64_t columns, std::string& notes);

/// "scaling standard, texts onehot".
std::string summary_of(const Preparation& preparation);

}  // namespace vicinal::ops
