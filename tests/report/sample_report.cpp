#include "report/sample_report.h"

namespace membill::test {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;
constexpr std::int64_t kMiB = std::int64_t{1} << 20;

LineItem item(std::string id, std::string label, std::string category, std::int64_t highest, std::int64_t at_peak) {
  LineItem line;
  line.id = std::move(id);
  line.label = std::move(label);
  line.category = std::move(category);
  line.bytes = line.low = line.high = highest;
  line.at_peak = at_peak;
  line.moments = {{"forward", highest / 2}, {"backward", highest}};
  line.formula = "2·N";
  line.source = "a test";
  return line;
}

}  // namespace

Report plain_report() {
  Report report;
  report.model = {"tiny-llama", "llama", 1'100'048'384, 1'100'048'384, 1'100'048'384, 22, 2048, 32000, "a test"};
  report.plan = {{"stage", "\"sft\""},
                 {"method", "\"full\""},
                 {"weights", "\"bf16\""},
                 {"precision", "\"amp-bf16\""},
                 {"batch", "1"},
                 {"seq", "2048"},
                 {"adapter.rank", "8"},
                 {"adapter.targets", "[]"},
                 {"optimizer_args", "{}"},
                 {"adapter.dropout", "0.05"},
                 {"gradient_dtype", "null"}};
  report.items = {item("weights.base", "base weights", "weights", 2 * kGiB, 2 * kGiB),
                  item("gradients", "gradients", "gradients", 2 * kGiB, kGiB + 300 * kMiB),
                  item("loss.logits", "logits", "loss", 125 * kMiB, 0)};
  report.totals.requested = Range::exact(3 * kGiB + 300 * kMiB);
  report.totals.allocated = Range::exact(3 * kGiB + 301 * kMiB);
  report.totals.reserved = Range::exact(4 * kGiB);
  report.totals.device = {4 * kGiB + 300 * kMiB, 4 * kGiB + 500 * kMiB, 4 * kGiB + 800 * kMiB};
  report.totals.host = Range::exact(0);
  report.totals.nvme = Range::exact(0);
  report.peak_moment = "backward";
  report.peak_rank = "rank 0";
  report.moments = {{"forward", "rank 0", 3 * kGiB, 3 * kGiB + kMiB, 2 * kGiB},
                    {"backward", "rank 0", 3 * kGiB + 300 * kMiB, std::nullopt, 4096}};
  report.ranks = {
      {"rank 0", report.totals.requested, report.totals.allocated, report.totals.reserved, report.totals.device}};
  report.symbols = {{"h", "hidden size", 2048}};
  return report;
}

Report full_report() {
  Report report = plain_report();
  report.model.trainable_parameters = 4'505'600;
  report.model.active_parameters = 500'000'000;
  report.plan[1].json = "\"lora\"";
  report.hardware = {"NVIDIA GeForce RTX 4090", 2, 1, 23 * kGiB + 500 * kMiB, 64 * kGiB};
  LineItem context = item("runtime.context", "CUDA context", "runtime", 450 * kMiB, 0);
  context.low = 300 * kMiB;
  context.high = 620 * kMiB;
  context.at_peak.reset();
  LineItem host = item("optimizer.m", "first moment", "optimizer", 30 * kGiB, 0);
  host.where = Place::host;
  host.at_peak.reset();
  LineItem disk = item("optimizer.v", "second moment", "optimizer", 40 * kGiB, 0);
  disk.where = Place::nvme;
  disk.at_peak.reset();
  report.items.insert(report.items.end(), {context, host, disk});
  report.totals.host = Range::exact(30 * kGiB);
  report.totals.nvme = Range::exact(40 * kGiB);
  report.ranks.push_back(
      {"stage 1", Range::exact(kGiB), Range::exact(kGiB), Range::exact(kGiB), Range::exact(2 * kGiB)});
  report.verdict = {Answer::does_not_fit, 4 * kGiB, -500 * kMiB, 5 * kGiB,
                    "gradients, \"logits\" | and more, do not fit"};
  report.assumptions = {"torch 2.15: the newest release modelled",
                        "a long assumption that needs more than one line of eighty columns "
                        "to be said in full, for it explains a default"};
  report.warnings = {"vision_config is not counted"};
  report.timeline.spans = {{"forward", 2}, {"backward", 3}};
  report.timeline.lines = {{"weights.base", {2 * kGiB, 2 * kGiB, 2 * kGiB, 2 * kGiB, 2 * kGiB}},
                           {"gradients", {0, 0, 0, 500 * kMiB, kGiB + 300 * kMiB}},
                           {"loss.logits", {0, 125 * kMiB, 60 * kMiB, 0, 0}}};
  return report;
}

Report unknown_report() {
  Report report = plain_report();
  LineItem activations = item("activations.block", "activations", "activations", 0, 0);
  activations.bytes = activations.low = activations.high = activations.at_peak = std::nullopt;
  activations.moments.clear();
  report.items.push_back(activations);
  report.at_least = true;
  report.totals.reserved = {4 * kGiB, std::nullopt, std::nullopt};
  report.totals.device = {};
  report.verdict = {Answer::unknown, 80 * kGiB, std::nullopt, std::nullopt, "activations are unknown"};
  return report;
}

}  // namespace membill::test
