// The tables of `vicinal-bench papers` as data: what a paper reports beside what was measured here. The page and the
// JSON are written from them alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command/papers.hpp"
#include "report/drawing.hpp"

namespace vicinal::cli {

/// A figure of a paper, where it gives one, and ours.
struct PaperFigure {
  std::string what;
  std::string paper;            ///< as text, with its unit; "-": the paper has none
  std::string here;             ///< "-": not measured on this machine
  std::optional<double> ratio;  ///< how many times as good ours is
};

struct PaperTable {
  std::string paper;  ///< "GS", "LOF", "LLE", "KM", "CC"
  std::string title;
  std::string says;     ///< what the paper reports, and on what
  std::string differs;  ///< what differs here, and why: a sentence
  std::string device;   ///< where it was measured
  bool is_synthetic = false;
  Verdict verdict;
  std::vector<PaperFigure> figures;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::vector<report::Drawing> drawings;
};

Json to_json(const PaperTable& table);

/// A part that ran, by the name of its subcommand.
struct MeasuredPart {
  std::string name;
  PapersPart part;
};

/// The tables of a part. `drawings`: of embeddings, for `lle`.
std::vector<PaperTable> tables_of(const MeasuredPart& measured, const std::vector<report::Drawing>& drawings);

}  // namespace vicinal::cli
