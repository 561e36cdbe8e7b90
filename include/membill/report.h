// Report: the finished result, all that renderers see. Every byte count is exact; unknown is an empty optional, never zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "membill/hardware.h"
#include "membill/source.h"
#include "membill/units.h"

namespace membill {

// A figure with its range. An empty field is unknown. low <= likely <= high.
struct Range {
  std::optional<std::int64_t> low, likely, high;
  static Range exact(std::int64_t bytes) { return {bytes, bytes, bytes}; }
  bool operator==(const Range&) const = default;
};

enum class Place : std::uint8_t { device, host, nvme };

// One line of the bill.
struct LineItem {
  std::string id;     // stable, dotted: "weights.base"
  std::string label;  // for people: "base weights"
  std::string
      category;  // first part of the bill's grouping: weights gradients optimizer activations loss step buffers gathered workspace runtime
  Place where = Place::device;
  std::optional<std::int64_t> bytes;      // the item's own highest; none = unknown
  std::optional<std::int64_t> low, high;  // range of `bytes`
  std::optional<std::int64_t> at_peak;    // its share of the peak: over all device items these sum to totals.requested
  std::vector<std::pair<std::string, std::int64_t>> moments;  // highest in each moment, in time order
  std::string formula;  // of at_peak in the symbols of the plan ("2·N·h·L"), with the same value
  Source source;
};

// One moment of the step on the deciding rank: its highest requested and allocated bytes, and what is live when it ends.
struct Moment {
  std::string name;  // load build forward loss backward clip step zero
  std::string rank;
  std::int64_t requested = 0;
  std::optional<std::int64_t> allocated;
  std::int64_t end = 0;  // requested bytes live at its end
};

// What lives on the deciding rank's card through the step. Time is the order of allocations and frees, not seconds: a point stands for a
// stretch of about equally many of them, and tells what lives where that stretch is highest. So the sum of the highest point is
// totals.requested, and the highest of a moment's points is that moment's. Of micro-batches that are all alike, one is shown.
struct Timeline {
  struct Span {
    std::string moment;
    std::int64_t points = 0;
  };
  struct Line {
    std::string item;                // id of a line of the bill
    std::vector<std::int64_t> live;  // bytes at each point of all spans
  };
  std::vector<Span> spans;  // in time order; a moment comes again with each micro-batch. Empty: not known
  std::vector<Line> lines;  // in the order of the bill
};

struct RankBill {
  std::string name;  // "rank 0", "stage 2"
  Range requested, allocated, reserved, device;
};

enum class Answer : std::uint8_t { fits, tight, does_not_fit, unknown, none };

struct Verdict {
  Answer answer = Answer::none;
  std::optional<std::int64_t> capacity;  // usable bytes of a card
  std::optional<std::int64_t> headroom;  // capacity less the device total's likely figure; negative: short of
  std::optional<std::int64_t> smallest_card;
  std::string because;  // one sentence
};

struct Totals {
  Range requested, allocated, reserved, device, host, nvme;
};

struct ReportModel {
  std::string name, family;
  std::optional<std::int64_t> parameters, active_parameters, trainable_parameters;
  std::int64_t layers = 0, hidden = 0, vocab = 0;
  Source source;
};

// A resolved field of the plan, for printing: dotted key, value as JSON text ("\"lora\"", "8", "null").
struct PlanField {
  std::string key;
  std::string json;
};

struct ReportHardware {
  std::optional<std::string> name;
  std::int64_t count = 1, nodes = 1;
  std::optional<std::int64_t> usable_bytes, host_bytes;
};

// A symbol of the formulas and its value: {"h", "hidden size", 4096}.
struct SymbolValue {
  std::string symbol, meaning;
  std::int64_t value = 0;
};

struct Report {
  ReportModel model;
  std::vector<PlanField> plan;
  ReportHardware hardware;
  Totals totals;
  std::string peak_moment, peak_rank;
  bool at_least = false;  // an item is unknown: totals are lower bounds
  std::vector<Moment> moments;
  Timeline timeline;
  std::vector<LineItem> items;  // device items first, by at_peak, highest first
  std::vector<RankBill> ranks;
  Verdict verdict;
  std::vector<SymbolValue> symbols;
  std::vector<std::string> assumptions, warnings;
  std::string membill_version;  // of the program that computed a saved report; empty: this one
};

}  // namespace membill
