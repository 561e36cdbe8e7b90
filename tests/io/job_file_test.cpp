#include "io/job_file.h"

#include <string>

#include "errors.h"
#include "support/catch.h"
#include "temporary_folder.h"

namespace membill::io_test {
namespace {

io::JobFile split(const std::string& text, Problems& problems) {
  return io::split_job(io::parse_tree(text, "job.yaml"), "job.yaml", "", problems);
}

io::JobFile good(const std::string& text) {
  Problems problems;
  io::JobFile job = split(text, problems);
  for (const Problem& problem : problems.list()) UNSCOPED_INFO(to_text(problem));
  REQUIRE(problems.empty());
  return job;
}

Lines bad(const std::string& text) {
  Problems problems;
  (void)split(text, problems);
  Lines lines;
  for (const Problem& problem : problems.list()) lines.push_back(to_text(problem));
  return lines;
}

}  // namespace

TEST_CASE("a job file is split into model, hardware and plan") {
  const io::JobFile job = good(
      "model: llama-2-7b\n"
      "hardware: {gpu: a100-80gb, count: 8, nodes: 1, host_ram: 1 TiB, others_use: 0}\n"
      "method: lora\n"
      "adapter: {rank: 16}\n");
  CHECK(*job.model == "llama-2-7b");
  CHECK(*job.hardware.gpu == "a100-80gb");
  CHECK(*job.hardware.count == 8);
  CHECK(*job.hardware.nodes == 1);
  CHECK(*job.hardware.host_ram == 1024 * 1_GiB);
  CHECK(*job.hardware.others_use == Bytes(0));
  REQUIRE(job.plan.entries().size() == 2);
  CHECK(job.plan.find("adapter")->find("rank")->as_int() == 16);
}

TEST_CASE("JSON and YAML job files are told apart by their first character") {
  CHECK(*good(" \n{\"model\": \"gpt2\"}").model == "gpt2");
  CHECK(*good("model: gpt2\n").model == "gpt2");
  CHECK(error_of([] { return io::parse_tree("{model: gpt2}", "j"); }) ==
        "j: line 1: expected a key in double quotes, found 'm'");
}

TEST_CASE("a model may be given inline or by its sizes") {
  CHECK(good("model: {config: {model_type: llama}}").config->find("model_type")->as_string() == "llama");
  const GenericModel generic = *good("model: {params: 7e9, hidden: 4096, layers: 32, kv_heads: 8}").generic;
  CHECK(*generic.params == 7'000'000'000);
  CHECK(*generic.hidden == 4096);
  CHECK(*generic.kv_heads == 8);
  CHECK_FALSE(generic.vocab.has_value());
  CHECK(*good("model: {params: 1.5B}").generic->params == 1'500'000'000);
  CHECK(*good("model: {params: 1000}").generic->params == 1000);
  CHECK_FALSE(good("seq: 1").model.has_value());
}

TEST_CASE("all mistakes of a job file come at once") {
  const Lines expected{"job.yaml: model.hiden: is no known key (hidden)",
                       "job.yaml: hardware.count: needs a whole number of at least 1, not 0",
                       "job.yaml: hardware.host_ram: '1024' needs a unit such as GiB or GB",
                       "job.yaml: hardware.others_use: '1.5' needs a unit such as GiB or GB",
                       "job.yaml: hardware.gpus: is no known key (gpu)"};
  CHECK(bad("model: {params: 7e9, hiden: 4096}\nhardware: {count: 0, host_ram: 1024, others_use: 1.5, gpus: 2}\n") ==
        expected);
}

TEST_CASE("mistakes of a job file") {
  CHECK(bad("- a\n") == Lines{"job.yaml: a job file is a map of keys, not list"});
  CHECK(bad("just text\n") == Lines{"job.yaml: a job file is a map of keys, not text"});
  CHECK(bad("modle: gpt2\n") == Lines{"job.yaml: modle: is no known key (model)"});
  CHECK(bad("hardwear: {}\n") == Lines{"job.yaml: hardwear: is no known key (hardware)"});
  CHECK(bad("model:\n") == Lines{"job.yaml: model: needs a name, a path or a map, not null"});
  CHECK(bad("model: ''\n") == Lines{"job.yaml: model: is empty"});
  CHECK(bad("model: 7\n") == Lines{"job.yaml: model: needs a name, a path or a map, not whole number"});
  CHECK(bad("model: {}\n") == Lines{"job.yaml: model: needs config, or params and sizes"});
  CHECK(bad("model: {config: 3}\n") == Lines{"job.yaml: model.config: needs a map, not whole number"});
  CHECK(bad("model: {config: {}, params: 3}\n") == Lines{"job.yaml: model.params: is no known key"});
  CHECK(bad("model: {params: 0}\n") == Lines{"job.yaml: model.params: needs at least 1"});
  CHECK(bad("model: {params: 7.5}\n") == Lines{"job.yaml: model.params: '7.5' needs a whole number of parameters"});
  CHECK(bad("model: {params: 1e30}\n") == Lines{"job.yaml: model.params: '1e30' is too large"});
  CHECK(bad("hardware: 4\n") == Lines{"job.yaml: hardware: needs a map, not whole number"});
  CHECK(bad("hardware: {gpu: 24}\n") == Lines{"job.yaml: hardware.gpu: needs text, not whole number"});
  CHECK(bad("hardware: {host_ram: -1 GiB}\n") == Lines{"job.yaml: hardware.host_ram: '-1 GiB' must not be negative"});
}

TEST_CASE("keys of the plan that resemble the model's are left to the plan") {
  CHECK(good("method: full\n").plan.find("method") != nullptr);
}

TEST_CASE("a model's path is looked for beside the job file") {
  const TemporaryFolder folder;
  folder.write("job/tiny/config.json", "{}");
  const std::string path = folder.write("job/job.yaml", "model: tiny/config.json\n");
  Problems problems;
  const io::JobFile job = io::read_job_file(path, problems);
  CHECK(problems.empty());
  CHECK(job.file == "job.yaml");
  CHECK(*job.model == folder.path("job") + "/tiny/config.json");
  folder.write("job/job.yaml", "model: gpt2\n");
  CHECK(*io::read_job_file(path, problems).model == "gpt2");
}

TEST_CASE("sizes of a generic model as flags") {
  GenericModel model;
  std::string why;
  CHECK(io::set_generic(model, "params", "7B", why));
  CHECK(*model.params == 7'000'000'000);
  CHECK(io::set_generic(model, "hidden", "4096", why));
  CHECK_FALSE(io::set_generic(model, "layers", "0", why));
  CHECK(why == "needs at least 1");
  CHECK_FALSE(io::set_generic(model, "layers", "3e1", why));
  CHECK(why == "needs a whole number in plain digits");
}

}  // namespace membill::io_test
